//! Why a task was not submitted, named for what the caller can do about it.

use std::time::Duration;

use poolwright_broker::Error as StoreError;
use poolwright_core::{NameError, TaskKey, Timestamp};

/// A task that was refused: by the client before anything was sent, or by the store.
///
/// It is `Clone`, because one failure of the store is the outcome of every task of a batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file declares no such type: correct the name, or add `[tasks."…"]` to the file.
    #[error("unknown task type `{task_type}`{hint}")]
    UnknownType {
        /// The name that was given.
        task_type: String,
        /// The declared name that was probably meant, as the end of the sentence; or nothing.
        hint: String,
    },
    /// The file declares no such queue: correct the name, or add it to a pool.
    #[error("unknown queue `{queue}`{hint}")]
    UnknownQueue {
        /// The name that was given.
        queue: String,
        /// The declared name that was probably meant, as the end of the sentence; or nothing.
        hint: String,
    },
    /// An id or a type that no store can keep: empty, too long, or with a control character.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The payload does not encode.
    #[error("the payload of `{task_type}` does not encode: {why}")]
    Encode {
        /// The type.
        task_type: String,
        /// What the encoding said.
        why: String,
    },
    /// The payload is too large: keep the data elsewhere and send where it is, or raise `payload` of the type or of
    /// `[limits]` in the file.
    #[error("the payload of `{task_type}` has {bytes} bytes, and at most {bytes_max} are allowed")]
    PayloadTooLarge {
        /// The type.
        task_type: String,
        /// Its size in bytes.
        bytes: usize,
        /// The limit of the type in bytes.
        bytes_max: usize,
    },
    /// The type makes its id of a payload field that this payload lacks: fill the field, or give an id.
    #[error("the id of `{task_type}` is made as `{template}`, and its payload has no `{field}`")]
    IdField {
        /// The type.
        task_type: String,
        /// The template, as the file has it.
        template: String,
        /// The first field that is absent, empty, or neither text nor a whole number.
        field: String,
    },
    /// The deadline passes before the task could run first.
    #[error("the deadline {deadline} is not after {due}, when the task could run first")]
    DeadlinePassed {
        /// The deadline that was given.
        deadline: Timestamp,
        /// When the task would be due, at the earliest now.
        due: Timestamp,
    },
    /// A unique lock shorter than a second; not every store can keep one.
    #[error("a unique lock lasts at least 1 s, and {lasts:?} was asked for")]
    UniqueTooShort {
        /// The time that was given.
        lasts: Duration,
    },
    /// A unique key and no time for how long it holds: say `unique_for`, here or in the file.
    #[error("a unique key needs `unique_for`: say for how long `{key}` is locked")]
    UniqueWithoutTime {
        /// The key that was given.
        key: String,
    },
    /// The store did not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// An equal task is there already: its id is taken or its unique lock is held. Often not a fault but what
    /// was wanted; [`Error::existing`] says which task it is.
    #[must_use]
    pub const fn is_duplicate(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_duplicate())
    }

    /// The same call may succeed later, unchanged.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_retryable())
    }

    /// The task that stood in the way of a duplicate.
    #[must_use]
    pub const fn existing(&self) -> Option<&TaskKey> {
        match self {
            Self::Store(StoreError::DuplicateId { key, .. }) => Some(key),
            Self::Store(StoreError::DuplicateUnique { holder }) => Some(holder),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolwright_core::{QueueName, State, TaskId};

    #[test]
    fn a_duplicate_names_the_task_that_is_there() {
        let key = TaskKey::new(QueueName::new("default").unwrap(), TaskId::new("a").unwrap());
        let error = Error::from(StoreError::DuplicateId { key: key.clone(), state: State::Pending });
        assert!(error.is_duplicate() && !error.is_retryable());
        assert_eq!(error.existing(), Some(&key));
        let unique = Error::from(StoreError::DuplicateUnique { holder: key.clone() });
        assert_eq!((unique.is_duplicate(), unique.existing()), (true, Some(&key)));
    }

    #[test]
    fn a_store_that_is_away_may_be_asked_again() {
        let error = Error::from(StoreError::Unavailable { why: "gone".into() });
        assert!(error.is_retryable() && !error.is_duplicate() && error.existing().is_none());
    }
}
