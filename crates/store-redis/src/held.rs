//! What this process has claimed and not settled yet: asynq's cancel channel names a task by its id alone, and its screens want
//! to see what a worker runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use poolwright_broker::Held;
use poolwright_core::{QueueName, TaskId, TaskKey, TaskRecord, Timestamp, Token};

use crate::notes;

/// What is known of a task that runs here.
#[derive(Debug, Clone)]
pub(crate) struct Running {
    pub(crate) payload: Bytes,
    /// Until when its attempt may take.
    pub(crate) deadline: Timestamp,
    /// Its entries in the index, a line each.
    pub(crate) entries: String,
    /// Whether there is more to do at its end than to take it away: a lock, a follow-up.
    pub(crate) leaves_more: bool,
    /// Its lease, as far as it is known here.
    pub(crate) lease_until: Timestamp,
    /// The proof of its attempt.
    pub(crate) token: Option<Token>,
    /// How many were claimed here before it.
    pub(crate) nth: u64,
}

/// The tasks that run here.
#[derive(Debug, Default)]
pub(crate) struct HeldTasks {
    tasks: Mutex<HashMap<TaskId, Vec<(QueueName, Running)>>>,
    claimed: AtomicU64,
}

impl HeldTasks {
    fn tasks(&self) -> MutexGuard<'_, HashMap<TaskId, Vec<(QueueName, Running)>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task was claimed or taken over.
    pub(crate) fn add(&self, task: &TaskRecord) {
        let started = task.started_at.unwrap_or(task.enqueued_at);
        let timeout = (!task.timeout.is_zero()).then(|| started + task.timeout);
        let deadline = timeout.into_iter().chain(task.deadline).min().unwrap_or(Timestamp::MAX);
        let entries = notes::entries(&task.subjects, &task.scopes);
        let running = Running {
            payload: task.payload.clone(),
            deadline,
            entries,
            leaves_more: task.unique.is_some() || task.runs_again,
            lease_until: task.lease_until.unwrap_or(started),
            token: task.token,
            nth: self.claimed.fetch_add(1, Ordering::Relaxed),
        };
        let mut tasks = self.tasks();
        let queues = tasks.entry(task.key.id.clone()).or_default();
        queues.retain(|(queue, _)| *queue != task.key.queue);
        queues.push((task.key.queue.clone(), running));
    }

    /// The lease of a task was made to last until then.
    pub(crate) fn extended(&self, key: &TaskKey, lease_until: Timestamp) {
        let mut tasks = self.tasks();
        let queues = tasks.get_mut(&key.id).into_iter().flatten();
        queues.filter(|(queue, _)| *queue == key.queue).for_each(|(_, task)| task.lease_until = lease_until);
    }

    /// An attempt was settled, or is lost; a later one of the same task stays.
    pub(crate) fn remove(&self, held: &Held) {
        let mut tasks = self.tasks();
        if let Some(queues) = tasks.get_mut(&held.key.id) {
            queues.retain(|(queue, task)| *queue != held.key.queue || task.token != Some(held.token));
            if queues.is_empty() {
                tasks.remove(&held.key.id);
            }
        }
    }

    /// The tasks of this id, in whatever queues.
    pub(crate) fn of(&self, id: &str) -> Vec<TaskKey> {
        let tasks = self.tasks();
        let Some((id, queues)) = tasks.get_key_value(id) else { return Vec::new() };
        queues.iter().map(|(queue, _)| TaskKey::new(queue.clone(), id.clone())).collect()
    }

    /// What is known of this task.
    pub(crate) fn get(&self, key: &TaskKey) -> Option<Running> {
        let tasks = self.tasks();
        let queues = tasks.get(&key.id)?;
        queues.iter().find(|(queue, _)| *queue == key.queue).map(|(_, running)| running.clone())
    }
}
