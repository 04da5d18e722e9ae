//! The contract of the durable records: what must outlive the queue.
//!
//! | Trait | Keeps |
//! | --- | --- |
//! | [`DeadLetters`] | tasks that ended badly, until somebody looked |
//! | [`Settings`] | what an operator changed at run time |
//!
//! Invariant: plain data and object-safe traits; no database type crosses.

pub mod dead_letter;
pub mod error;
pub mod settings;

pub use dead_letter::{DeadLetters, Filter, LetterId, LetterPage, ListRequest, Replayed, StoredLetter};
pub use error::Error;
pub use settings::{Setting, Settings};

/// What every method of a ledger gives.
pub type Reply<'a, T> = poolwright_core::BoxFuture<'a, Result<T, Error>>;

/// A whole ledger.
pub trait Ledger: DeadLetters + Settings + 'static {
    /// What kind of store it is and where, for messages. Without secrets.
    fn describe(&self) -> String;
}
