//! Our store and Go's asynq on one server: what one side writes the other reads, and each ends what the other began.
//!
//! Without Go these tests are skipped and say so; with `POOLWRIGHT_REQUIRE_GO` in the environment they fail. Those with asynq's command
//! line want that alone.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod asynq;
mod both;
mod cancelled;
mod command_line;
mod consumed;
mod dashboard;
mod drained;
mod elsewhere;
mod extremes;
mod go;
mod handover;
mod operated;
mod ours_on_theirs;
mod produced;
mod race;
mod schedulers;
