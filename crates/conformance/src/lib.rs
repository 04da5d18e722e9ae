//! One suite for every store: it holds the rules of `poolwright-broker` against whatever a [`Harness`] lends.
//!
//! A store's tests write a factory and one line:
//!
//! ```ignore
//! use poolwright_conformance::{ManualHarness, START, suite};
//!
//! async fn harness() -> ManualHarness {
//!     let clock = ManualClock::at(START);
//!     let broker = MyStore::open(Arc::new(clock.clone())).await.unwrap();
//!     ManualHarness::new(broker, clock)
//! }
//!
//! suite!(harness);                      // every rule that all stores keep
//! suite!(harness; durable, poison);     // and the groups that this harness can stage
//! ```
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
pub mod observe;
mod stage;
mod suite;
mod topic;

pub use harness::{Harness, ManualHarness, START};
pub use stage::SAFETY;
pub use suite::{CASES, Case, Failed, Outcome, run};
