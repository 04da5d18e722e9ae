//! Why a file cannot be opened as a store; and what SQLite's own errors mean to a caller of the broker.

use std::path::PathBuf;

use poolwright_broker::Error as BrokerError;
use rusqlite::ErrorCode;

/// A store that cannot be opened. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The URL is none of SQLite, or asks for what there is not.
    #[error("{url}: {why}")]
    BadUrl {
        /// What was given.
        url: String,
        /// What is wrong, and what was expected.
        why: String,
    },
    /// The path is a directory.
    #[error("{} is a directory; name a file in it, such as {}", path.display(), path.join("tasks.db").display())]
    IsDirectory {
        /// The path.
        path: PathBuf,
    },
    /// The file, or the directory around it, may not be written.
    #[error(
        "{} may not be written by this user; make the file and its directory writable (SQLite keeps two files beside it)",
        path.display()
    )]
    ReadOnly {
        /// The file or directory.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{} is not a SQLite database; it was left as it is, name another file", path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The file is a SQLite database of another application.
    #[error(
        "{} is a SQLite database of another application (application id {found:#x}); it was left as it is, name another file",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its application id; 0: it has none, but tables.
        found: i32,
    },
    /// A later version of this program wrote the file.
    #[error(
        "{} has schema version {found}, this program knows versions up to {known}; run the newer program, or name another file",
        path.display()
    )]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The newest known version.
        known: u32,
    },
    /// Another process kept the file locked.
    #[error("{} is locked by another process and did not become free in {waited_ms} ms", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
        /// How long was waited.
        waited_ms: u64,
    },
    /// Anything else.
    #[error("cannot open {}: {why}", path.display())]
    CannotOpen {
        /// The file.
        path: PathBuf,
        /// What the system said.
        why: String,
    },
}

impl From<Error> for BrokerError {
    fn from(error: Error) -> Self {
        match error {
            Error::Busy { .. } => Self::Unavailable { why: error.to_string() },
            _ => Self::Refused { why: error.to_string() },
        }
    }
}

/// Why a step did not do its work.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The broker's own answer: the step looked, wrote nothing and refused.
    Said(BrokerError),
    /// SQLite failed: what the step wrote must be undone.
    Sql(rusqlite::Error),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<BrokerError> for Fault {
    fn from(error: BrokerError) -> Self {
        Self::Said(error)
    }
}

/// What SQLite's error means to the caller.
///
/// A full disk is `Unavailable`, not `Refused`: the same call succeeds once there is room, and a worker that
/// wants to settle must try again.
pub(crate) fn meaning(error: &rusqlite::Error, file: &str) -> BrokerError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => BrokerError::Unavailable {
            why: format!(
                "no room for {file}: the disk is full or the file has reached its limit; make room, nothing was stored"
            ),
        },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => BrokerError::Unavailable {
            why: format!("{file} is locked by another process for too long; nothing was stored"),
        },
        Some(
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied,
        ) => BrokerError::Refused { why: format!("{file} may not be written any more: {error}") },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            BrokerError::Corrupt { what: format!("{file} is damaged: {error}") }
        }
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::OutOfMemory
            | ErrorCode::FileLockingProtocolFailed,
        ) => BrokerError::Unavailable { why: format!("{file} does not answer: {error}") },
        Some(ErrorCode::TooBig) => {
            BrokerError::Refused { why: format!("a value is too large for {file}: {error}") }
        }
        _ => BrokerError::Refused { why: format!("unexpected answer of {file}: {error}") },
    }
}

/// The file is locked by somebody else: nothing was tried, and trying it in pieces does not help.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
