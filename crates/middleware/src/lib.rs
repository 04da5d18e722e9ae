//! The layers around a handler.
//!
//! ```text
//!   worker ─► dead letter ─► background ─► trace ─► your layers ─► guard ─► handler
//!                  │              │           │                      │
//!                  │              │           │                      └ timeout, cancel and panic become ordinary errors
//!                  │              │           └ one span for the attempt, in the trace of its enqueue
//!                  │              └ code can ask whether it runs for a task
//!                  └ the record of a final failure is ready before the store is asked
//! ```
//!
//! Each is a plain `tower::Layer` over [`poolwright_handler::TaskCall`], in a file of its own; [`Stack`] puts them in
//! this order. Whatever ends an attempt arrives at every layer outside the guard as an error with a class.
//!
//! Invariant: no layer here decides what becomes of a task, and none changes a result on its way out; the guard alone
//! makes an error of what was none. The judge is `poolwright_core::verdict`.

pub mod background;
pub mod dead_letter;
pub mod guard;
pub mod panic;
pub mod stack;
pub mod trace;

pub use background::BackgroundLayer;
pub use dead_letter::DeadLetterLayer;
pub use guard::GuardLayer;
pub use stack::{Options, Stack};
pub use trace::TraceLayer;
