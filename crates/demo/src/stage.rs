//! The stages of the pipeline: functions on data, which know no queue, no store and no clock.
//!
//! ```text
//!  folder ─ scan ─► files ─ read ─► sections ─ chunk ─► chunks ─┬─ summary
//!              └──► pictures ─ image ─► size, colours           ├─ question
//!                                  │                            └─ graph
//!                                  └───────────► wiki ◄─────────────┘
//! ```
//!
//! Invariant: the same input gives the same output, and the worst input gives one clear error in bounded time and
//! memory. That is what lets a task run twice.

pub mod chunk;
pub mod graph;
pub mod image;
pub mod question;
pub mod read;
pub mod scan;
pub mod summary;
pub mod wiki;
pub mod words;
