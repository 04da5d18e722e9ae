//! A stored task: the record that everybody sees, and what only the store knows of it.
//!
//! Invariant: a field that a state does not use is none. Every change of state goes through [`Entry::leave`], which
//! clears what the old one used.

use poolwright_broker::ClaimId;
use poolwright_core::task::Failure;
use poolwright_core::text::error_text;
use poolwright_core::{Class, NewTask, PoolName, State, TaskRecord, Timestamp, Token};

/// A stored task.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) record: TaskRecord,
    /// Its place among the pending tasks; kept while it runs, so that a release can go back to it.
    pub(crate) position: i64,
    /// Its place among the active tasks, counted over all queues.
    pub(crate) turn: i64,
    /// Since when it had waited when it was claimed, for a release.
    pub(crate) waited_since: Option<Timestamp>,
    /// The claim that took it, while it runs; none once another process took it over.
    pub(crate) claimed: Option<(ClaimId, PoolName)>,
    /// What takes its place when it ends.
    pub(crate) follow_up: Option<Box<NewTask>>,
    /// Somebody confirmed that the dead letter of this end is stored.
    pub(crate) recorded: bool,
}

impl Entry {
    /// A task to which nothing has happened: scheduled when it has a due time, else pending at `position`.
    pub(crate) fn new(task: NewTask, now: Timestamp, position: i64) -> Self {
        let record = TaskRecord::stored(task, now);
        Self {
            record,
            position,
            turn: 0,
            waited_since: None,
            claimed: None,
            follow_up: None,
            recorded: false,
        }
    }

    /// By what the tasks of its state are ordered.
    pub(crate) fn rank(&self) -> i64 {
        let time = match self.record.state {
            State::Pending => return self.position,
            State::Active => return self.turn,
            State::Scheduled | State::Retry => self.record.due,
            State::Archived => self.record.failed.as_ref().map(|failure| failure.at),
            State::Completed => self.record.expires_at,
        };
        time.expect("each of these states sets its time when it is entered").as_micros()
    }

    /// Pending, at this place, since then.
    pub(crate) fn wait(&mut self, position: i64, since: Timestamp) {
        self.leave();
        self.record.state = State::Pending;
        self.record.pending_since = Some(since);
        self.position = position;
    }

    /// Scheduled or retry, until then.
    pub(crate) fn wait_until(&mut self, state: State, due: Timestamp) {
        self.leave();
        self.record.state = state;
        self.record.due = Some(due);
    }

    /// Active, in the hands of a claim.
    pub(crate) fn start(&mut self, turn: i64, now: Timestamp) {
        self.waited_since = self.record.pending_since;
        self.leave();
        self.record.state = State::Active;
        self.record.started_at = Some(now);
        self.record.progress = None;
        self.turn = turn;
    }

    /// Completed, and kept until then.
    pub(crate) fn complete(&mut self, now: Timestamp, expires_at: Timestamp) {
        self.leave();
        self.record.state = State::Completed;
        self.record.completed_at = Some(now);
        self.record.expires_at = Some(expires_at);
        self.record.cancel_requested = false;
    }

    /// Archived, with the failure that ended it.
    pub(crate) fn archive(&mut self, class: Class, error: &str, now: Timestamp) {
        self.leave();
        self.fail(class, error, now);
        self.record.state = State::Archived;
        self.record.cancel_requested = false;
        self.recorded = false;
    }

    /// Notes a failure.
    pub(crate) fn fail(&mut self, class: Class, error: &str, now: Timestamp) {
        self.record.failed = Some(Failure { class, error: error_text(error).into(), at: now });
    }

    /// The token of this attempt and until when it owns the task.
    pub(crate) fn lease(&mut self, token: Token, until: Timestamp) {
        self.record.token = Some(token);
        self.record.lease_until = Some(until);
    }

    /// Waits beside the running task.
    pub(crate) fn set_follow_up(&mut self, task: Option<Box<NewTask>>) {
        self.record.runs_again = task.is_some();
        self.follow_up = task;
    }

    fn leave(&mut self) {
        self.record.pending_since = None;
        self.record.due = None;
        self.record.started_at = None;
        self.record.lease_until = None;
        self.record.completed_at = None;
        self.record.expires_at = None;
        self.claimed = None;
    }
}
