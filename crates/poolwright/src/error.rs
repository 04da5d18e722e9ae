//! Why an orchestrator does not start, or a store does not open; named for what the caller can do.

use std::fmt;

use poolwright_broker::Error as StoreError;
use poolwright_core::error::describe;
use poolwright_ledger::Error as LedgerError;
use poolwright_registry::Error as FileError;
use poolwright_worker::Error as WorkerError;

/// An orchestrator, client or inspector that could not be had.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file has mistakes: the text names each with its line and its cure.
    #[error(transparent)]
    File(#[from] FileError),
    /// It was put together wrongly: everything that is wrong, at once. Nothing was started.
    #[error("the orchestrator cannot start:{}", list(.problems))]
    Refused {
        /// At least one.
        problems: Vec<Problem>,
    },
    /// The URL names no store that this build knows.
    #[error("{why} (known are {known})")]
    UnknownStore {
        /// What is wrong with the URL.
        why: String,
        /// The URLs that would do.
        known: String,
    },
    /// The SQLite file cannot be a store. It was not changed.
    #[cfg(feature = "sqlite")]
    #[error(transparent)]
    Sqlite(#[from] poolwright_store_sqlite::Error),
    /// Redis cannot be reached, or will not do as a store.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Redis(#[from] poolwright_store_redis::Error),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The system gave no threads or no signals.
    #[error(transparent)]
    Worker(WorkerError),
    /// The worker ended because of a bug in it.
    #[error("the worker failed: {why}")]
    Failed {
        /// What failed.
        why: String,
    },
}

/// One thing that is wrong with an orchestrator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// No store was named.
    #[error("no store was given: call `.broker(\"sqlite://tasks.db\")`")]
    NoStore,
    /// Nothing to run.
    #[error("no handler was given: call `.handle(your_async_fn)`")]
    NoHandlers,
    /// A pool or type that the file does not declare.
    #[error("`{call}`: {why}")]
    Unknown {
        /// The method that was told the name.
        call: &'static str,
        /// What is unknown, and what was probably meant.
        why: String,
    },
    /// Two values of one type: handlers could only ever see the last one.
    #[error("two states of type `{state}` were set; wrap one of them in a type of its own")]
    StateTwice {
        /// The type.
        state: &'static str,
    },
    /// Something about pools or handlers.
    #[error(transparent)]
    Worker(#[from] poolwright_worker::Problem),
}

/// The text, with its causes: a `main` that returns an error shows it by `Debug`, and only the text names line and cure.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&describe(self))
    }
}

impl From<WorkerError> for Error {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::Refused { problems } => {
                Self::Refused { problems: problems.into_iter().map(Problem::Worker).collect() }
            }
            other => Self::Worker(other),
        }
    }
}

fn list(problems: &[Problem]) -> String {
    match problems {
        [one] => format!(" {one}"),
        many => many.iter().map(|problem| format!("\n  - {problem}")).collect(),
    }
}
