//! Reads `queues.toml` and yields a topology that cannot be wrong.
//!
//! ```text
//!   text ──► file ─────────► check ───────────────► Topology ──► client, worker, inspector, ...
//!            tree of values   do the parts fit?      lookups, rules of types
//!            with places      who overrides what?
//!                 │               │
//!                 └── problems ───┴──► Error: all of them, each with place and cure
//! ```
//!
//! Invariant: a [`Topology`] is complete and consistent, or it does not exist. Every problem of a file is reported at
//! once; an override that is no good is a [`Warning`], and the file's value holds.
//!
//! ```
//! use poolwright_registry::Topology;
//!
//! let text = r#"
//! version = 1
//! [pools.core]
//! workers = 8
//! queus = { default = 1 }
//! "#;
//! let error = Topology::parse("queues.toml", text).unwrap_err();
//! assert_eq!(error.problems()[1].message, "unknown key `queus`, did you mean `queues`?");
//! ```

mod builder;
mod check;
pub mod duration;
mod error;
mod file;
mod path;
mod problem;
mod render;
mod report;
mod resolve;
mod rules;
mod schedule;
mod schema;
pub mod size;
mod suggest;
mod template;
mod topology;
mod words;

pub use builder::Builder;
pub use error::{Error, Refused};
pub use problem::{Problem, Related, Warning};
pub use report::{Row, report};
pub use resolve::{Loader, Origin, Resolved};
pub use rules::{Reach, TaskRules};
pub use schedule::{Schedule, ScheduleError};
pub use schema::schema;
pub use topology::{Housekeeping, LogicalName, Pool, Queue, Runtime, Stale, Topology, Weighted};
pub use words::{Borrow, OnExhausted, Producers};
