//! The words and the pure decisions of Poolwright; no runtime, no I/O.
//!
//! ```text
//!                       enqueue                       delay
//!                          │      ┌───────────────────────────────┐
//!                          ▼      │                               ▼
//!   run_now ┌──────────► pending ◄┴──── due ──── scheduled ◄── enqueue(delay)
//!           │              │  ▲  ▲
//!           │        claim │  │  └───── due ──── retry ◄─────────┐
//!           │              ▼  │ release                          │
//!           │            active ──┬── error, attempts left ──────┘
//!           │                     ├── error, final ─────► archived ──► (deleted)
//!           └─────────────────────┼───────────────────────┘
//!                                 ├── success, retention ─► completed ─► (expired)
//!                                 └── success or discard ─► (gone)
//! ```
//!
//! Invariant: nothing here reads a clock, draws a random number of its own or waits; every
//! decision is a function of its arguments, so that stores, worker and tests agree on it.

pub mod chance;
pub mod class;
pub mod clock;
pub mod dead_letter;
pub mod error;
pub mod future;
pub mod lease;
pub mod name;
pub mod retry;
pub mod settings;
pub mod state;
pub mod subject;
pub mod task;
pub mod text;
pub mod unique;
pub mod verdict;

pub use chance::Chance;
pub use class::Class;
pub use clock::{Clock, Timestamp};
pub use dead_letter::{DeadLetter, DeadLetterSink};
pub use error::{BoxError, Next, TaskError};
pub use future::BoxFuture;
pub use lease::Token;
pub use name::{NameError, PoolName, QueueName, TaskId, TypeName};
pub use retry::RetryPolicy;
pub use settings::SettingsSource;
pub use state::State;
pub use subject::{Scope, Subject, Tenant};
pub use task::{Headers, NewTask, OnConflict, TaskKey, TaskRecord, When};
pub use unique::UniqueLock;
pub use verdict::{Attempt, Charge, End, OnCancel, Policy, Settlement};
