//! Names and ids: one type each, so that two strings side by side cannot be swapped.
//!
//! Invariant: a value of these types is never empty, has no control character and fits every store.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The longest name or id, in bytes. Redis and SQL keys stay well below their limits with it.
pub const NAME_BYTES_MAX: usize = 255;

/// Why a text cannot be a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// The text is empty or only blanks.
    #[error("a {kind} must not be empty")]
    Empty {
        /// Which kind of name it should have been.
        kind: &'static str,
    },
    /// The text is longer than [`NAME_BYTES_MAX`].
    #[error("a {kind} has at most {NAME_BYTES_MAX} bytes, this one has {bytes}")]
    TooLong {
        /// Which kind of name it should have been.
        kind: &'static str,
        /// Its length in bytes.
        bytes: usize,
    },
    /// The text holds a character that no store or terminal should see.
    #[error("a {kind} must not contain control characters, this one has {found:?} at byte {at}")]
    Control {
        /// Which kind of name it should have been.
        kind: &'static str,
        /// The character.
        found: char,
        /// Where it stands, in bytes.
        at: usize,
    },
}

fn check(kind: &'static str, text: &str) -> Result<(), NameError> {
    if text.trim().is_empty() {
        return Err(NameError::Empty { kind });
    }
    if text.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong { kind, bytes: text.len() });
    }
    match text.char_indices().find(|(_, c)| c.is_control()) {
        Some((at, found)) => Err(NameError::Control { kind, found, at }),
        None => Ok(()),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks the text and makes it a name.
            ///
            /// # Errors
            /// [`NameError`] when it is empty, longer than [`NAME_BYTES_MAX`] or holds a control character.
            pub fn new(text: impl AsRef<str>) -> Result<Self, NameError> {
                let text = text.as_ref();
                check($kind, text)?;
                Ok(Self(text.into()))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
        impl Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        impl PartialEq<str> for $type {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }
        impl PartialEq<&str> for $type {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }
        impl std::str::FromStr for $type {
            type Err = NameError;
            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }
        impl TryFrom<String> for $type {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                Self::new(text)
            }
        }
        impl TryFrom<&str> for $type {
            type Error = NameError;
            fn try_from(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }
        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.0.as_ref().to_owned()
            }
        }
    };
}

name! {
    /// A queue's *stored* name: what the broker calls it (`low`), not what the file calls it (`maintenance`).
    QueueName, "queue name"
}
name! {
    /// A pool's name, as in `[pools.NAME]`.
    PoolName, "pool name"
}
name! {
    /// A task type's name, such as `document:process`.
    TypeName, "task type"
}
name! {
    /// A task's id, unique within its queue.
    TaskId, "task id"
}

impl TaskId {
    /// A fresh time-ordered id (UUID version 7) made from the time and 10 random bytes given.
    ///
    /// Ids that grow with time keep the index of a SQL store dense.
    #[must_use]
    pub fn fresh(now: crate::Timestamp, chance: &crate::Chance) -> Self {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        let id = uuid::Builder::from_unix_timestamp_millis(millis, &chance.bytes()).into_uuid();
        let mut buffer = uuid::Uuid::encode_buffer();
        Self(Arc::from(&*id.hyphenated().encode_lower(&mut buffer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Chance, Timestamp};

    #[test]
    fn a_name_refuses_empty_long_and_control_text() {
        assert_eq!(QueueName::new(" "), Err(NameError::Empty { kind: "queue name" }));
        assert!(matches!(TaskId::new("x".repeat(256)), Err(NameError::TooLong { bytes: 256, .. })));
        assert!(TaskId::new("x".repeat(255)).is_ok());
        assert!(matches!(TypeName::new("a\nb"), Err(NameError::Control { found: '\n', at: 1, .. })));
    }

    #[test]
    fn a_name_that_is_wrong_does_not_deserialize() {
        assert!(serde_json::from_str::<PoolName>("\"\"").is_err());
        assert_eq!(serde_json::from_str::<PoolName>("\"core\"").unwrap(), "core");
    }

    #[test]
    fn fresh_ids_are_ordered_by_time() {
        let chance = Chance::seeded(7);
        let first = TaskId::fresh(Timestamp::from_millis(1_000), &chance);
        let second = TaskId::fresh(Timestamp::from_millis(1_001), &chance);
        assert!(first < second);
        assert_ne!(
            TaskId::fresh(Timestamp::from_millis(5), &chance),
            TaskId::fresh(Timestamp::from_millis(5), &chance)
        );
    }
}
