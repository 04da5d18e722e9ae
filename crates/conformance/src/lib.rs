//! One suite for every store: it holds the rules of `poolwright-broker` against whatever a [`Harness`] lends.
//!
//! A store's tests write a factory and one line:
//!
//! ```
//! use std::sync::Arc;
//!
//! use poolwright_conformance::{ManualHarness, START, suite};
//! use poolwright_core::{Chance, clock::ManualClock};
//! use poolwright_store_memory::MemoryStore;
//!
//! async fn harness() -> ManualHarness {
//!     let clock = ManualClock::at(START);
//!     ManualHarness::new(MemoryStore::new(Arc::new(clock.clone()), Chance::seeded(1)), clock)
//! }
//!
//! suite!(harness); // every rule that all stores keep
//! # fn main() {}
//! ```
//!
//! `suite!(harness; durable, poison)` adds the groups that a harness can stage beyond that: closing the store and opening
//! it again ([`Harness::reopen`]), and damaging a stored record ([`Harness::poison`]).
//!
//! Each case becomes a test of its own, `topic::case`, on a fresh harness and a runtime with two threads. The
//! crate that calls the macro needs `tokio` with `macros` and `rt-multi-thread`.
//!
//! [`model::run`] drives two stores side by side with random steps and compares everything that can be seen.
//!
//! Invariant: a case waits for a state or a signal. The only durations are the manual clock's and [`SAFETY`], which
//! turns a hang into a failure and passes nothing.

pub mod builders;
mod cases;
pub mod harness;
pub mod model;
pub mod observe;
mod stage;
mod suite;
mod topic;

pub use harness::{Harness, ManualHarness, START};
pub use stage::SAFETY;
pub use suite::{CASES, Case, Failed, Outcome, run};
