//! Submitting tasks.

use poolwright_core::{NewTask, State, TaskKey};
use serde::{Deserialize, Serialize};

use crate::{Error, Reply};

/// What became of a submitted task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enqueued {
    /// Where it is.
    pub key: TaskKey,
    /// `Pending` or `Scheduled`; the state of the other task where [`How::Coalesced`].
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
    /// In place of one with the same id that had ended.
    Replaced,
    /// `run_again`: one with the same id waits already and will do.
    Coalesced,
    /// `run_again`: one with the same id runs; this one follows when it ends. A later request takes its place.
    RunsAgain,
}

/// Takes tasks.
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
