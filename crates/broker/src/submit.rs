//! Submitting tasks.

use poolwright_core::{NewTask, State, TaskKey};
use serde::{Deserialize, Serialize};

use crate::{Error, Reply};

/// What became of a submitted task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enqueued {
    /// Where it is.
    pub key: TaskKey,
    /// `Pending` or `Scheduled`; the state of the other task where [`How::Coalesced`] (it waits) or
    /// [`How::RunsAgain`] (`Active`).
    pub state: State,
    /// How it got there.
    pub how: How,
}

/// How a submitted task was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// As a new task.
    Stored,
    /// In place of one with the same id that had ended, or that waited only to be discarded (`run_again`).
    Replaced,
    /// `run_again`: one with the same id waits already and will do.
    Coalesced,
    /// `run_again`: one with the same id runs; this one follows when it ends. A later request takes its place.
    RunsAgain,
}

/// Takes tasks.
///
/// What `on_conflict` does with the task that has the id already:
///
/// | | reject | replace finished | run again |
/// | --- | --- | --- | --- |
/// | pending, scheduled, retry | refused | refused | coalesced, nothing changes |
/// | the same, but flagged to be cancelled | refused | refused | replaced: it would never run |
/// | active | refused | refused | runs again |
/// | archived, completed | refused | replaced | replaced |
///
/// *Replaced*: the old record is gone with its follow-up, lock and index entries; the new one starts from zero. Where its
/// lock is refused, the old record stays as it was.
///
/// *Runs again*: the whole new task is kept beside the running one as its follow-up, in place of an earlier follow-up,
/// without looking at its lock. When the running task ends, the follow-up becomes the record as if enqueued at that
/// moment: `when` counts from then, it takes its lock, or is stored without one where another task holds it. `Retry`,
/// `Release` and `Hold` are no end; the follow-up goes on waiting.
pub trait Submit: Send + Sync {
    /// Stores tasks durably and answers with one outcome each, in order.
    ///
    /// For each task, in one step: the id is checked as its `on_conflict` says; then the unique lock; then it is
    /// stored. A refused task leaves no trace. Where two tasks of one call collide, the first one wins.
    ///
    /// # Errors
    /// Each: [`Error::DuplicateId`], [`Error::DuplicateUnique`]. All: [`Error::Unavailable`], [`Error::Refused`].
    fn enqueue(&self, tasks: Vec<NewTask>) -> Reply<'_, Vec<Result<Enqueued, Error>>>;
}
