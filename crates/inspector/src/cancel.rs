//! Asks for the end of tasks that wait or run.
//!
//! Invariant: the flag comes first. A waiting task that is claimed before it is deleted carries it and is discarded;
//! a running one whose worker misses the signal reads it at its next lease extension.

use poolwright_broker::{Cancel, CancelOutcome, Error as StoreError};
use poolwright_core::{State, TaskKey};
use serde::{Deserialize, Serialize};

use crate::{Error, TaskInspector, Which, view};

/// What a cancel came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cancelled {
    /// It waited, and is gone.
    Deleted,
    /// It waited and is flagged, but could not be deleted just now: it will be discarded instead of run.
    Flagged,
    /// It runs, and its worker was told; it ends as its type's `on_cancel` says.
    Signalled,
    /// It had ended already and is as it was.
    Finished,
    /// The file protects its type: no cancel reaches it.
    Protected,
    /// There is no such task.
    NotFound,
}

impl Cancelled {
    /// The task will not run to its end.
    #[must_use]
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Deleted | Self::Flagged | Self::Signalled)
    }
}

impl TaskInspector {
    /// Cancels one task: a waiting one is gone, a running one is told to end. Idempotent: one that is not there, in the
    /// queue that was named or in any, is [`Cancelled::NotFound`] and no error.
    ///
    /// # Errors
    /// [`Error::Ambiguous`] for an id without a queue that several queues have, named in the error; nothing is cancelled.
    /// [`Error::UnknownQueue`], [`Error::Name`], [`Error::Store`].
    pub async fn cancel_task(&self, which: impl Into<Which>) -> Result<Cancelled, Error> {
        let key = match self.key(which.into()).await {
            Err(Error::Nowhere { .. }) => return Ok(Cancelled::NotFound),
            key => key?,
        };
        let outcomes = self.cancel_tasks(vec![key]).await?;
        Ok(outcomes.first().map_or(Cancelled::NotFound, |(_, outcome)| *outcome))
    }

    /// Cancels many tasks; one outcome each, in order.
    ///
    /// # Errors
    /// [`Error::Store`], before anything was cancelled or after all were flagged.
    pub async fn cancel_tasks(&self, keys: Vec<TaskKey>) -> Result<Vec<(TaskKey, Cancelled)>, Error> {
        let mut outcomes = Vec::with_capacity(keys.len());
        let mut reachable = Vec::with_capacity(keys.len());
        for key in keys {
            let outcome = match self.broker.get(key.clone()).await? {
                None => Some(Cancelled::NotFound),
                Some(task) if task.state.is_finished() => Some(Cancelled::Finished),
                Some(task) if view::is_protected(&self.topology, &task.task_type) => {
                    Some(Cancelled::Protected)
                }
                Some(_) => {
                    reachable.push(key.clone());
                    None
                }
            };
            outcomes.push((key, outcome));
        }
        let mut met = self.broker.request_cancel(reachable).await?.into_iter();
        let mut done = Vec::with_capacity(outcomes.len());
        for (key, known) in outcomes {
            let outcome = match known {
                Some(outcome) => outcome,
                None => {
                    let met = met.next().expect("a store answers with one outcome for each key");
                    self.finish(&key, met).await
                }
            };
            done.push((key, outcome));
        }
        Ok(done)
    }

    /// The second half of a cancel. The flag is set, so a failure here delays the end and does not prevent it.
    async fn finish(&self, key: &TaskKey, met: CancelOutcome) -> Cancelled {
        match met {
            CancelOutcome::Flagged => match self.broker.delete(key.clone()).await {
                // Not found: a claim met the flag first and discarded the task.
                Ok(_) | Err(StoreError::NotFound { .. }) => Cancelled::Deleted,
                Err(StoreError::WrongState { state: State::Active, .. }) => self.signal(key).await,
                Err(StoreError::WrongState { .. }) => Cancelled::Finished,
                Err(error) => {
                    tracing::warn!(task_id = %key.id, queue = %key.queue, %error, "a cancelled task is flagged, not deleted");
                    Cancelled::Flagged
                }
            },
            CancelOutcome::Signalled => self.signal(key).await,
            CancelOutcome::Finished => Cancelled::Finished,
            CancelOutcome::NotFound => Cancelled::NotFound,
        }
    }

    async fn signal(&self, key: &TaskKey) -> Cancelled {
        if let Err(error) = self.broker.publish(Cancel { key: key.clone() }).await {
            tracing::warn!(task_id = %key.id, queue = %key.queue, %error, "a cancel signal was lost, the flag remains");
        }
        Cancelled::Signalled
    }
}
