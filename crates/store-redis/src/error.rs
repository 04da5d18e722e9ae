//! Why a store on Redis cannot be opened.
//!
//! Invariant: a message names servers, never passwords.

use poolwright_broker::Error as BrokerError;

use crate::link::CallError;

/// A store that cannot be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL, the environment or the options themselves ask for what there is not.
    #[error("the options for Redis are wrong: {}", problems.join("; "))]
    BadOptions {
        /// Each thing that is wrong, with its cure.
        problems: Vec<String>,
    },
    /// A file for TLS cannot be used.
    #[error("cannot use {path}: {why}")]
    BadFile {
        /// The file.
        path: String,
        /// Why, and what was expected.
        why: String,
    },
    /// No server answers, or it cannot serve now.
    #[error("{why}")]
    Unreachable {
        /// What was tried, and what came back.
        why: String,
    },
    /// A server answers, but it will not do.
    #[error("{why}")]
    Unfit {
        /// Which server, why, and the cure.
        why: String,
    },
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        let why = error.why();
        if error.broker().is_retryable() { Self::Unreachable { why } } else { Self::Unfit { why } }
    }
}

impl From<Error> for BrokerError {
    fn from(error: Error) -> Self {
        match error {
            Error::Unreachable { .. } => Self::Unavailable { why: error.to_string() },
            _ => Self::Refused { why: error.to_string() },
        }
    }
}
