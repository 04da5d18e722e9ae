//! The inspector over the store in memory.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod act;
mod letters;
mod look;
mod stage;
