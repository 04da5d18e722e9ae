//! The stories: what must be true of the whole, each told once and over public APIs only.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bad_handlers;
mod cancel;
mod crash;
mod demo;
mod elastic;
mod isolation;
mod letters;
mod outage;
mod rolling;
mod run_again;
mod sharing;
mod stop;
mod walk;
mod weights;

/// Where each story happens.
fn place(queues: &str) -> acceptance::place::Place {
    acceptance::place::Place::new(queues)
}

/// The server on which the demo keeps its tasks; none: in a file.
fn server() -> Option<poolwright_testbed::RedisServer> {
    None
}

/// The program that a story starts, stops and kills.
const WORKER: &str = env!("CARGO_BIN_EXE_story_worker");
