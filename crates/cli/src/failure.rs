//! How a command ends that did not do what it was asked, and with which exit code.
//!
//! | Code | Means |
//! | --- | --- |
//! | 0 | done |
//! | 1 | failed: the same call may succeed when the world is another one |
//! | 2 | used wrongly: the call itself, or the file of queues, must be corrected |

use std::io::{self, Write as _};
use std::process::ExitCode;

use poolwright::client::Error as ClientError;
use poolwright::inspector::Error as InspectorError;
use poolwright::ledger::Error as LedgerError;
use poolwright::registry::Error as RegistryError;
use poolwright::{Error, broker};

use crate::{print, text};

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It could not be done; what is said why.
    Failed(String),
    /// It cannot be asked so; what is said how.
    Misused(String),
    /// The file of queues has mistakes.
    Mistakes(Box<RegistryError>),
    /// It failed, and all was said.
    Told,
}

impl Failure {
    /// Says on stderr what went wrong, and gives the code to end with.
    pub(crate) fn tell(self) -> ExitCode {
        let is_coloured = print::is_coloured(&io::stderr());
        let label = if is_coloured { "\u{1b}[1;31merror:\u{1b}[0m" } else { "error:" };
        let (said, code) = match self {
            Self::Failed(why) => (format!("{label} {}", text::harmless(&why)), 1),
            Self::Misused(why) => (format!("{label} {}", text::harmless(&why)), 2),
            Self::Mistakes(error) if is_coloured => (format!("{}\n", error.coloured()), 2),
            Self::Mistakes(error) => (format!("{error}\n"), 2),
            Self::Told => (String::new(), 1),
        };
        // Where nobody listens, the code says it.
        let _ = io::stderr().write_all(said.as_bytes());
        ExitCode::from(code)
    }
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        match error {
            RegistryError::Refused(_) => Self::Mistakes(Box::new(error)),
            other => Self::Misused(other.to_string()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::File(error) => error.into(),
            // A description of pools and handlers comes from the command line.
            Error::UnknownStore { .. } | Error::Refused { .. } => Self::Misused(error.to_string()),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Store(error) => error.into(),
            refused => Self::Misused(refused.to_string()),
        }
    }
}

impl From<InspectorError> for Failure {
    fn from(error: InspectorError) -> Self {
        match error {
            InspectorError::UnknownQueue { .. } | InspectorError::Name(_) => Self::Misused(error.to_string()),
            InspectorError::Store(error) => error.into(),
            InspectorError::Ledger(error) => error.into(),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<broker::Error> for Failure {
    fn from(error: broker::Error) -> Self {
        match error {
            broker::Error::BadCursor { .. } => Self::Misused(error.to_string()),
            other => Self::Failed(other.to_string()),
        }
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        Self::Failed(error.to_string())
    }
}
