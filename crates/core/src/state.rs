//! The states of a stored task.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Where a stored task is. The words are asynq's, and the same in every store, command and API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waits for a worker.
    Pending,
    /// A worker holds its lease.
    Active,
    /// Waits for its first due time.
    Scheduled,
    /// Failed, and waits for its next try.
    Retry,
    /// Ended badly; kept for an operator.
    Archived,
    /// Ended well; kept until its retention passes.
    Completed,
}

impl State {
    /// All of them, in the order in which screens show them.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Active, Self::Scheduled, Self::Retry, Self::Archived, Self::Completed];

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Scheduled => "scheduled",
            Self::Retry => "retry",
            Self::Archived => "archived",
            Self::Completed => "completed",
        }
    }

    /// The task has ended and waits for nothing.
    #[must_use]
    pub const fn is_finished(self) -> bool {
        matches!(self, Self::Archived | Self::Completed)
    }

    /// The task will run without anybody's help, or is running.
    #[must_use]
    pub const fn is_live(self) -> bool {
        !self.is_finished()
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is no state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown state `{0}`, expected pending, active, scheduled, retry, archived or completed")]
pub struct UnknownState(pub String);

impl FromStr for State {
    type Err = UnknownState;
    fn from_str(text: &str) -> Result<Self, UnknownState> {
        Self::ALL.into_iter().find(|s| s.as_str() == text).ok_or_else(|| UnknownState(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_parses_its_own_word() {
        for state in State::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        assert!("done".parse::<State>().is_err());
    }
}
