//! What an operator may do with a task, by its state.

use std::fmt;

use poolwright_core::State;
use serde::{Deserialize, Serialize};

/// Something an operator does with one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Ask for its end: a waiting task is gone, a running one is told.
    Cancel,
    /// Make it pending now, whatever it waits for or however it ended.
    RunNow,
    /// Set it aside, to be looked at and perhaps run later; with a dead letter.
    Archive,
    /// Remove it.
    Delete,
}

impl Action {
    /// What may be done with a task in this state, most useful first.
    ///
    /// | state | cancel | run_now | archive | delete |
    /// | --- | --- | --- | --- | --- |
    /// | pending | unless protected | | yes | unless protected |
    /// | active | unless protected | | | |
    /// | scheduled, retry | unless protected | yes | yes | unless protected |
    /// | archived, completed | | yes | | yes |
    ///
    /// `is_protected`: the file says that no cancel reaches tasks of this type. They can still be archived, because
    /// an archived task keeps all that it carries.
    #[must_use]
    pub const fn allowed(state: State, is_protected: bool) -> &'static [Self] {
        use Action::{Archive, Cancel, Delete, RunNow};
        match (state, is_protected) {
            (State::Pending, false) => &[Cancel, Archive, Delete],
            (State::Pending, true) => &[Archive],
            (State::Active, false) => &[Cancel],
            (State::Active, true) => &[],
            (State::Scheduled | State::Retry, false) => &[Cancel, RunNow, Archive, Delete],
            (State::Scheduled | State::Retry, true) => &[RunNow, Archive],
            (State::Archived | State::Completed, _) => &[RunNow, Delete],
        }
    }

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::RunNow => "run_now",
            Self::Archive => "archive",
            Self::Delete => "delete",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protected_task_is_never_cancelled_or_deleted_before_its_end() {
        for state in State::ALL {
            let (open, closed) = (Action::allowed(state, false), Action::allowed(state, true));
            assert!(closed.iter().all(|action| open.contains(action)), "{state}");
            let may_vanish = closed.contains(&Action::Cancel) || closed.contains(&Action::Delete);
            assert_eq!(may_vanish, state.is_finished(), "{state}");
        }
    }

    #[test]
    fn words_are_the_same_in_text_and_json() {
        for action in [Action::Cancel, Action::RunNow, Action::Archive, Action::Delete] {
            assert_eq!(serde_json::to_value(action).unwrap(), action.as_str());
        }
    }
}
