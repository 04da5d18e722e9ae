//! Stores how attempts ended: everything that is ready travels in one call, and nothing waits to fill a batch.
//!
//! While a call is under way the next batch gathers. A store that is away loses nothing: the results are kept here, the
//! keeper keeps their leases, and both go on until the store answers.
//!
//! Invariant: a result is dropped only when the store said that its lease is lost or its task is gone, or when the worker
//! ends. A permit is dropped after the settlement is stored.

use std::sync::Arc;

use poolwright_broker::{Error, Settled};
use poolwright_core::verdict::judge;
use poolwright_core::{Charge, Class, DeadLetter, End, Settlement, State, TaskRecord};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::attempt::Attempt;
use crate::pool::permit::Permit;
use crate::site::Site;

/// The most settlements in one call.
const BATCH_MAX: usize = 512;

/// An attempt that is over.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) attempt: Arc<Attempt>,
    pub(crate) end: End,
    pub(crate) permit: Arc<Permit>,
}

/// A settlement on its way.
struct Open {
    attempt: Arc<Attempt>,
    permit: Arc<Permit>,
    settlement: Settlement,
    /// It was sent before, and perhaps done.
    was_sent: bool,
}

/// Stores what comes in until the worker has ended.
///
/// The channel holds one place for each worker. It is never full: who hands in holds a permit, and a permit hands in once.
pub(crate) async fn run(site: Arc<Site>, mut inbox: mpsc::Receiver<Item>) {
    let mut items = Vec::new();
    let mut batch = Vec::new();
    let mut backoff = site.backoff();
    loop {
        if batch.is_empty() {
            tokio::select! {
                _ = inbox.recv_many(&mut items, BATCH_MAX) => {}
                () = site.stops.ending.cancelled() => return,
            }
        }
        while items.len() + batch.len() < BATCH_MAX
            && let Ok(item) = inbox.try_recv()
        {
            items.push(item);
        }
        batch.extend(items.drain(..).map(|item| open(&site, item)));
        match store(&site, &mut batch).await {
            Ok(()) => backoff.reset(),
            Err(error) => {
                tracing::debug!(%error, waiting = batch.len(), "settlements were not stored and are kept");
                tokio::select! {
                    () = sleep(backoff.next()) => {}
                    // What was refused may be the fault of what is in it: newcomers do not wait with it.
                    _ = inbox.recv_many(&mut items, BATCH_MAX), if !error.is_retryable() => {}
                    () = site.stops.ending.cancelled() => return,
                }
            }
        }
        site.changed.notify_waiters();
    }
}

/// Asks the judge, once: what is resent must say the same.
fn open(site: &Site, Item { attempt, end, permit }: Item) -> Open {
    let cx = &attempt.cx;
    let settlement = judge(end, &cx.task().attempt(), cx.policy(), site.broker.now(), cx.roll());
    Open { attempt, permit, settlement, was_sent: false }
}

/// Stores a batch; what stays in it is not stored.
async fn store(site: &Site, batch: &mut Vec<Open>) -> Result<(), Error> {
    let whole = send(site, batch).await;
    match &whole {
        Err(error) if !error.is_retryable() && batch.len() > 1 => {}
        _ => return whole,
    }
    // A refusal may be about one of them: the others must not wait for it.
    for open in std::mem::take(batch) {
        let mut alone = vec![open];
        if let Err(error) = send(site, &mut alone).await {
            tell!(debug, alone[0].attempt.cx.task(), %error, "its settlement was not stored and is kept");
        }
        batch.append(&mut alone);
    }
    if batch.is_empty() { Ok(()) } else { whole }
}

/// One call; what stays in the batch has got no answer, or one that may change.
async fn send(site: &Site, batch: &mut Vec<Open>) -> Result<(), Error> {
    let settlements = batch.iter().map(|open| (open.attempt.held.clone(), open.settlement.clone()));
    let answer = site.call(site.broker.settle(settlements.collect())).await;
    let outcomes = match answer {
        Ok(outcomes) if outcomes.len() != batch.len() => {
            let why = format!("{} outcomes for {} settlements", outcomes.len(), batch.len());
            Err(Error::Unavailable { why })
        }
        answer => answer,
    };
    let outcomes = match outcomes {
        Ok(outcomes) => outcomes,
        Err(error) => {
            batch.iter_mut().for_each(|open| open.was_sent |= error.is_retryable());
            return Err(error);
        }
    };
    let mut result = Ok(());
    for (mut open, outcome) in std::mem::take(batch).into_iter().zip(outcomes) {
        match outcome {
            Err(error) if error.is_retryable() || matches!(error, Error::Refused { .. }) => {
                open.was_sent |= error.is_retryable();
                batch.push(open);
                result = Err(error);
            }
            outcome => conclude(site, open, outcome),
        }
    }
    result
}

/// The store has answered: off the roster, counted, and the dead letter on its way. Dropping `open` frees the worker.
fn conclude(site: &Site, open: Open, outcome: Result<Settled, Error>) {
    let Open { attempt, permit, settlement, was_sent } = open;
    let task = attempt.cx.task();
    let pool = &site.pools[attempt.pool];
    let settled = match outcome {
        Ok(settled) => Some(settled),
        Err(Error::NotFound { .. }) if was_sent => None,
        Err(error) => {
            tell!(warn, task, pool = %pool.config.name, %error, "the store did not take the settlement: what this \
                attempt did is dropped");
            site.counters.lease_lost.add(1);
            site.roster.remove(&attempt);
            return;
        }
    };
    match settlement {
        Settlement::Complete { .. } => pool.completed.add(1),
        Settlement::Release => {}
        _ => pool.failed.add(1),
    }
    count(site, task, &settlement);
    if let Some(settled) = settled {
        mourn(site, task, &settlement, settled, || attempt.cx.take_dead_letter());
    }
    site.roster.remove(&attempt);
    drop(permit);
}

/// Counts a stored settlement and tells of it.
pub(crate) fn count(site: &Site, task: &TaskRecord, settlement: &Settlement) {
    let counters = &site.counters;
    match settlement {
        Settlement::Complete { .. } => {
            counters.completed.add(1);
            tell!(debug, task, "completed");
        }
        Settlement::Retry { after, error, class, charge } => {
            match (charge, class) {
                (Charge::Retry, _) => counters.retried.add(1),
                (Charge::Deferral, _) => counters.deferred.add(1),
                (Charge::Nothing, Class::NoHandler) => counters.no_handler.add(1),
                // A crash was counted when it was taken over.
                (Charge::Crash | Charge::Nothing, _) => {}
            }
            tell!(info, task, %class, ?after, error, "to be tried again");
        }
        Settlement::Archive { error, class } => {
            counters.archived.add(1);
            tell!(warn, task, %class, error, "archived");
        }
        Settlement::Discard => {
            counters.discarded.add(1);
            tell!(info, task, "discarded");
        }
        Settlement::Release => {
            counters.released.add(1);
            tell!(info, task, "released");
        }
        Settlement::Hold { reason } => {
            counters.held.add(1);
            tell!(warn, task, reason, "released, and its queue paused for an operator");
        }
    }
}

/// Sends the dead letter of a task that is archived now: the one that a layer left, which saw the original error, or one
/// made of the record.
///
/// The way is bounded. When it is full, because the sink is away, the letter is left to upkeep, which finds all archived
/// tasks without one.
pub(crate) fn mourn(
    site: &Site,
    task: &TaskRecord,
    settlement: &Settlement,
    settled: Settled,
    left: impl FnOnce() -> Option<DeadLetter>,
) {
    let (Some(letters), Settlement::Archive { error, class }) = (&site.letters, settlement) else { return };
    if settled.state != Some(State::Archived) {
        return;
    }
    let letter = left().unwrap_or_else(|| DeadLetter::of(task, *class, error, settled.at));
    if letters.try_send(letter).is_err() {
        tell!(debug, task, "its dead letter is left to upkeep");
    }
}
