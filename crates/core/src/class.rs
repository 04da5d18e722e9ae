//! The classes of errors: what kind of trouble ended an attempt.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Why an attempt did not succeed. The file maps classes to retry policies by these words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// May work next time; retried by the type's policy.
    Transient,
    /// Will never work; dead letter now.
    Permanent,
    /// The other side asked to wait; uses no attempt.
    RateLimited,
    /// Somebody else holds what it needs; uses no attempt.
    LockConflict,
    /// The handler asked to be called later; uses no attempt.
    Snoozed,
    /// No longer wanted; gone, with no dead letter.
    Revoked,
    /// A person must act first; goes back, and its queue is paused with the reason.
    NeedsOperator,
    /// Ran longer than its timeout or past its deadline.
    TimedOut,
    /// The handler panicked.
    Panicked,
    /// Stopped on request.
    Cancelled,
    /// The payload does not decode to the handler's type.
    Undecodable,
    /// No handler here knows the type.
    NoHandler,
    /// Its worker died or lost contact: the lease expired.
    Crashed,
    /// An operator archived it by hand.
    Operator,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Transient,
        Self::Permanent,
        Self::RateLimited,
        Self::LockConflict,
        Self::Snoozed,
        Self::Revoked,
        Self::NeedsOperator,
        Self::TimedOut,
        Self::Panicked,
        Self::Cancelled,
        Self::Undecodable,
        Self::NoHandler,
        Self::Crashed,
        Self::Operator,
    ];

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Permanent => "permanent",
            Self::RateLimited => "rate_limited",
            Self::LockConflict => "lock_conflict",
            Self::Snoozed => "snoozed",
            Self::Revoked => "revoked",
            Self::NeedsOperator => "needs_operator",
            Self::TimedOut => "timed_out",
            Self::Panicked => "panicked",
            Self::Cancelled => "cancelled",
            Self::Undecodable => "undecodable",
            Self::NoHandler => "no_handler",
            Self::Crashed => "crashed",
            Self::Operator => "operator",
        }
    }

    /// A class whose delay `on_error` of the file may set. The others are never retried, or by their own rule.
    #[must_use]
    pub const fn takes_policy(self) -> bool {
        matches!(
            self,
            Self::Transient
                | Self::RateLimited
                | Self::LockConflict
                | Self::TimedOut
                | Self::Panicked
                | Self::Crashed
                | Self::NoHandler
        )
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is no error class.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown error class `{0}`")]
pub struct UnknownClass(pub String);

impl FromStr for Class {
    type Err = UnknownClass;
    fn from_str(text: &str) -> Result<Self, UnknownClass> {
        Self::ALL.into_iter().find(|c| c.as_str() == text).ok_or_else(|| UnknownClass(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_parses_its_own_word() {
        for class in Class::ALL {
            assert_eq!(class.as_str().parse(), Ok(class));
            assert_eq!(serde_json::to_value(class).unwrap(), class.as_str());
        }
    }
}
