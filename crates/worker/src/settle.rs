//! Settles how attempts ended: judged once, sent until the store has answered, then counted and mourned.
//!
//! Invariant: a result is dropped only when the store said that its lease is lost or its task is gone. A permit is dropped
//! after the settlement is stored.

use std::sync::Arc;

use poolwright_broker::{Error, Held, Settled};
use poolwright_core::verdict::judge;
use poolwright_core::{Charge, Class, DeadLetter, End, Settlement, State, TaskRecord};

use crate::attempt::Attempt;
use crate::pool::permit::Permit;
use crate::site::Site;

/// An attempt that is over.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) attempt: Arc<Attempt>,
    pub(crate) end: End,
    /// None where the handler may still run.
    pub(crate) permit: Option<Permit>,
}

/// A settlement on its way.
pub(crate) struct Open {
    attempt: Arc<Attempt>,
    permit: Option<Permit>,
    settlement: Settlement,
    /// It was sent before, and perhaps done.
    was_sent: bool,
    /// It was refused, alone or with others.
    pub(crate) was_refused: bool,
    /// Its worker counted as free for a claim before it was stored.
    is_lent: bool,
}

impl Open {
    /// Asks the judge, once: what is resent must say the same.
    pub(crate) fn new(site: &Site, Item { attempt, end, permit }: Item) -> Self {
        let cx = &attempt.cx;
        let settlement = judge(end, &cx.task().attempt(), cx.policy(), site.broker.now(), cx.roll());
        Self { attempt, permit, settlement, was_sent: false, was_refused: false, is_lent: false }
    }

    /// The index of its pool.
    pub(crate) fn pool(&self) -> usize {
        self.attempt.pool
    }

    /// Its worker is free as soon as it is stored: its handler is gone, and nobody counted on it yet.
    pub(crate) fn leaves_its_worker(&self) -> bool {
        !self.is_lent && !self.was_refused && self.permit.is_some()
    }

    /// A claim has counted on its worker.
    pub(crate) const fn is_lent(&self) -> bool {
        self.is_lent
    }

    /// Its worker is counted on.
    pub(crate) fn lend(&mut self) {
        self.is_lent |= self.leaves_its_worker();
    }

    /// It was sent, and this came back.
    pub(crate) fn note(&mut self, error: &Error) {
        self.was_sent |= error.is_retryable();
        self.was_refused |= !error.is_retryable();
    }
}

/// What a call says of them.
pub(crate) fn said(batch: &[Open]) -> Vec<(Held, Settlement)> {
    batch.iter().map(|open| (open.attempt.held(), open.settlement.clone())).collect()
}

/// A settlement that need not be sent again. Its worker is free already.
pub(crate) struct Ended {
    attempt: Arc<Attempt>,
    settlement: Settlement,
    was_sent: bool,
    outcome: Result<Settled, Error>,
}

/// Stores a batch, if there is one; what stays in it is not stored.
///
/// A refusal may be about one of them: the others must not wait for it, so that a batch which is refused is tried in halves.
pub(crate) async fn store(site: &Site, batch: &mut Vec<Open>, ended: &mut Vec<Ended>) -> Result<(), Error> {
    let mut parts = vec![std::mem::take(batch)];
    let mut result = Ok(());
    while let Some(mut part) = parts.pop() {
        if part.is_empty() {
            continue;
        }
        let Err(error) = send(site, &mut part, ended).await else { continue };
        if error.is_retryable() {
            // It is away: each of the other parts would wait for that alone. They come first the next time.
            let waiting: Vec<_> = parts.into_iter().rev().flatten().chain(part).collect();
            batch.splice(0..0, waiting);
            return Err(error);
        }
        if let [open] = &part[..] {
            tell!(debug, open.attempt.cx.task(), %error, "its settlement was not stored and is kept");
            batch.append(&mut part);
            result = Err(error);
        } else {
            let second = part.split_off(part.len() / 2);
            parts.extend([second, part]);
        }
    }
    result
}

/// One call; what stays in the batch has got no answer, or one that may change.
async fn send(site: &Site, batch: &mut Vec<Open>, ended: &mut Vec<Ended>) -> Result<(), Error> {
    match site.call(site.broker.settle(said(batch))).await {
        Ok(outcomes) => sort(batch, outcomes, ended),
        Err(error) => {
            batch.iter_mut().for_each(|open| open.note(&error));
            Err(error)
        }
    }
}

/// The store has answered each: what stays in the batch has got an answer that may change, the others have ended and leave
/// their workers.
pub(crate) fn sort(
    batch: &mut Vec<Open>,
    outcomes: Vec<Result<Settled, Error>>,
    ended: &mut Vec<Ended>,
) -> Result<(), Error> {
    if outcomes.len() != batch.len() {
        let why = format!("{} outcomes for {} settlements", outcomes.len(), batch.len());
        let error = Error::Unavailable { why };
        batch.iter_mut().for_each(|open| open.note(&error));
        return Err(error);
    }
    let mut result = Ok(());
    ended.reserve(batch.len());
    for (mut open, outcome) in std::mem::take(batch).into_iter().zip(outcomes) {
        match outcome {
            Err(error) if error.is_retryable() || matches!(error, Error::Refused { .. }) => {
                open.note(&error);
                batch.push(open);
                result = Err(error);
            }
            outcome => {
                let Open { attempt, permit, settlement, was_sent, .. } = open;
                attempt.settled(permit);
                ended.push(Ended { attempt, settlement, was_sent, outcome });
            }
        }
    }
    result
}

/// Off the roster, counted, and the dead letter on its way.
pub(crate) fn conclude(site: &Site, ended: Ended) {
    let Ended { attempt, settlement, was_sent, outcome } = ended;
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
