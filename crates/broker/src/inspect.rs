//! Looking at queues and changing them by hand.

use bytes::Bytes;
use poolwright_core::{QueueName, Scope, State, Subject, TaskKey, TaskRecord, Timestamp, TypeName, When};
use serde::{Deserialize, Serialize};

use crate::{Reply, ServerBeat};

/// A paused queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// Why; what an operator wrote or a handler's error said.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
}

/// A queue in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStats {
    /// The stored name.
    pub queue: QueueName,
    /// Tasks in each state.
    pub pending: u64,
    /// Running.
    pub active: u64,
    /// Waiting for their first due time.
    pub scheduled: u64,
    /// Waiting for their next try.
    pub retry: u64,
    /// Ended badly.
    pub archived: u64,
    /// Ended well, kept.
    pub completed: u64,
    /// Set aside because they do not decode.
    pub quarantined: u64,
    /// Ended attempts today (UTC).
    pub processed_today: u64,
    /// Of these, failed.
    pub failed_today: u64,
    /// Ended attempts ever.
    pub processed: u64,
    /// Of these, failed.
    pub failed: u64,
    /// Whether and why it is paused.
    pub paused: Option<Paused>,
    /// Since when the oldest pending task waits.
    pub oldest_pending: Option<Timestamp>,
}

impl QueueStats {
    /// An empty queue of this name: also what is said of one that nothing was ever enqueued to.
    #[must_use]
    pub const fn empty(queue: QueueName) -> Self {
        Self {
            queue,
            pending: 0,
            active: 0,
            scheduled: 0,
            retry: 0,
            archived: 0,
            completed: 0,
            quarantined: 0,
            processed_today: 0,
            failed_today: 0,
            processed: 0,
            failed: 0,
            paused: None,
            oldest_pending: None,
        }
    }

    /// Tasks in this state.
    #[must_use]
    pub const fn count(&self, state: State) -> u64 {
        match state {
            State::Pending => self.pending,
            State::Active => self.active,
            State::Scheduled => self.scheduled,
            State::Retry => self.retry,
            State::Archived => self.archived,
            State::Completed => self.completed,
        }
    }

    /// All that it holds, completed ones left out (asynq's "size").
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.pending + self.active + self.scheduled + self.retry + self.archived
    }
}

/// The longest history that a store keeps and [`Inspect::history`] gives, in days.
pub const HISTORY_DAYS_MAX: u32 = 366;

/// A day of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayStats {
    /// Days since 1970-01-01, UTC.
    pub day: i64,
    /// Ended attempts.
    pub processed: u64,
    /// Of these, failed.
    pub failed: u64,
}

/// Where a page begins: opaque, made by the store, good for one list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cursor(pub String);

/// A request for a page of one queue in one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    /// The stored name.
    pub queue: QueueName,
    /// The state.
    pub state: State,
    /// Where to go on; none begins.
    pub after: Option<Cursor>,
    /// How many at most, 1 to 1,000; what lies outside is brought inside.
    pub limit: u32,
}

/// A page. Pending comes from the end of the queue to its front, active by claim, latest first (in any order where they
/// were claimed at the same time), scheduled and retry by due time, archived by last failure and completed by expiry,
/// latest first.
///
/// A task that stays where it is while pages are read is shown exactly once. One that moves may be left out; it is never
/// shown twice, but for one thing: a scheduled or retry task that got a later due time meanwhile may come again with it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// The tasks.
    pub tasks: Vec<TaskRecord>,
    /// Where the next page begins; none: this was the last.
    pub next: Option<Cursor>,
}

/// What to look for across queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Find {
    /// Tasks that work for it.
    Subject(Subject),
    /// Tasks that belong to it.
    Scope(Scope),
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// The tasks, in any state, with their type.
    pub tasks: Vec<(TaskKey, State, TypeName)>,
    /// Nothing else matches. False when the limit was reached or a part could not be looked at.
    pub complete: bool,
}

/// What a cancel request met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelOutcome {
    /// Waits, and will be discarded instead of run.
    Flagged,
    /// Runs, and its worker is told at the next lease extension at the latest.
    Signalled,
    /// Had ended already; left as it is.
    Finished,
    /// No such task.
    NotFound,
}

/// What a bulk call does. On tasks in a state that is not named it does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BulkAction {
    /// As [`Inspect::run_now`]; of scheduled, retry, archived and completed tasks.
    RunNow,
    /// As [`Inspect::archive`]; of pending, scheduled and retry tasks.
    Archive,
    /// As [`Inspect::delete`]; of all but active tasks.
    Delete,
}

/// A bulk call on one queue and state. Pending tasks come from the front of their queue, the others by the time that orders
/// their pages, earliest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bulk {
    /// The stored name.
    pub queue: QueueName,
    /// The state the tasks are in.
    pub state: State,
    /// What to do with them.
    pub action: BulkAction,
    /// How many at most in this call; repeat until it answers 0.
    pub limit: u32,
    /// Said of archived ones.
    pub reason: String,
}

/// A record that could not be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// Where it was, as far as known.
    pub queue: QueueName,
    /// Its id as stored, which may be no valid id.
    pub id: String,
    /// Why.
    pub reason: String,
    /// What was stored.
    pub raw: Bytes,
    /// When it was set aside.
    pub at: Timestamp,
}

/// Looks and acts by hand.
///
/// Every method may fail with [`crate::Error::Unavailable`] or [`crate::Error::Refused`]; others are named.
pub trait Inspect: Send + Sync {
    /// The stored names of all queues that ever got a task, in order.
    fn queues(&self) -> Reply<'_, Vec<QueueName>>;

    /// Numbers of these queues, in order; zeros for unknown ones.
    fn queue_stats(&self, queues: Vec<QueueName>) -> Reply<'_, Vec<QueueStats>>;

    /// The last `days` days (UTC), today first, days without work included as zeros; at most [`HISTORY_DAYS_MAX`].
    fn history(&self, queue: QueueName, days: u32) -> Reply<'_, Vec<DayStats>>;

    /// A page of one queue and state; empty for an unknown queue.
    ///
    /// # Errors
    /// [`crate::Error::BadCursor`].
    fn page(&self, request: PageRequest) -> Reply<'_, Page>;

    /// One task.
    fn get(&self, key: TaskKey) -> Reply<'_, Option<TaskRecord>>;

    /// Tasks of a subject or scope in all queues and states, at most `limit`, in any order. A follow-up that waits is not
    /// found.
    fn find(&self, what: Find, limit: u32) -> Reply<'_, Found>;

    /// Asks for the end of tasks, one outcome each: flags those that wait or run. Idempotent.
    fn request_cancel(&self, keys: Vec<TaskKey>) -> Reply<'_, Vec<CancelOutcome>>;

    /// Makes a scheduled, retry, archived or completed task pending, at the end of its queue; answers with the state it
    /// was in. Keeps `retried`, the last failure, result and progress; clears deferrals, crashes, the cancel flag,
    /// the token and what only its state used.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::WrongState`].
    fn run_now(&self, key: TaskKey) -> Reply<'_, State>;

    /// Archives a pending, scheduled, retry or completed task with class operator and this reason; answers with the
    /// state it was in. Makes a new token, so that its dead letter has a key of its own. Clears the cancel flag; its lock
    /// is freed, its follow-up dropped.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::WrongState`].
    fn archive(&self, key: TaskKey, reason: String) -> Reply<'_, State>;

    /// Deletes a task that is not active, with its follow-up; answers with the state it was in.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::WrongState`].
    fn delete(&self, key: TaskKey) -> Reply<'_, State>;

    /// The same for many of one queue and state; answers with how many.
    fn bulk(&self, bulk: Bulk) -> Reply<'_, u64>;

    /// Gives a pending, scheduled or retry task another due time; now (or a past time) makes
    /// it pending, at the end of its queue. A pending one becomes scheduled, or stays where it is when the time is now; one
    /// in retry stays in retry.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::WrongState`].
    fn reschedule(&self, key: TaskKey, when: When) -> Reply<'_, ()>;

    /// Replaces the payload of a pending, scheduled or retry task. Lock, subjects and scopes stay as enqueued.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`], [`crate::Error::WrongState`].
    fn update_payload(&self, key: TaskKey, payload: Bytes) -> Reply<'_, ()>;

    /// Stops claims from a queue, also one without tasks; false when it was paused already (the reason is
    /// replaced, the time stays).
    fn pause(&self, queue: QueueName, reason: String) -> Reply<'_, bool>;

    /// Allows claims again; false when it was not paused.
    fn resume(&self, queue: QueueName) -> Reply<'_, bool>;

    /// Removes a queue with everything it has: tasks, locks, counters, pause, quarantine. Answers with the number of
    /// tasks removed; completed ones count, quarantined records do not.
    ///
    /// # Errors
    /// [`crate::Error::NoQueue`]; [`crate::Error::NotEmpty`] when it has tasks in any state and `force` is false, and
    /// always when some are active.
    fn remove_queue(&self, queue: QueueName, force: bool) -> Reply<'_, u64>;

    /// The servers whose record has not expired, by id.
    fn servers(&self) -> Reply<'_, Vec<ServerBeat>>;

    /// Records that could not be understood, latest first.
    fn quarantine(&self, queue: QueueName, limit: u32) -> Reply<'_, Vec<Quarantined>>;
}
