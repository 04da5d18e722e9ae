//! Whole-system stories over public APIs only: what they share.
//!
//! ```text
//!   a story (stories/*, soak/*)
//!      │ writes a queues.toml into a directory of its own
//!      ▼
//!   Place ──► Orchestrator in this process ──► Stage::play ──► Journal
//!      │                                                         ▲
//!      └────► Crew ──► story_worker, a process of its own ───────┘
//!                      (its standard output, line by line)
//! ```
//!
//! Stories wait for what the journal or a worker's status says, never for a time. [`SAFETY`] only turns a hang into a failure.
//!
//! | File | Its one duty |
//! | --- | --- |
//! | `place` | a directory with a file of queues and a store, and who works on it |
//! | `stage` | the handler of most stories: it does what the payload says and tells of it |
//! | `journal` | what was told, and waiting for it |
//! | `crew` | worker and producer processes, to be stopped and killed |
//! | `program` | the program `poolwright`, as people run it |
//! | `wrong_clock` | processes whose host's clock is wrong |
//! | `plan` | what such a process is told to do, and what it says |

#![allow(clippy::unwrap_used, reason = "this package is nothing but tests, and a test may panic")]

pub mod crew;
pub mod journal;
pub mod place;
pub mod plan;
pub mod program;
pub mod stage;
pub mod wrong_clock;

use std::time::Duration;

use poolwright::worker::Options;

/// Longer than any story takes; a story that is not over by then hangs.
pub const SAFETY: Duration = Duration::from_secs(150);

/// Turns a hang into a failure.
pub async fn safely<T>(story: impl Future<Output = T>) -> T {
    tokio::time::timeout(SAFETY, Box::pin(story)).await.expect("the story hangs")
}

/// Knobs that only say how long to wait before looking again: short, so that stories are.
pub fn impatient(options: &mut Options) {
    let ms = Duration::from_millis;
    options.slack = ms(50);
    options.promote_gap = ms(5);
    options.promote_at_most = ms(100);
    options.reclaim_every = ms(50);
    options.letters_every = ms(50);
    options.backoff_min = ms(5);
    options.backoff_max = ms(50);
}
