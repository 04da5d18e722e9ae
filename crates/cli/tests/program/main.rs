//! The program as people run it: the real binary in a directory of its own.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod act;
mod check;
mod demo;
mod enqueue;
mod letters;
mod lines;
mod look;
mod misuse;
mod pipe;
mod stage;
