//! Says when a run is over: no queue of ours holds a task that waits or runs, and every dead letter is written down.
//!
//! The worker tells when it has nothing at hand; only then the store is asked. What another process does on the same
//! store is not told here, so while tasks wait and this worker has none, it looks again once in a while.

use std::time::Duration;

use poolwright::Running;
use poolwright::broker::Find;
use poolwright::core::{QueueName, Scope, State};
use poolwright::inspector::{Error as InspectorError, QueueView};
use poolwright::worker::Status;
use tokio::time::timeout;

use crate::Error;
use crate::desk::Desk;
use crate::id::BaseId;

/// How long a wait for this worker's news lasts before the library and the store are asked anyway.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Tasks of one knowledge base that are looked at to tell whether one of them waits.
const TASKS_MAX: u32 = 50_000;

/// Returns when the run is over, with the number of tasks of others that stay in the queues.
///
/// # Errors
/// What is wrong with the library, at most a second after somebody met it: what is worked on cannot be written down, and
/// a dead letter would be waited for without end. Those of the queues that do not pass.
pub(crate) async fn over(running: &Running, bases: &[BaseId], desk: &Desk) -> Result<u64, Error> {
    loop {
        if let Some(error) = desk.trouble() {
            return Err(error);
        }
        let Ok(idle) = timeout(LOOK_AGAIN, running.until(|status| status.busy() == 0)).await else {
            continue;
        };
        match look(running, bases, desk, &idle).await {
            Ok(Some(others)) => return Ok(others),
            Ok(None) => {}
            // The worker tells when it is back, and meanwhile the queues stand still.
            Err(error) if error.is_retryable() => {}
            Err(error) => return Err(error.into()),
        }
        let news = running.until(|status| status.counts != idle.counts || status.busy() > 0);
        // Whether there was news or the time passed: look again.
        let _ = timeout(LOOK_AGAIN, news).await;
    }
}

/// Nothing while the run goes on; else the number of tasks that are not ours.
async fn look(
    running: &Running,
    bases: &[BaseId],
    desk: &Desk,
    idle: &Status,
) -> Result<Option<u64>, InspectorError> {
    let live = live(running, desk).await?;
    if live > 0 && some_are_ours(running, bases).await? {
        return Ok(None);
    }
    // The sink of dead letters asks for the wiki before a letter is confirmed, so letters are looked at between two
    // looks at the queues; and nothing was claimed in between.
    if are_letters_waiting(running).await? || self::live(running, desk).await? != live {
        return Ok(None);
    }
    let now = running.status();
    Ok((now.busy() == 0 && now.counts.claimed == idle.counts.claimed).then_some(live))
}

/// Tasks that wait or run, in all queues. Notes a pause that keeps some of them.
async fn live(running: &Running, desk: &Desk) -> Result<u64, InspectorError> {
    let queues = running.inspector().queues().await?;
    let of = |queue: &QueueView| queue.pending + queue.active + queue.scheduled + queue.retry;
    for queue in queues.iter().filter(|queue| queue.paused && of(queue) > 0) {
        let reason = queue.paused_reason.as_deref().unwrap_or("no reason was given");
        desk.note(&format!("queue {} is paused ({reason}): resume it to go on", queue.name));
    }
    Ok(queues.iter().map(of).sum())
}

/// Whether a task of these knowledge bases waits or runs. When not all can be looked at, one may.
async fn some_are_ours(running: &Running, bases: &[BaseId]) -> Result<bool, InspectorError> {
    for base in bases {
        let scope = Scope::new("knowledge_base", base.as_str());
        let found = running.inspector().find(Find::Scope(scope), TASKS_MAX).await?;
        let is_live = |state| !matches!(state, State::Archived | State::Completed);
        if !found.complete || found.tasks.iter().any(|task| is_live(task.state)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the sink has yet to be told of a task that failed for good.
async fn are_letters_waiting(running: &Running) -> Result<bool, InspectorError> {
    let queues: Vec<QueueName> =
        running.topology().queues().iter().map(|queue| queue.stored.clone()).collect();
    let waiting = running.stores().broker.unrecorded(queues, 100).await?;
    // One without a token is never confirmed; nobody waits for it.
    Ok(waiting.iter().any(|task| task.token.is_some()))
}
