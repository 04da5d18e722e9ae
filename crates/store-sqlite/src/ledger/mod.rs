//! The ledger on the same file: dead letters and settings.

mod dead_letter;
mod settings;

use poolwright_broker::Error as BrokerError;
use poolwright_ledger::{Error, Ledger};

use crate::SqliteStore;

impl Ledger for SqliteStore {
    fn describe(&self) -> String {
        self.name()
    }
}

/// What a failure of the file means to a caller of the ledger.
fn told(error: BrokerError) -> Error {
    match error {
        BrokerError::Corrupt { what } => Error::Corrupt { what },
        BrokerError::Unavailable { why } => Error::Unavailable { why },
        BrokerError::Refused { why } => Error::Refused { why },
        // The ledger's steps give none of the others.
        other => Error::Refused { why: other.to_string() },
    }
}
