//! Builds and submits tasks.
//!
//! ```text
//!   client.task(&payload) ──► Request ──► typed: rules of the type ──► NewTask ──► store
//!   client.raw(type, bytes) ─┘  .delay() .id() .unique_for() …   │                  one round trip,
//!                                                                └─► Error          one outcome each
//! ```
//!
//! What the caller says wins over what the file says of the type; what neither may say is refused here, before
//! anything is sent: unknown types and queues, names and payloads that are too long, an id template whose field is
//! missing, a deadline that lies before the first try.
//!
//! | from the file | said by the caller |
//! | --- | --- |
//! | `queue` | [`Request::queue`] |
//! | `max_retry`, `timeout`, `retention` | the methods of the same name |
//! | `delay` | [`Request::delay`], [`Request::at`] |
//! | `deadline` (after the enqueue) | [`Request::deadline`] (a time) |
//! | `unique_for` | [`Request::unique_for`], [`Request::unique_key`] |
//! | `id` (a template), `on_conflict` | [`Request::id`], [`Request::on_conflict`] |
//! | `subject`, `scopes` (paths into the payload) | [`Request::subject`], [`Request::scope`], which add |
//! | `tenant` (a path into the payload) | [`Request::tenant`] |

mod batch;
mod client;
mod error;
mod request;
mod typed;

pub use batch::Batch;
pub use client::{Client, Inject, Witness};
pub use error::Error;
pub use request::Request;
