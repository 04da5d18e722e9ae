//! What can go wrong at the broker, named for what the caller can do.

use poolwright_core::{QueueName, State, TaskKey};

/// A refusal or a failure of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The id is taken.
    #[error("task id {} already exists in queue {} ({state})", key.id, key.queue)]
    DuplicateId {
        /// The id.
        key: TaskKey,
        /// The state of the task that has it.
        state: State,
    },
    /// The unique lock is held.
    #[error("an equal task is already enqueued in queue {}: {}", holder.queue, holder.id)]
    DuplicateUnique {
        /// Who holds the lock.
        holder: TaskKey,
    },
    /// No such task.
    #[error("no task {} in queue {}", key.id, key.queue)]
    NotFound {
        /// What was looked for.
        key: TaskKey,
    },
    /// No such queue: nothing was ever enqueued to it.
    #[error("no queue {queue} in the store")]
    NoQueue {
        /// What was looked for.
        queue: QueueName,
    },
    /// Another attempt owns the task now, or it has ended.
    #[error("the lease of task {key} is lost to a later attempt")]
    LeaseLost {
        /// The task.
        key: TaskKey,
    },
    /// The task is in a state in which this cannot be done.
    #[error("task {key} is {state}, and {wanted}")]
    WrongState {
        /// The task.
        key: TaskKey,
        /// Its state.
        state: State,
        /// What can be done in which states.
        wanted: &'static str,
    },
    /// The queue still has tasks.
    #[error("queue {queue} still has {tasks} tasks ({active} of them active)")]
    NotEmpty {
        /// The queue.
        queue: QueueName,
        /// All that it holds.
        tasks: u64,
        /// Those that run.
        active: u64,
    },
    /// A cursor of another list, another version or no cursor at all.
    #[error("not a cursor of this list: {given}")]
    BadCursor {
        /// What was given.
        given: String,
    },
    /// Stored data cannot be understood.
    #[error("stored data cannot be read: {what}")]
    Corrupt {
        /// What and why.
        what: String,
    },
    /// The store will not do it, now or later: a newer version, a read-only file, a closed store.
    #[error("the store refuses: {why}")]
    Refused {
        /// Why, and the cure.
        why: String,
    },
    /// The store cannot be reached, did not answer or has no room. It may or may not have done it.
    #[error("the store is unavailable: {why}")]
    Unavailable {
        /// Why.
        why: String,
    },
}

impl Error {
    /// The same call may succeed later, unchanged. A full disk counts: it can be emptied.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// The store did not take it because an equal one is there: not a fault, often what was wanted.
    #[must_use]
    pub const fn is_duplicate(&self) -> bool {
        matches!(self, Self::DuplicateId { .. } | Self::DuplicateUnique { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolwright_core::TaskId;

    #[test]
    fn messages_name_what_was_expected_and_what_came() {
        let key = TaskKey::new(QueueName::new("default").unwrap(), TaskId::new("a1").unwrap());
        let error =
            Error::WrongState { key, state: State::Active, wanted: "only a waiting task can be archived" };
        assert_eq!(error.to_string(), "task default/a1 is active, and only a waiting task can be archived");
        assert!(!error.is_retryable() && Error::Unavailable { why: "gone".into() }.is_retryable());
    }
}
