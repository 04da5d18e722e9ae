//! Brings dead letters to the sink: at once those of this process, and from the archive those that were missed.
//!
//! Runs on a thread of its own, because a sink may be the application's code and may block. Nothing here changes the
//! fate of a task: a sink that fails, panics or hangs is counted, and its letters come again.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use poolwright_broker::{Error, Held};
use poolwright_core::{Class, DeadLetter, DeadLetterSink, TaskRecord};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::site::Site;

/// Letters on their way to the sink. When it is full, the others are left in the archive.
pub(crate) const WAITING_MAX: usize = 1_024;

/// The most letters in one call of the sink.
const BATCH_MAX: usize = 100;

/// Delivers until the worker has ended and what waits is delivered, or the sink refused.
pub(crate) async fn run(
    site: Arc<Site>,
    sink: Arc<dyn DeadLetterSink>,
    mut waiting: mpsc::Receiver<DeadLetter>,
) {
    let mut backoff = site.backoff();
    let mut letters = Vec::new();
    // At the start the archive is looked through: an earlier process may have left some.
    let mut catching_up = std::pin::pin!(sleep(Duration::ZERO));
    loop {
        tokio::select! {
            _ = waiting.recv_many(&mut letters, BATCH_MAX) => {
                if !deliver(&site, &*sink, std::mem::take(&mut letters)).await {
                    catching_up.set(sleep(backoff.next()));
                }
            }
            () = &mut catching_up => {
                let pause = match catch_up(&site, &*sink, &mut waiting).await {
                    Ok(true) => {
                        backoff.reset();
                        site.options.letters_every
                    }
                    Ok(false) => backoff.next(),
                    Err(error) => {
                        tracing::debug!(%error, "the archive was not looked through for dead letters");
                        backoff.next()
                    }
                };
                catching_up.set(sleep(pause));
            }
            () = site.stops.ending.cancelled() => break,
        }
    }
    deliver(&site, &*sink, drain(&mut waiting)).await;
}

/// Everything in the archive that nobody has confirmed; false when the sink failed.
async fn catch_up(
    site: &Site,
    sink: &dyn DeadLetterSink,
    waiting: &mut mpsc::Receiver<DeadLetter>,
) -> Result<bool, Error> {
    loop {
        let limit = u32::try_from(BATCH_MAX).unwrap_or(u32::MAX);
        let mut tasks = site.look_up(site.broker.unrecorded(site.queues.clone(), limit)).await?;
        let is_last = tasks.len() < BATCH_MAX;
        // One without a token could never be confirmed, and would come again for ever. The others that are passed over
        // have a better letter on its way, which saw the original error: their attempt is about to send it, or (asked in
        // this order, so that none slips through) has sent it.
        tasks.retain(|task| task.token.is_some_and(|token| !site.roster.holds(token)));
        let mut letters = drain(waiting);
        let better: HashSet<_> = letters.iter().filter_map(|letter| letter.token).collect();
        tasks.retain(|task| task.token.is_some_and(|token| !better.contains(&token)));
        letters.extend(tasks.iter().map(letter));
        let is_stuck = letters.is_empty();
        if !deliver(site, sink, letters).await {
            return Ok(false);
        }
        if is_last || is_stuck || site.stops.ending.is_cancelled() {
            return Ok(true);
        }
    }
}

/// What waits now.
fn drain(waiting: &mut mpsc::Receiver<DeadLetter>) -> Vec<DeadLetter> {
    std::iter::from_fn(|| waiting.try_recv().ok()).collect()
}

/// The letter of an archived task, whose layers are long gone.
fn letter(task: &TaskRecord) -> DeadLetter {
    match &task.failed {
        Some(failed) => DeadLetter::of(task, failed.class, &failed.error, failed.at),
        None => DeadLetter::of(task, Class::Operator, "archived without a reason", task.enqueued_at),
    }
}

/// To the sink, and confirmed at the store, in batches; false when the sink failed.
async fn deliver(site: &Site, sink: &dyn DeadLetterSink, letters: Vec<DeadLetter>) -> bool {
    for batch in letters.chunks(BATCH_MAX) {
        if let Err(error) = record(site, sink, batch).await {
            site.counters.sink_failed.add(batch.len() as u64);
            tracing::warn!(%error, letters = batch.len(), "the sink of dead letters failed; they are offered again");
            site.changed.notify_waiters();
            return false;
        }
        site.counters.letters_recorded.add(batch.len() as u64);
        let held = batch.iter().filter_map(|letter| Some(Held::new(letter.task.clone(), letter.token?)));
        if let Err(error) = site.call(site.broker.mark_recorded(held.collect())).await {
            // They come again from the archive, and recording them twice changes nothing.
            tracing::debug!(%error, "recorded dead letters were not confirmed");
        }
        site.changed.notify_waiters();
    }
    true
}

async fn record(site: &Site, sink: &dyn DeadLetterSink, letters: &[DeadLetter]) -> Result<(), String> {
    let limit = site.options.sink_timeout;
    let recording = AssertUnwindSafe(async { sink.record(letters).await }).catch_unwind();
    match timeout(limit, recording).await {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(error))) => Err(poolwright_core::error::describe(&*error)),
        Ok(Err(_)) => Err("it panicked".to_owned()),
        Err(_) => Err(format!("it did not answer within {limit:?}")),
    }
}
