//! Why something could not be shown or done, named for what the caller can do about it.

use poolwright_broker::Error as StoreError;
use poolwright_core::{NameError, QueueName, State, TaskId, TaskKey, TypeName};
use poolwright_ledger::{Error as LedgerError, LetterId};

use crate::Action;

/// A refusal of the inspector, or a failure of what it stands on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither the file nor the store knows this queue: correct the name.
    #[error("unknown queue `{queue}`{hint}")]
    UnknownQueue {
        /// The name that was given.
        queue: String,
        /// The name that was probably meant, as the end of the sentence; or nothing.
        hint: String,
    },
    /// No queue has a task with this id.
    #[error("no task {id} in any queue")]
    Nowhere {
        /// The id.
        id: TaskId,
    },
    /// Several queues have a task with this id: say which queue.
    #[error("task {id} is in several queues ({}), say which one", list(.queues))]
    Ambiguous {
        /// The id.
        id: TaskId,
        /// The queues that have one, by their stored names.
        queues: Vec<QueueName>,
    },
    /// The task is in a state in which this cannot be done.
    #[error("task {key} is {state}: {action} is not possible, allowed are: {}", list(.allowed))]
    NotAllowed {
        /// The task.
        key: TaskKey,
        /// Its state.
        state: State,
        /// What was asked for.
        action: Action,
        /// What can be done.
        allowed: Vec<Action>,
    },
    /// The file protects tasks of this type while they wait or run.
    #[error("task {key} is protected: a waiting or running `{task_type}` is neither cancelled nor deleted")]
    Protected {
        /// The task.
        key: TaskKey,
        /// Its type.
        task_type: TypeName,
    },
    /// The queue may hold protected tasks, so its waiting ones are not deleted in one go: delete them one by one.
    #[error("queue {queue} takes protected types ({}): delete its {state} tasks one by one", list(.types))]
    QueueProtected {
        /// The queue.
        queue: QueueName,
        /// The state that was to be emptied.
        state: State,
        /// The protected types that it takes.
        types: Vec<TypeName>,
    },
    /// The dead letter was replayed before: look at that task, or insist.
    #[error("dead letter {letter} was replayed already, as task {task}")]
    Replayed {
        /// The letter.
        letter: LetterId,
        /// The task that carries the work on.
        task: TaskKey,
    },
    /// A name or an id that no store can have.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The ledger did not do it.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl Error {
    /// What was asked for is not there.
    #[must_use]
    pub const fn is_not_found(&self) -> bool {
        matches!(
            self,
            Self::UnknownQueue { .. }
                | Self::Nowhere { .. }
                | Self::Store(StoreError::NotFound { .. } | StoreError::NoQueue { .. })
                | Self::Ledger(LedgerError::NoLetter(_))
        )
    }

    /// The same call may succeed later, unchanged.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Store(error) => error.is_retryable(),
            Self::Ledger(error) => error.is_retryable(),
            _ => false,
        }
    }
}

fn list<T: ToString>(words: &[T]) -> String {
    match words {
        [] => "nothing".to_owned(),
        words => words.iter().map(T::to_string).collect::<Vec<_>>().join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_can_be_done_instead() {
        let key = TaskKey::new(QueueName::new("low").unwrap(), TaskId::new("a1").unwrap());
        let error = Error::NotAllowed {
            key: key.clone(),
            state: State::Archived,
            action: Action::Cancel,
            allowed: vec![Action::RunNow, Action::Delete],
        };
        assert_eq!(
            error.to_string(),
            "task low/a1 is archived: cancel is not possible, allowed are: run_now, delete"
        );
        let error = Error::NotAllowed { key, state: State::Active, action: Action::Delete, allowed: vec![] };
        assert!(error.to_string().ends_with("allowed are: nothing"));
    }
}
