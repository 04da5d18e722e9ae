//! A call that enqueues. Those that stand beside each other in a group run as one: a statement for many rows costs each of
//! them two thirds of what a statement of its own does, and callers with one task each come in crowds.
//!
//! Invariant: each task has the outcome that it would have had alone, in the order in which the calls came.

use std::sync::Arc;

use poolwright_broker::{Enqueued, Error};
use poolwright_core::NewTask;
use tokio::sync::oneshot;

use super::{Call, closed};
use crate::anchor::Anchor;
use crate::steps::enqueue::enqueue;
use crate::work::Work;

/// What becomes of each task.
pub(super) type Outcomes = Vec<Result<Enqueued, Error>>;

/// Tasks on their way into the file.
pub(super) struct Submission {
    pub(super) tasks: Vec<NewTask>,
    pub(super) weight: usize,
    pub(super) anchor: Arc<Anchor>,
    pub(super) outcome: Option<Result<Outcomes, Error>>,
    pub(super) reply: Option<oneshot::Sender<Result<Outcomes, Error>>>,
}

/// Runs submissions that stand beside each other. May be done again after the transaction was undone.
pub(super) fn run(calls: &mut [Call], work: &mut Work<'_>) -> rusqlite::Result<()> {
    let mut submissions: Vec<&mut Submission> = calls.iter_mut().filter_map(Call::as_submission).collect();
    for submission in &mut submissions {
        submission.outcome = submission.anchor.check_if_due(work.now).err().map(Err);
    }
    submissions.retain(|submission| submission.outcome.is_none());
    let tasks: Vec<&NewTask> = submissions.iter().flat_map(|submission| &submission.tasks).collect();
    let mut outcomes = enqueue(work, &tasks)?.into_iter();
    for submission in submissions {
        let own = outcomes.by_ref().take(submission.tasks.len()).collect();
        submission.outcome = Some(Ok(own));
    }
    Ok(())
}

impl Submission {
    /// Its caller has not gone away.
    pub(super) fn is_wanted(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| !reply.is_closed())
    }

    /// Answers its caller: with what became of the tasks, or with this failure.
    pub(super) fn answer(&mut self, failure: Option<&Error>) {
        let Some(reply) = self.reply.take() else { return };
        let outcome = match failure {
            Some(error) => Err(error.clone()),
            None => self.outcome.take().unwrap_or_else(|| Err(closed())),
        };
        // A caller that went away meanwhile does not want it.
        let _ = reply.send(outcome);
    }
}
