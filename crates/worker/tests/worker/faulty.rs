//! A store that can go away, lose its replies, refuse, hang, and count what it is asked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use poolwright_broker::*;
use poolwright_core::{Chance, NewTask, QueueName, Settlement, State, TaskKey, TaskRecord, Timestamp, When};
use tokio::sync::Notify;

/// What goes wrong with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is done, and nobody hears of it.
    LoseReply,
    /// It is not done, and may be asked again.
    Away,
    /// It is not done.
    Refuse,
    /// It is done, and the answer comes when the test lets it.
    Late,
    /// The settlements of an exchange are done, its claim is not, and nobody hears of either.
    HalfDone,
    /// It is never answered.
    Hang,
    /// It gets stuck on its way, and is done when the test lets it.
    Stuck,
    /// The store breaks with a panic.
    Panic,
    /// Of a batch of settlements, none is done or answered for.
    NoOutcomes,
    /// Of a batch of settlements, all are done and none is answered for.
    LoseOutcomes,
    /// Of a batch of settlements, the first is refused and the others are done.
    RefuseOne,
}

/// What goes wrong by chance, of calls that hand tasks out and take them back.
const BY_CHANCE: [Fault; 7] = [
    Fault::LoseReply,
    Fault::Away,
    Fault::Refuse,
    Fault::HalfDone,
    Fault::NoOutcomes,
    Fault::LoseOutcomes,
    Fault::RefuseOne,
];

/// Wraps a store.
pub(crate) struct Faulty {
    inner: Arc<dyn Broker>,
    troubles: Mutex<Troubles>,
    changed: Notify,
    loosened: Notify,
}

#[derive(Default)]
struct Troubles {
    is_away: bool,
    stuck: usize,
    faults: BTreeMap<&'static str, VecDeque<Fault>>,
    calls: BTreeMap<&'static str, usize>,
    claims: Vec<ClaimRequest>,
    settled: Vec<(Held, Settlement)>,
    batches: Vec<usize>,
    /// Each of these calls goes wrong with this probability.
    by_chance: Option<(Chance, f64)>,
    /// No settlement of these tasks is taken, nor of any that come along with them.
    cursed: BTreeSet<String>,
}

impl Troubles {
    /// The fault that is due.
    fn next(&mut self, call: &'static str) -> Option<Fault> {
        let queued = self.faults.get_mut(call).and_then(VecDeque::pop_front);
        let Some((chance, share)) = &self.by_chance else { return queued };
        if queued.is_some() || !["claim", "settle", "exchange"].contains(&call) || chance.roll() >= *share {
            return queued;
        }
        let fault = BY_CHANCE[(chance.roll() * BY_CHANCE.len() as f64) as usize];
        // What is not said of every call is said of its settlements.
        match (call, fault) {
            ("claim", Fault::NoOutcomes | Fault::LoseOutcomes | Fault::RefuseOne) => Some(Fault::Away),
            ("claim" | "settle", Fault::HalfDone) => Some(Fault::LoseReply),
            _ => Some(fault),
        }
    }
}

fn away<T>() -> Result<T, Error> {
    Err(Error::Unavailable { why: "the test took it away".into() })
}

fn refused<T>() -> Result<T, Error> {
    Err(Error::Refused { why: "the test wants it so".into() })
}

impl Faulty {
    pub(crate) fn new(inner: Arc<dyn Broker>) -> Arc<Self> {
        Arc::new(Self { inner, troubles: Mutex::default(), changed: Notify::new(), loosened: Notify::new() })
    }

    /// From now on nobody can reach it, or everybody again.
    pub(crate) fn set_away(&self, is_away: bool) {
        self.with(|troubles| troubles.is_away = is_away);
    }

    /// The next call of this name goes wrong; several are queued.
    pub(crate) fn fail_next(&self, call: &'static str, fault: Fault) {
        self.with(|troubles| troubles.faults.entry(call).or_default().push_back(fault));
    }

    /// What was to go wrong does not, but for what hangs already.
    pub(crate) fn forget_faults(&self) {
        self.with(|troubles| troubles.faults.clear());
    }

    /// From now on such a share of the calls goes wrong that hand tasks out and take them back.
    pub(crate) fn fail_by_chance(&self, seed: u64, share: f64) {
        self.with(|troubles| troubles.by_chance = Some((Chance::seeded(seed), share)));
    }

    /// From now on no settlement of this task is taken, nor of any that come along with it.
    pub(crate) fn curse(&self, id: &str) {
        self.with(|troubles| troubles.cursed.insert(id.to_owned()));
    }

    /// From now on they are taken again.
    pub(crate) fn lift_curses(&self) {
        self.with(|troubles| troubles.cursed.clear());
    }

    /// Waits until a call is stuck.
    pub(crate) async fn until_stuck(&self) {
        self.until_stuck_calls(1).await;
    }

    /// Waits until so many calls are stuck, or were.
    pub(crate) async fn until_stuck_calls(&self, count: usize) {
        self.until(async |_| self.with(|troubles| troubles.stuck >= count)).await;
    }

    /// What is stuck goes on.
    pub(crate) fn loosen(&self) {
        self.loosened.notify_waiters();
    }

    /// How often it was asked for this.
    pub(crate) fn calls(&self, call: &str) -> usize {
        self.with(|troubles| troubles.calls.get(call).copied().unwrap_or(0))
    }

    /// All claims that were asked for, answered or not.
    pub(crate) fn claims(&self) -> Vec<ClaimRequest> {
        self.with(|troubles| troubles.claims.clone())
    }

    /// All settlements that reached it, done or not.
    pub(crate) fn settlements(&self) -> Vec<(Held, Settlement)> {
        self.with(|troubles| troubles.settled.clone())
    }

    /// How many settlements each call of settle or exchange brought.
    pub(crate) fn batches(&self) -> Vec<usize> {
        self.with(|troubles| troubles.batches.clone())
    }

    /// How often a settlement of this task reached it.
    pub(crate) fn settlements_of(&self, id: &str) -> usize {
        self.with(|troubles| troubles.settled.iter().filter(|(held, _)| held.key.id == *id).count())
    }

    /// Waits until something holds; looks again after every call.
    pub(crate) async fn until(&self, mut holds: impl AsyncFnMut(&dyn Broker) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if holds(&*self.inner).await {
                return;
            }
            changed.await;
        }
    }

    /// Asks the store itself, whatever the trouble: as another process that is not cut off.
    pub(crate) async fn behind<T>(&self, act: impl AsyncFnOnce(&dyn Broker) -> T) -> T {
        act(&*self.inner).await
    }

    /// Waits until this was asked for so many times.
    pub(crate) async fn until_calls(&self, call: &str, count: usize) {
        self.until(async |_| self.calls(call) >= count).await;
    }

    fn with<T>(&self, act: impl FnOnce(&mut Troubles) -> T) -> T {
        act(&mut self.troubles.lock().unwrap())
    }

    /// Plays the fault that is due, or none.
    fn ask<'a, T: Send + 'a>(&'a self, call: &'static str, reply: Reply<'a, T>) -> Reply<'a, T> {
        Box::pin(async move {
            let fault = self.with(|troubles| {
                *troubles.calls.entry(call).or_default() += 1;
                troubles.next(call)
            });
            self.play(fault, reply).await
        })
    }

    async fn play<T>(&self, fault: Option<Fault>, reply: Reply<'_, T>) -> Result<T, Error> {
        let is_away = self.with(|troubles| troubles.is_away);
        let answer = match fault {
            _ if is_away => away(),
            None => reply.await,
            Some(Fault::LoseReply) => {
                drop(reply.await);
                away()
            }
            Some(Fault::Away) => away(),
            Some(Fault::Refuse) => refused(),
            Some(Fault::Panic) => panic!("the store breaks on purpose"),
            Some(Fault::NoOutcomes | Fault::LoseOutcomes | Fault::RefuseOne | Fault::HalfDone) => {
                unreachable!("only settlements have outcomes, and only an exchange has halves")
            }
            Some(Fault::Stuck) => {
                self.is_let().await;
                reply.await
            }
            Some(Fault::Late) => {
                let answer = reply.await;
                self.is_let().await;
                answer
            }
            Some(Fault::Hang) => {
                self.changed.notify_waiters();
                std::future::pending().await
            }
        };
        self.changed.notify_waiters();
        answer
    }

    /// Gets stuck until the test lets it go on.
    async fn is_let(&self) {
        let loosened = self.loosened.notified();
        self.with(|troubles| troubles.stuck += 1);
        self.changed.notify_waiters();
        loosened.await;
    }

    /// Settles with this fault, if there is one.
    async fn settle_with(
        &self,
        fault: Option<Fault>,
        mut settlements: Vec<(Held, Settlement)>,
    ) -> Result<Vec<Result<Settled, Error>>, Error> {
        let is_away = self.with(|troubles| troubles.is_away);
        match fault {
            Some(Fault::NoOutcomes) if !is_away => Ok(settlements.iter().map(|_| away()).collect()),
            Some(Fault::LoseOutcomes) if !is_away => {
                let outcomes = self.inner.settle(settlements).await?;
                Ok(outcomes.iter().map(|_| away()).collect())
            }
            Some(Fault::RefuseOne) if !is_away && !settlements.is_empty() => {
                let others = settlements.split_off(1);
                let outcomes = self.inner.settle(others).await?;
                Ok(std::iter::once(refused()).chain(outcomes).collect())
            }
            fault => self.play(fault, self.inner.settle(settlements)).await,
        }
    }

    /// Notes what is to be settled, and gives the fault that is due.
    fn begin(&self, call: &'static str, settlements: &[(Held, Settlement)]) -> Option<Fault> {
        self.with(|troubles| {
            *troubles.calls.entry(call).or_default() += 1;
            troubles.settled.extend(settlements.iter().cloned());
            troubles.batches.push(settlements.len());
            let is_cursed =
                settlements.iter().any(|(held, _)| troubles.cursed.contains(held.key.id.as_str()));
            if is_cursed { Some(Fault::Refuse) } else { troubles.next(call) }
        })
    }
}

impl Submit for Faulty {
    fn enqueue(&self, tasks: Vec<NewTask>) -> Reply<'_, Vec<Result<Enqueued, Error>>> {
        self.ask("enqueue", self.inner.enqueue(tasks))
    }
}

impl Dispatch for Faulty {
    fn claim(&self, request: ClaimRequest) -> Reply<'_, ClaimReply> {
        self.with(|troubles| troubles.claims.push(request.clone()));
        self.ask("claim", self.inner.claim(request))
    }
    fn extend(&self, held: Vec<Held>, lease: Duration) -> Reply<'_, Vec<Extension>> {
        self.ask("extend", self.inner.extend(held, lease))
    }
    fn settle(&self, settlements: Vec<(Held, Settlement)>) -> Reply<'_, Vec<Result<Settled, Error>>> {
        Box::pin(async move {
            let fault = self.begin("settle", &settlements);
            let outcomes = self.settle_with(fault, settlements).await;
            self.changed.notify_waiters();
            outcomes
        })
    }
    /// Counts as a settle and a claim, too. Made of the two when a fault waits for one of them.
    fn exchange(&self, settlements: Vec<(Held, Settlement)>, claim: ClaimRequest) -> Reply<'_, Exchanged> {
        Box::pin(async move {
            let waits =
                |troubles: &mut Troubles, half| troubles.faults.get(half).is_some_and(|f| !f.is_empty());
            if self.with(|troubles| waits(troubles, "settle") || waits(troubles, "claim")) {
                let outcomes = self.settle(settlements).await?;
                return Ok(Exchanged { outcomes, claimed: self.claim(claim).await });
            }
            let fault = self.begin("exchange", &settlements);
            self.with(|troubles| {
                troubles.claims.push(claim.clone());
                for half in ["settle", "claim"] {
                    *troubles.calls.entry(half).or_default() += 1;
                }
            });
            let is_away = self.with(|troubles| troubles.is_away);
            let answer = match fault {
                Some(Fault::NoOutcomes | Fault::LoseOutcomes | Fault::RefuseOne) if !is_away => {
                    let outcomes = self.settle_with(fault, settlements).await?;
                    Ok(Exchanged { outcomes, claimed: self.inner.claim(claim).await })
                }
                Some(Fault::HalfDone) if !is_away => {
                    drop(self.inner.settle(settlements).await);
                    away()
                }
                fault => self.play(fault, self.inner.exchange(settlements, claim)).await,
            };
            self.changed.notify_waiters();
            answer
        })
    }
    fn store_result(&self, held: Held, result: Bytes) -> Reply<'_, ()> {
        self.ask("store_result", self.inner.store_result(held, result))
    }
    fn progress(&self, held: Held, done: f64, note: String) -> Reply<'_, ()> {
        self.ask("progress", self.inner.progress(held, done, note))
    }
}

impl Upkeep for Faulty {
    fn promote_due(&self, queues: Vec<QueueName>, limit: u32) -> Reply<'_, Promoted> {
        self.ask("promote_due", self.inner.promote_due(queues, limit))
    }
    fn take_over(&self, request: TakeOver) -> Reply<'_, Vec<TaskRecord>> {
        self.ask("take_over", self.inner.take_over(request))
    }
    fn sweep(&self, limits: Vec<ArchiveLimits>) -> Reply<'_, Swept> {
        self.ask("sweep", self.inner.sweep(limits))
    }
    fn reconcile(&self, queues: Vec<QueueName>) -> Reply<'_, Reconciled> {
        self.ask("reconcile", self.inner.reconcile(queues))
    }
    fn unrecorded(&self, queues: Vec<QueueName>, limit: u32) -> Reply<'_, Vec<TaskRecord>> {
        self.ask("unrecorded", self.inner.unrecorded(queues, limit))
    }
    fn mark_recorded(&self, held: Vec<Held>) -> Reply<'_, ()> {
        self.ask("mark_recorded", self.inner.mark_recorded(held))
    }
    fn beat(&self, server: ServerBeat, lasts: Duration) -> Reply<'_, ()> {
        self.ask("beat", self.inner.beat(server, lasts))
    }
    fn retire(&self, server: ServerId) -> Reply<'_, ()> {
        self.ask("retire", self.inner.retire(server))
    }
}

impl Inspect for Faulty {
    fn queues(&self) -> Reply<'_, Vec<QueueName>> {
        self.ask("queues", self.inner.queues())
    }
    fn queue_stats(&self, queues: Vec<QueueName>) -> Reply<'_, Vec<QueueStats>> {
        self.ask("queue_stats", self.inner.queue_stats(queues))
    }
    fn history(&self, queue: QueueName, days: u32) -> Reply<'_, Vec<DayStats>> {
        self.ask("history", self.inner.history(queue, days))
    }
    fn page(&self, request: PageRequest) -> Reply<'_, Page> {
        self.ask("page", self.inner.page(request))
    }
    fn get(&self, key: TaskKey) -> Reply<'_, Option<TaskRecord>> {
        self.ask("get", self.inner.get(key))
    }
    fn find(&self, what: Find, limit: u32) -> Reply<'_, Found> {
        self.ask("find", self.inner.find(what, limit))
    }
    fn request_cancel(&self, keys: Vec<TaskKey>) -> Reply<'_, Vec<CancelOutcome>> {
        self.ask("request_cancel", self.inner.request_cancel(keys))
    }
    fn run_now(&self, key: TaskKey) -> Reply<'_, State> {
        self.ask("run_now", self.inner.run_now(key))
    }
    fn archive(&self, key: TaskKey, reason: String) -> Reply<'_, State> {
        self.ask("archive", self.inner.archive(key, reason))
    }
    fn delete(&self, key: TaskKey) -> Reply<'_, State> {
        self.ask("delete", self.inner.delete(key))
    }
    fn bulk(&self, bulk: Bulk) -> Reply<'_, u64> {
        self.ask("bulk", self.inner.bulk(bulk))
    }
    fn reschedule(&self, key: TaskKey, when: When) -> Reply<'_, ()> {
        self.ask("reschedule", self.inner.reschedule(key, when))
    }
    fn update_payload(&self, key: TaskKey, payload: Bytes) -> Reply<'_, ()> {
        self.ask("update_payload", self.inner.update_payload(key, payload))
    }
    fn pause(&self, queue: QueueName, reason: String) -> Reply<'_, bool> {
        self.ask("pause", self.inner.pause(queue, reason))
    }
    fn resume(&self, queue: QueueName) -> Reply<'_, bool> {
        self.ask("resume", self.inner.resume(queue))
    }
    fn remove_queue(&self, queue: QueueName, force: bool) -> Reply<'_, u64> {
        self.ask("remove_queue", self.inner.remove_queue(queue, force))
    }
    fn servers(&self) -> Reply<'_, Vec<ServerBeat>> {
        self.ask("servers", self.inner.servers())
    }
    fn quarantine(&self, queue: QueueName, limit: u32) -> Reply<'_, Vec<Quarantined>> {
        self.ask("quarantine", self.inner.quarantine(queue, limit))
    }
}

impl Signal for Faulty {
    fn publish(&self, cancel: Cancel) -> Reply<'_, ()> {
        self.ask("publish", self.inner.publish(cancel))
    }
    fn subscribe(&self) -> Reply<'_, Box<dyn CancelFeed>> {
        self.ask("subscribe", self.inner.subscribe())
    }
    fn watch(&self, queues: Vec<QueueName>) -> Box<dyn Watch> {
        self.inner.watch(queues)
    }
}

impl Broker for Faulty {
    fn now(&self) -> Timestamp {
        self.inner.now()
    }
    fn describe(&self) -> String {
        format!("faulty {}", self.inner.describe())
    }
    fn close(&self) -> Reply<'_, ()> {
        self.inner.close()
    }
}
