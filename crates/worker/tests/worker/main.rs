//! The worker, played with on the store in memory: what it does with handlers and stores that behave badly.
//!
//! Tests await states and signals. The store's clock is a manual one and stands still unless a test moves it, so no lease
//! expires because a machine is slow; the worker's own clock is true, and its patience short.

#![allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]

mod chance;
mod desk;
mod endings;
mod faulty;
mod isolation;
mod play;
mod rig;
mod stopping;
mod trouble;
mod upkeep;
