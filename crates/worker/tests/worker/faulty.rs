//! A store that can go away, lose its replies, refuse, hang, and count what it is asked.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use poolwright_broker::*;
use poolwright_core::{NewTask, QueueName, Settlement, State, TaskKey, TaskRecord, Timestamp, When};
use tokio::sync::Notify;

/// What goes wrong with one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is done, and nobody hears of it.
    LoseReply,
    /// It is not done.
    Refuse,
    /// It is never answered.
    Hang,
    /// It gets stuck on its way, and is done when the test lets it.
    Stuck,
    /// The store breaks with a panic.
    Panic,
    /// Of a batch of settlements, none is answered for.
    NoOutcomes,
}

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

    /// Waits until a call is stuck.
    pub(crate) async fn until_stuck(&self) {
        self.until(async |_| self.with(|troubles| troubles.stuck > 0)).await;
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
            let (is_away, fault) = self.with(|troubles| {
                *troubles.calls.entry(call).or_default() += 1;
                (troubles.is_away, troubles.faults.get_mut(call).and_then(VecDeque::pop_front))
            });
            let away = || Err(Error::Unavailable { why: "the test took it away".into() });
            let answer = match fault {
                _ if is_away => away(),
                None => reply.await,
                Some(Fault::LoseReply) => {
                    drop(reply.await);
                    away()
                }
                Some(Fault::Refuse) => Err(Error::Refused { why: "the test wants it so".into() }),
                Some(Fault::Panic) => panic!("the store breaks on purpose"),
                Some(Fault::NoOutcomes) => unreachable!("only settlements have outcomes"),
                Some(Fault::Stuck) => {
                    let loosened = self.loosened.notified();
                    self.with(|troubles| troubles.stuck += 1);
                    self.changed.notify_waiters();
                    loosened.await;
                    reply.await
                }
                Some(Fault::Hang) => {
                    self.changed.notify_waiters();
                    std::future::pending().await
                }
            };
            self.changed.notify_waiters();
            answer
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
        let spoilt = self.with(|troubles| {
            troubles.settled.extend(settlements.iter().cloned());
            let faults = troubles.faults.entry("settle").or_default();
            (faults.front() == Some(&Fault::NoOutcomes)).then(|| faults.pop_front())
        });
        if spoilt.is_some() {
            let away = || Err(Error::Unavailable { why: "a part of the store is away".into() });
            let outcomes = settlements.iter().map(|_| away()).collect();
            return Box::pin(std::future::ready(Ok(outcomes)));
        }
        self.ask("settle", self.inner.settle(settlements))
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
