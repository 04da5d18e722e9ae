//! What all loops of one worker share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use poolwright_broker::{ArchiveLimits, Broker, Error, Held, Reply, ServerId};
use poolwright_core::{BoxError, BoxFuture, Chance, Clock, DeadLetter, QueueName, TaskRecord, Timestamp};
use poolwright_handler::Common;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::attempt::bounds::Alarm;
use crate::backoff::Backoff;
use crate::cancel::Roster;
use crate::contact::Contact;
use crate::inbox::Inbox;
use crate::keeper::Leases;
use crate::pool::Pool;
use crate::pool::homes::Homes;
use crate::settle::Item;
use crate::status::{Counters, Phase, PoolStatus, Status};
use crate::{Options, Rules, Services};

/// One worker, as its loops see it.
pub(crate) struct Site {
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Chance,
    pub(crate) options: Options,
    pub(crate) rules: Rules,
    pub(crate) services: Arc<dyn Services>,
    /// What contexts share.
    pub(crate) common: Arc<Common>,
    pub(crate) identity: Identity,
    pub(crate) pools: Vec<Pool>,
    /// The queues that upkeep looks after.
    pub(crate) queues: Vec<QueueName>,
    /// What these queues keep.
    pub(crate) limits: Vec<ArchiveLimits>,
    pub(crate) roster: Roster,
    pub(crate) homes: Homes,
    pub(crate) alarm: Alarm,
    pub(crate) leases: Leases,
    pub(crate) contact: Contact,
    pub(crate) counters: Counters,
    pub(crate) stops: Stops,
    /// The desk has not ended its claims: one may still bring something.
    pub(crate) claiming: AtomicBool,
    /// The way to the desk.
    pub(crate) desk: Inbox,
    /// The way to the sink of dead letters, if there is one.
    pub(crate) letters: Option<mpsc::Sender<DeadLetter>>,
    /// Wakes the desk: a worker came free, a watch rang, a home pool filled up.
    pub(crate) look: Arc<Notify>,
    /// Wakes whoever watches the status.
    pub(crate) changed: Arc<Notify>,
}

/// Who a worker is to others.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) id: ServerId,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) started_at: Timestamp,
}

/// How far a stop has come. Each fires once, in this order; `now` may fire at any time and cuts all waits short.
#[derive(Debug, Default)]
pub(crate) struct Stops {
    /// Nothing is claimed any more.
    pub(crate) draining: CancellationToken,
    /// All attempts are asked to end: their tokens are children of this one.
    pub(crate) firing: CancellationToken,
    /// The loops end.
    pub(crate) ending: CancellationToken,
    /// A second signal: end at once.
    pub(crate) now: CancellationToken,
}

impl Site {
    /// Waits for an answer of the store, as long as options say, and learns from it whether the store is there.
    pub(crate) async fn call<T>(&self, reply: Reply<'_, T>) -> Result<T, Error> {
        self.call_within(self.options.call_timeout, reply).await
    }

    /// The same with another limit. Too late is as good as unavailable: it may or may not have been done.
    pub(crate) async fn call_within<T>(&self, limit: Duration, reply: Reply<'_, T>) -> Result<T, Error> {
        let answer = answer_within(limit, reply).await;
        self.contact.note(&answer);
        answer
    }

    /// The same for a call that writes nothing.
    pub(crate) async fn look_up<T>(&self, reply: Reply<'_, T>) -> Result<T, Error> {
        let answer = answer_within(self.options.call_timeout, reply).await;
        self.contact.note_look(&answer);
        answer
    }

    /// Pauses between tries of a loop.
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff::new(self.options.backoff_min, self.options.backoff_max, self.chance.clone())
    }

    /// Gives the end of an attempt to the desk.
    pub(crate) fn hand_in(&self, item: Item) {
        let Err(item) = self.desk.put(item) else { return };
        tell!(
            error,
            item.attempt.cx.task(),
            "ended after its worker did: its task is taken over when its lease expires"
        );
    }

    pub(crate) fn status(&self) -> Status {
        let pool = |pool: &Pool| PoolStatus {
            name: pool.config.name.clone(),
            workers: pool.slots.workers(),
            busy: pool.slots.busy(),
            stalled: pool.slots.stalled(),
            completed: pool.completed.get(),
            failed: pool.failed.get(),
        };
        Status {
            phase: self.phase(),
            store_is_away: self.contact.is_away(),
            pools: self.pools.iter().map(pool).collect(),
            counts: self.counters.snapshot(),
        }
    }

    fn phase(&self) -> Phase {
        let Stops { draining, firing, ending, .. } = &self.stops;
        match () {
            () if ending.is_cancelled() => Phase::Ended,
            () if firing.is_cancelled() => Phase::Stopping,
            () if draining.is_cancelled() => Phase::Draining,
            () => Phase::Running,
        }
    }

    /// Nothing is held and nothing can come.
    pub(crate) fn is_idle(&self) -> bool {
        self.roster.is_empty() && !self.claiming.load(Ordering::Acquire)
    }

    /// Waits until something holds that is seen in status, roster or slots.
    pub(crate) async fn until(&self, mut holds: impl FnMut(&Self) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if holds(self) {
                return;
            }
            changed.await;
        }
    }
}

async fn answer_within<T>(limit: Duration, reply: Reply<'_, T>) -> Result<T, Error> {
    let late = |_| Err(Error::Unavailable { why: format!("no answer within {limit:?}") });
    timeout(limit, reply).await.unwrap_or_else(late)
}

/// What handlers tell the store while they run.
pub(crate) struct StoreReport(pub(crate) Arc<dyn Broker>);

impl poolwright_handler::Report for StoreReport {
    fn progress<'a>(
        &'a self,
        task: &'a TaskRecord,
        done: f64,
        note: &'a str,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            let held = held(task)?;
            Ok(self.0.progress(held, done, note.to_owned()).await?)
        })
    }

    fn store_result<'a>(
        &'a self,
        task: &'a TaskRecord,
        result: bytes::Bytes,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            let held = held(task)?;
            Ok(self.0.store_result(held, result).await?)
        })
    }
}

fn held(task: &TaskRecord) -> Result<Held, BoxError> {
    Held::of(task).ok_or_else(|| format!("task {} is not claimed", task.key).into())
}
