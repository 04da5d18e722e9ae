//! What can go wrong at the ledger.

use crate::LetterId;

/// A refusal or a failure of a ledger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No such dead letter.
    #[error("no dead letter {0}")]
    NoLetter(LetterId),
    /// Stored data cannot be understood.
    #[error("stored data cannot be read: {what}")]
    Corrupt {
        /// What and why.
        what: String,
    },
    /// The ledger will not do it: a newer version, a read-only file, a key that is no setting.
    #[error("the ledger refuses: {why}")]
    Refused {
        /// Why, and the cure.
        why: String,
    },
    /// The ledger cannot be reached or did not answer.
    #[error("the ledger is unavailable: {why}")]
    Unavailable {
        /// Why.
        why: String,
    },
}

impl Error {
    /// The same call may succeed later, unchanged.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}
