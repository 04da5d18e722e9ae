//! The long stories, told by `cargo xtask soak`: minutes of chaos, a million tasks, the default lease, clocks that leap.
//!
//! A line that holds `figures: ` is repeated at the end. `POOLWRIGHT_SOAK_MINUTES` says how long the chaos lasts.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod chaos;
mod leaps;
mod million;
mod takeover;

use std::time::Duration;

use poolwright::core::clock::SystemClock;
use poolwright::core::{Clock, Timestamp};

/// The program that a story starts, stops and kills.
const WORKER: &str = env!("CARGO_BIN_EXE_story_worker");

/// What each story may take, as the caller says; 10 minutes when nobody does.
fn minutes() -> Duration {
    let said = std::env::var("POOLWRIGHT_SOAK_MINUTES").unwrap_or_else(|_| "10".to_owned());
    let minutes: u64 = said.parse().unwrap_or_else(|_| panic!("expected whole minutes, got {said}"));
    Duration::from_secs(60 * minutes)
}

/// Turns a hang into a failure: a story may take three times what was said, and ten minutes at least.
async fn patiently<T>(story: impl Future<Output = T>) -> T {
    let limit = (minutes() * 3).max(Duration::from_secs(600));
    tokio::time::timeout(limit, Box::pin(story)).await.expect("the story hangs")
}

fn now() -> Timestamp {
    SystemClock.now()
}

fn secs_since(start: Timestamp) -> f64 {
    now().since(start).as_secs_f64()
}
