//! Changes single tasks and whole queues by hand.
//!
//! Invariant: the task is read again before an act, and the act is refused unless it is in the fresh list of what is
//! allowed; the store checks the state once more in the step that changes it.

use bytes::Bytes;
use poolwright_broker::{Bulk, BulkAction};
use poolwright_core::{State, TaskRecord, When};

use crate::{Action, Error, TaskInspector, Which, queues, view};

/// How many tasks one call to the store changes when a whole state is changed: it bounds how long others wait.
const BULK_STEP: u32 = 500;

impl TaskInspector {
    /// Makes a scheduled, retry, archived or completed task pending; answers with the state it was in. Its retries
    /// stay used: an archived task that had none left gets exactly one more attempt.
    ///
    /// # Errors
    /// [`Error::NotAllowed`], and those of [`TaskInspector::task`].
    pub async fn run_now(&self, which: impl Into<Which>) -> Result<State, Error> {
        let task = self.allowed(which, Action::RunNow).await?;
        Ok(self.broker.run_now(task.key).await?)
    }

    /// Archives a waiting task, with a dead letter of class `operator` that gives this reason; answers with the state
    /// it was in.
    ///
    /// # Errors
    /// [`Error::NotAllowed`], and those of [`TaskInspector::task`].
    pub async fn archive(&self, which: impl Into<Which>, reason: &str) -> Result<State, Error> {
        let task = self.allowed(which, Action::Archive).await?;
        Ok(self.broker.archive(task.key, reason.to_owned()).await?)
    }

    /// Deletes a task that does not run; answers with the state it was in.
    ///
    /// # Errors
    /// [`Error::NotAllowed`], [`Error::Protected`], and those of [`TaskInspector::task`].
    pub async fn delete(&self, which: impl Into<Which>) -> Result<State, Error> {
        let task = self.allowed(which, Action::Delete).await?;
        Ok(self.broker.delete(task.key).await?)
    }

    /// Gives a waiting task another due time; now makes it pending.
    ///
    /// # Errors
    /// [`Error::Store`] with `WrongState`, and those of [`TaskInspector::task`].
    pub async fn reschedule(&self, which: impl Into<Which>, when: When) -> Result<(), Error> {
        let key = self.key(which.into()).await?;
        Ok(self.broker.reschedule(key, when).await?)
    }

    /// Replaces the payload of a waiting task. Its lock, subjects and scopes stay as they were enqueued.
    ///
    /// # Errors
    /// [`Error::Store`] with `WrongState`, and those of [`TaskInspector::task`].
    pub async fn update_payload(&self, which: impl Into<Which>, payload: Bytes) -> Result<(), Error> {
        let key = self.key(which.into()).await?;
        Ok(self.broker.update_payload(key, payload).await?)
    }

    /// Runs all tasks of one queue and state now; answers with how many. Of scheduled, retry, archived and completed
    /// tasks. When it fails in the middle, what was done stays done.
    ///
    /// # Errors
    /// [`Error::UnknownQueue`], [`Error::Store`].
    pub async fn run_all(&self, queue: &str, state: State) -> Result<u64, Error> {
        self.bulk(queue, state, BulkAction::RunNow, "").await
    }

    /// Archives all tasks of one queue and state with this reason; answers with how many. Of pending, scheduled and
    /// retry tasks. When it fails in the middle, what was done stays done.
    ///
    /// # Errors
    /// [`Error::UnknownQueue`], [`Error::Store`].
    pub async fn archive_all(&self, queue: &str, state: State, reason: &str) -> Result<u64, Error> {
        self.bulk(queue, state, BulkAction::Archive, reason).await
    }

    /// Deletes all tasks of one queue and state; answers with how many. Of all but active tasks. When it fails in the
    /// middle, what was done stays done.
    ///
    /// # Errors
    /// [`Error::QueueProtected`] for waiting tasks of a queue that takes a protected type;
    /// [`Error::UnknownQueue`], [`Error::Store`].
    pub async fn delete_all(&self, queue: &str, state: State) -> Result<u64, Error> {
        let stored = self.stored(queue).await?;
        let types = queues::protected_types(&self.topology, &stored);
        if !state.is_finished() && !types.is_empty() {
            return Err(Error::QueueProtected { queue: stored, state, types });
        }
        self.bulk(queue, state, BulkAction::Delete, "").await
    }

    /// Stops claims from a queue; what runs goes on. False when it was paused already: the reason is replaced.
    ///
    /// # Errors
    /// [`Error::UnknownQueue`], [`Error::Store`].
    pub async fn pause(&self, queue: &str, reason: &str) -> Result<bool, Error> {
        let queue = self.stored(queue).await?;
        Ok(self.broker.pause(queue, reason.to_owned()).await?)
    }

    /// Allows claims from a queue again; false when it was not paused.
    ///
    /// # Errors
    /// [`Error::UnknownQueue`], [`Error::Store`].
    pub async fn resume(&self, queue: &str) -> Result<bool, Error> {
        let queue = self.stored(queue).await?;
        Ok(self.broker.resume(queue).await?)
    }

    /// Removes a queue from the store with everything it has, and answers with how many tasks that were. Without
    /// `force` only an empty one. A queue of the file comes back with its next task.
    ///
    /// # Errors
    /// [`Error::UnknownQueue`]; [`Error::Store`] with `NoQueue` or `NotEmpty`.
    pub async fn remove_queue(&self, queue: &str, force: bool) -> Result<u64, Error> {
        let queue = self.stored(queue).await?;
        Ok(self.broker.remove_queue(queue, force).await?)
    }

    /// Changes as many tasks as there were at the start, so that busy producers do not keep it going.
    async fn bulk(&self, queue: &str, state: State, action: BulkAction, reason: &str) -> Result<u64, Error> {
        let queue = self.stored(queue).await?;
        let stats = self.broker.queue_stats(vec![queue.clone()]).await?;
        let (there, mut total) = (stats.first().map_or(0, |stats| stats.count(state)), 0);
        while total < there {
            let limit = u32::try_from(there - total).unwrap_or(u32::MAX).min(BULK_STEP);
            let (queue, reason) = (queue.clone(), reason.to_owned());
            match self.broker.bulk(Bulk { queue, state, action, limit, reason }).await? {
                0 => break,
                changed => total += changed,
            }
        }
        Ok(total)
    }

    /// The task as it is now, if this may be done with it.
    async fn allowed(&self, which: impl Into<Which>, action: Action) -> Result<TaskRecord, Error> {
        let task = self.raw(which).await?;
        let is_protected = view::is_protected(&self.topology, &task.task_type);
        let allowed = Action::allowed(task.state, is_protected);
        if allowed.contains(&action) {
            return Ok(task);
        }
        if is_protected && Action::allowed(task.state, false).contains(&action) {
            return Err(Error::Protected { key: task.key, task_type: task.task_type });
        }
        Err(Error::NotAllowed { key: task.key, state: task.state, action, allowed: allowed.to_vec() })
    }
}
