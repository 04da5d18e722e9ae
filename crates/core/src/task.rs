//! A task: as it is submitted, and as it is stored.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{
    Class, QueueName, Scope, State, Subject, TaskId, Tenant, Timestamp, Token, TypeName, UniqueLock,
};

/// The default largest payload: 1 MiB.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;

/// Text beside the payload: trace context and whatever the application adds.
pub type Headers = BTreeMap<String, String>;

/// A task's place: ids are unique within a queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskKey {
    /// The stored queue name.
    pub queue: QueueName,
    /// The id.
    pub id: TaskId,
}

impl TaskKey {
    /// The key of this id in this queue.
    #[must_use]
    pub const fn new(queue: QueueName, id: TaskId) -> Self {
        Self { queue, id }
    }
}

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.queue, self.id)
    }
}

/// When a task may run first. Relative times are added to the *store's* clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// At once.
    #[default]
    Now,
    /// So long after the store took it.
    After(Duration),
    /// At this time; a past one means at once.
    At(Timestamp),
}

impl When {
    /// The due time, or none for "at once", by the store's clock.
    #[must_use]
    pub fn due(self, now: Timestamp) -> Option<Timestamp> {
        let due = match self {
            Self::Now => return None,
            Self::After(delay) => now + delay,
            Self::At(time) => time,
        };
        (due > now).then_some(due)
    }
}

/// What happens when a task with the same id exists in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// The enqueue is refused, whatever state the other one is in (asynq's rule).
    #[default]
    Reject,
    /// One that has ended (archived, completed) is replaced; a live one refuses.
    ReplaceFinished,
    /// One that waits will do (the enqueue succeeds and changes nothing); one that runs is run once more after it
    /// ends; one that has ended is replaced.
    RunAgain,
}

/// A task as it is submitted. The client fills it from a request and the type's rules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NewTask {
    /// Where it goes.
    pub key: TaskKey,
    /// What it is.
    pub task_type: TypeName,
    /// The application's bytes; JSON unless the type says otherwise.
    pub payload: Bytes,
    /// Text beside the payload.
    pub headers: Headers,
    /// When it may run first.
    pub when: When,
    /// How often it may be tried again.
    pub max_retry: u32,
    /// How long one attempt may take; zero: no limit.
    pub timeout: Duration,
    /// After this time it is not tried any more.
    pub deadline: Option<Timestamp>,
    /// How long it is kept after success; zero: not at all.
    pub retention: Duration,
    /// The lock it asks for.
    pub unique: Option<UniqueLock>,
    /// What happens when its id is taken.
    pub on_conflict: OnConflict,
    /// What it works for.
    pub subjects: Vec<Subject>,
    /// What it belongs to.
    pub scopes: Vec<Scope>,
    /// Whom it is done for.
    pub tenant: Option<Tenant>,
}

impl NewTask {
    /// A task with asynq's defaults: 25 retries, a timeout of 30 minutes, at once, nothing kept.
    pub fn new(queue: QueueName, id: TaskId, task_type: TypeName, payload: impl Into<Bytes>) -> Self {
        Self {
            key: TaskKey::new(queue, id),
            task_type,
            payload: payload.into(),
            headers: Headers::new(),
            when: When::Now,
            max_retry: 25,
            timeout: Duration::from_secs(30 * 60),
            deadline: None,
            retention: Duration::ZERO,
            unique: None,
            on_conflict: OnConflict::Reject,
            subjects: Vec::new(),
            scopes: Vec::new(),
            tenant: None,
        }
    }
}

/// How far a running handler says it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// From 0 to 1.
    pub done: f64,
    /// A word about the step.
    pub note: String,
    /// When it was reported, by the store's clock.
    pub at: Timestamp,
}

/// A task as it is stored.
///
/// Times are the store's. A field that its state does not use is none: `due` only while scheduled or in retry,
/// `started_at` and `lease_until` only while active, `failed` after a failed attempt, `completed_at` and `expires_at`
/// once completed.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRecord {
    /// Where it is.
    pub key: TaskKey,
    /// What it is.
    pub task_type: TypeName,
    /// Its state.
    pub state: State,
    /// The application's bytes.
    pub payload: Bytes,
    /// Text beside the payload.
    pub headers: Headers,
    /// How often it may be tried again.
    pub max_retry: u32,
    /// Retries used.
    pub retried: u32,
    /// Deferrals in a row (rate limits, lock conflicts, snoozes), which use no retry.
    pub deferrals: u32,
    /// Leases that expired, which use no retry either.
    pub crashes: u32,
    /// How long one attempt may take; zero: no limit.
    pub timeout: Duration,
    /// After this time it is not tried any more.
    pub deadline: Option<Timestamp>,
    /// How long it is kept after success.
    pub retention: Duration,
    /// The lock it holds or held.
    pub unique: Option<UniqueLock>,
    /// What it works for.
    pub subjects: Vec<Subject>,
    /// What it belongs to.
    pub scopes: Vec<Scope>,
    /// Whom it is done for.
    pub tenant: Option<Tenant>,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// Since when it waits for a worker, while pending.
    pub pending_since: Option<Timestamp>,
    /// When it becomes pending, while scheduled or in retry.
    pub due: Option<Timestamp>,
    /// When the present attempt was claimed, while active.
    pub started_at: Option<Timestamp>,
    /// Until when the present attempt owns it, while active.
    pub lease_until: Option<Timestamp>,
    /// The token of the present attempt; of the last one in other states.
    pub token: Option<Token>,
    /// The last failure.
    pub failed: Option<Failure>,
    /// When it succeeded.
    pub completed_at: Option<Timestamp>,
    /// Until when it is kept, once completed.
    pub expires_at: Option<Timestamp>,
    /// What the handler stored.
    pub result: Option<Bytes>,
    /// How far the handler said it was.
    pub progress: Option<Progress>,
    /// Somebody asked for its end.
    pub cancel_requested: bool,
    /// An enqueue with `run_again` met it while it ran.
    pub runs_again: bool,
}

/// The last failure of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of trouble.
    pub class: Class,
    /// What was said, at most [`crate::text::ERROR_BYTES_MAX`] bytes.
    pub error: Arc<str>,
    /// When.
    pub at: Timestamp,
}

impl TaskRecord {
    /// A task to which nothing has happened, stored at `now`: scheduled when it has a due time, else pending.
    #[must_use]
    pub fn stored(task: NewTask, now: Timestamp) -> Self {
        let due = task.when.due(now);
        Self {
            key: task.key,
            task_type: task.task_type,
            state: if due.is_some() { State::Scheduled } else { State::Pending },
            payload: task.payload,
            headers: task.headers,
            max_retry: task.max_retry,
            retried: 0,
            deferrals: 0,
            crashes: 0,
            timeout: task.timeout,
            deadline: task.deadline,
            retention: task.retention,
            unique: task.unique,
            subjects: task.subjects,
            scopes: task.scopes,
            tenant: task.tenant,
            enqueued_at: now,
            pending_since: due.is_none().then_some(now),
            due,
            started_at: None,
            lease_until: None,
            token: None,
            failed: None,
            completed_at: None,
            expires_at: None,
            result: None,
            progress: None,
            cancel_requested: false,
            runs_again: false,
        }
    }

    /// The facts that [`crate::verdict::judge`] wants of this attempt.
    #[must_use]
    pub fn attempt(&self) -> crate::Attempt {
        crate::Attempt {
            retried: self.retried,
            max_retry: self.max_retry,
            deferrals: self.deferrals,
            crashes: self.crashes,
            deadline: self.deadline,
            retention: self.retention,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_due_time_that_has_passed_means_at_once() {
        let now = Timestamp::from_secs(100);
        assert_eq!(When::At(Timestamp::from_secs(99)).due(now), None);
        assert_eq!(When::At(now).due(now), None);
        assert_eq!(When::After(Duration::ZERO).due(now), None);
        assert_eq!(When::After(Duration::from_secs(5)).due(now), Some(Timestamp::from_secs(105)));
    }

    #[test]
    fn a_new_task_survives_json() {
        let mut task = NewTask::new(
            QueueName::new("default").unwrap(),
            TaskId::new("a").unwrap(),
            TypeName::new("x:y").unwrap(),
            &b"\xff\x00"[..],
        );
        task.when = When::After(Duration::from_millis(1_500));
        task.unique = Some(UniqueLock::new("x:y:0", Duration::from_secs(9)));
        task.subjects.push(Subject::new("knowledge", "kn_42"));
        let json = serde_json::to_string(&task).unwrap();
        assert_eq!(serde_json::from_str::<NewTask>(&json).unwrap(), task);
    }
}
