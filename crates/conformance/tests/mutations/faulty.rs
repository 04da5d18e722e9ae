//! A store in memory with one thing wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use poolwright_broker::{
    ArchiveLimits, Broker, Bulk, Cancel, CancelFeed, CancelOutcome, ClaimReply, ClaimRequest, Cursor,
    DayStats, Dispatch, Enqueued, Error, Exchanged, Extension, Find, Found, Held, How, Inspect, Page,
    PageRequest, Promoted, Quarantined, QueueStats, Reconciled, Reply, ServerBeat, ServerId, Settled, Signal,
    Submit, Swept, TakeOver, Upkeep, Watch,
};
use poolwright_core::{
    BoxFuture, Charge, Class, NewTask, OnConflict, QueueName, Settlement, State, TaskKey, TaskRecord,
    Timestamp, When,
};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// Whoever settles is taken for the holder.
    IgnoresTokensOnSettle,
    /// Whoever extends is taken for the holder.
    IgnoresTokensOnExtend,
    /// Any letter confirms any end.
    IgnoresTokensOnRecord,
    /// The lock of a discarded task is never free again.
    LosesTheLockOnDiscard,
    /// Locks are not taken at all.
    TakesNoLocks,
    /// Locks last a thousand times too long.
    LocksOutlastTheirTime,
    /// A pause stops nothing.
    ClaimsFromPausedQueues,
    /// The order of queues does not follow the seed of the demand.
    DrawsItsOwnLottery,
    /// What an exchange gives back is too late for its own claim.
    ClaimsBeforeItSettles,
    /// A resent claim takes more tasks.
    ClaimsAnewWhenResent,
    /// A resent claim gets its tasks in another order.
    ForgetsTheOrderOfClaims,
    /// Flagged tasks are not counted as discarded.
    DiscardsInSilence,
    /// A released task goes to the end of its queue.
    ReleasesToTheEnd,
    /// A retry clears the cancel flag.
    ForgetsTheFlagOnRetry,
    /// A completion without a result throws away what was stored.
    ForgetsStoredResults,
    /// Deferrals are charged as retries.
    ChargesDeferrals,
    /// A request that got stuck on its way takes tasks over all the same.
    TakesOverLate,
    /// Tasks are promoted a second before they are due.
    PromotesEarly,
    /// A follow-up is acknowledged and lost.
    LosesFollowUps,
    /// Ids are looked up in one step and taken in another.
    ChecksThenEnqueues,
    /// One refused task refuses its whole batch.
    FailsWholeBatches,
    /// Payloads end at their first NUL.
    CutsPayloadsAtNul,
    /// The index lists what it once listed.
    NeverForgetsSubjects,
    /// Unrecorded ends are trimmed, too.
    TrimsUnrecorded,
    /// Cursors count, so that changes shift what follows.
    PagesByOffset,
    /// Server records do not expire.
    ServersLiveForEver,
    /// Watches see only what happens while they wait.
    LosesWakeUps,
    /// Work goes on after the end.
    StaysOpen,
    /// The days of the history begin with yesterday.
    CountsYesterdayAsToday,
    /// A rescheduled task keeps its due time.
    IgnoresReschedule,
}

/// A store with a fault.
pub(crate) struct Faulty {
    inner: Arc<dyn Broker>,
    fault: Fault,
    leaked: Mutex<BTreeMap<Arc<str>, TaskKey>>,
    found: Mutex<BTreeSet<(TaskKey, String)>>,
}

impl Faulty {
    pub(crate) fn new(inner: Arc<dyn Broker>, fault: Fault) -> Arc<Self> {
        Arc::new(Self { inner, fault, leaked: Mutex::default(), found: Mutex::default() })
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    async fn state(&self, key: &TaskKey) -> Result<Option<State>, Error> {
        Ok(self.inner.get(key.clone()).await?.map(|task| task.state))
    }

    /// The proof that the present holder would have shown.
    async fn as_holder(&self, held: &mut Held) -> Result<(), Error> {
        if let Some(token) = self.inner.get(held.key.clone()).await?.and_then(|task| task.token) {
            held.token = token;
        }
        Ok(())
    }

    async fn enqueue_one(&self, mut task: NewTask) -> Result<Enqueued, Error> {
        let key = task.key.clone();
        match self.fault {
            Fault::TakesNoLocks => task.unique = None,
            Fault::LocksOutlastTheirTime => {
                task.unique.iter_mut().for_each(|lock| lock.lasts = lock.lasts.saturating_mul(1_000));
            }
            Fault::CutsPayloadsAtNul => {
                let end = task.payload.iter().position(|byte| *byte == 0);
                task.payload.truncate(end.unwrap_or(task.payload.len()));
            }
            Fault::LosesTheLockOnDiscard => {
                let lock = task.unique.as_ref().map(|lock| Arc::clone(&lock.key));
                let leaked = self.leaked.lock().expect("nobody panics under it");
                if let Some(holder) = lock.and_then(|lock| leaked.get(&lock)) {
                    return Err(Error::DuplicateUnique { holder: holder.clone() });
                }
            }
            Fault::LosesFollowUps
                if task.on_conflict == OnConflict::RunAgain
                    && self.state(&key).await? == Some(State::Active) =>
            {
                return Ok(Enqueued { key, state: State::Active, how: How::RunsAgain });
            }
            Fault::ChecksThenEnqueues if self.state(&key).await?.is_none() => {
                tokio::task::yield_now().await;
                self.inner.delete(key).await.ok();
            }
            _ => {}
        }
        self.inner.enqueue(vec![task]).await?.remove(0)
    }

    async fn settle_one(&self, mut held: Held, mut settlement: Settlement) -> Result<Settled, Error> {
        let before = self.inner.get(held.key.clone()).await?;
        match (self.fault, &mut settlement) {
            (Fault::IgnoresTokensOnSettle, _) => self.as_holder(&mut held).await?,
            (Fault::LosesTheLockOnDiscard, Settlement::Discard) => {
                let lock = before.and_then(|task| task.unique);
                let mut leaked = self.leaked.lock().expect("nobody panics under it");
                leaked.extend(lock.map(|lock| (lock.key, held.key.clone())));
            }
            (Fault::ForgetsTheFlagOnRetry, Settlement::Retry { class, .. }) => *class = Class::Cancelled,
            (Fault::ForgetsStoredResults, Settlement::Complete { result, .. }) => {
                result.get_or_insert_default();
            }
            (Fault::ChargesDeferrals, Settlement::Retry { charge, .. }) => *charge = Charge::Retry,
            (Fault::ReleasesToTheEnd, Settlement::Release) => {
                settlement = Settlement::Retry {
                    after: Duration::ZERO,
                    error: String::new(),
                    class: Class::Transient,
                    charge: Charge::Nothing,
                };
            }
            _ => {}
        }
        self.inner.settle(vec![(held, settlement)]).await?.remove(0)
    }

    async fn claim_paused_too(&self, request: ClaimRequest) -> Result<ClaimReply, Error> {
        let named = request.demands.iter().flat_map(|demand| &demand.queues);
        let queues: Vec<QueueName> = named.map(|weighted| weighted.queue.clone()).collect();
        let stats = self.inner.queue_stats(queues).await?;
        for stats in stats.iter().filter(|stats| stats.paused.is_some()) {
            self.inner.resume(stats.queue.clone()).await?;
        }
        let reply = self.inner.claim(request).await?;
        for stats in stats {
            if let Some(paused) = stats.paused {
                self.inner.pause(stats.queue, paused.reason).await?;
            }
        }
        Ok(reply)
    }

    async fn promote_early(&self, queues: &[QueueName]) -> Result<(), Error> {
        for queue in queues {
            let (queue, state) = (queue.clone(), State::Scheduled);
            let request = PageRequest { queue, state, after: None, limit: 1_000 };
            let soon = self.inner.now() + Duration::from_secs(1);
            for task in self.inner.page(request).await?.tasks {
                if task.due.is_some_and(|due| due <= soon) {
                    self.inner.run_now(task.key).await?;
                }
            }
        }
        Ok(())
    }

    async fn page_by_offset(&self, request: PageRequest) -> Result<Page, Error> {
        let skip = match &request.after {
            Some(cursor) => cursor.0.parse().map_err(|_| Error::BadCursor { given: cursor.0.clone() })?,
            None => 0,
        };
        let limit = request.limit as usize;
        let all = self.inner.page(PageRequest { after: None, limit: 1_000, ..request }).await?.tasks;
        let next = (skip + limit < all.len()).then(|| Cursor((skip + limit).to_string()));
        Ok(Page { tasks: all.into_iter().skip(skip).take(limit).collect(), next })
    }

    async fn find_for_ever(&self, what: Find, limit: u32) -> Result<Found, Error> {
        let mut answer = self.inner.find(what.clone(), limit).await?;
        let mut found = self.found.lock().expect("nobody panics under it");
        let name = format!("{what:?}");
        found.extend(answer.tasks.iter().map(|(key, ..)| (key.clone(), name.clone())));
        for (key, _) in found.iter().filter(|(_, of)| *of == name) {
            if !answer.tasks.iter().any(|(seen, ..)| seen == key) {
                let task_type = "test:task".try_into().expect("is a name");
                answer.tasks.push((key.clone(), State::Pending, task_type));
            }
        }
        Ok(answer)
    }
}

/// Methods that only pass on.
macro_rules! pass_on {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => {
        $(fn $name(&self, $($arg: $type),*) -> Reply<'_, $out> {
            self.inner.$name($($arg),*)
        })*
    };
}

impl Broker for Faulty {
    fn now(&self) -> Timestamp {
        self.inner.now()
    }

    fn describe(&self) -> String {
        format!("{} that {:?}", self.inner.describe(), self.fault)
    }

    fn close(&self) -> Reply<'_, ()> {
        match self.has(Fault::StaysOpen) {
            true => Box::pin(async { Ok(()) }),
            false => self.inner.close(),
        }
    }
}

impl Submit for Faulty {
    fn enqueue(&self, tasks: Vec<NewTask>) -> Reply<'_, Vec<Result<Enqueued, Error>>> {
        Box::pin(async move {
            let mut outcomes = Vec::new();
            for task in tasks {
                outcomes.push(self.enqueue_one(task).await);
            }
            match outcomes.iter().find_map(|outcome| outcome.as_ref().err()) {
                Some(error) if self.has(Fault::FailsWholeBatches) && outcomes.len() > 1 => Err(error.clone()),
                // A store that is closed refuses the call, not its parts.
                Some(error @ Error::Refused { .. }) => Err(error.clone()),
                _ => Ok(outcomes),
            }
        })
    }
}

impl Dispatch for Faulty {
    fn claim(&self, mut request: ClaimRequest) -> Reply<'_, ClaimReply> {
        Box::pin(async move {
            match self.fault {
                Fault::ClaimsAnewWhenResent => request.resent = false,
                Fault::DrawsItsOwnLottery => request.demands.iter_mut().for_each(|demand| demand.seed ^= 1),
                Fault::ClaimsFromPausedQueues => return self.claim_paused_too(request).await,
                _ => {}
            }
            let sorts = self.has(Fault::ForgetsTheOrderOfClaims) && request.resent;
            let mut reply = self.inner.claim(request).await?;
            if sorts {
                reply.claims.sort_by(|a, b| b.task.key.id.cmp(&a.task.key.id));
            }
            if self.has(Fault::DiscardsInSilence) {
                reply.discarded = 0;
            }
            Ok(reply)
        })
    }

    fn extend(&self, mut held: Vec<Held>, lease: Duration) -> Reply<'_, Vec<Extension>> {
        Box::pin(async move {
            if self.has(Fault::IgnoresTokensOnExtend) {
                for held in &mut held {
                    self.as_holder(held).await?;
                }
            }
            self.inner.extend(held, lease).await
        })
    }

    fn settle(&self, settlements: Vec<(Held, Settlement)>) -> Reply<'_, Vec<Result<Settled, Error>>> {
        Box::pin(async move {
            let mut outcomes = Vec::new();
            for (held, settlement) in settlements {
                match self.settle_one(held, settlement).await {
                    Err(error @ Error::Refused { .. }) => return Err(error),
                    outcome => outcomes.push(outcome),
                }
            }
            Ok(outcomes)
        })
    }

    fn exchange(&self, settlements: Vec<(Held, Settlement)>, request: ClaimRequest) -> Reply<'_, Exchanged> {
        Box::pin(async move {
            if self.has(Fault::ClaimsBeforeItSettles) {
                let claimed = Ok(self.claim(request).await?);
                return Ok(Exchanged { outcomes: self.settle(settlements).await?, claimed });
            }
            let outcomes = self.settle(settlements).await?;
            Ok(Exchanged { outcomes, claimed: self.claim(request).await })
        })
    }

    pass_on! {
        fn store_result(held: Held, result: Bytes) -> ();
        fn progress(held: Held, done: f64, note: String) -> ();
    }
}

impl Upkeep for Faulty {
    fn promote_due(&self, queues: Vec<QueueName>, limit: u32) -> Reply<'_, Promoted> {
        Box::pin(async move {
            if self.has(Fault::PromotesEarly) {
                self.promote_early(&queues).await?;
            }
            self.inner.promote_due(queues, limit).await
        })
    }

    fn take_over(&self, mut request: TakeOver) -> Reply<'_, Vec<TaskRecord>> {
        if self.has(Fault::TakesOverLate) {
            request.not_after = Timestamp::MAX;
        }
        self.inner.take_over(request)
    }

    fn sweep(&self, mut limits: Vec<ArchiveLimits>) -> Reply<'_, Swept> {
        if self.has(Fault::TrimsUnrecorded) {
            limits.iter_mut().for_each(|limits| limits.spare_unrecorded = false);
        }
        self.inner.sweep(limits)
    }

    fn mark_recorded(&self, mut held: Vec<Held>) -> Reply<'_, ()> {
        Box::pin(async move {
            if self.has(Fault::IgnoresTokensOnRecord) {
                for held in &mut held {
                    self.as_holder(held).await?;
                }
            }
            self.inner.mark_recorded(held).await
        })
    }

    fn beat(&self, server: ServerBeat, lasts: Duration) -> Reply<'_, ()> {
        let lasts = if self.has(Fault::ServersLiveForEver) { Duration::MAX } else { lasts };
        self.inner.beat(server, lasts)
    }

    pass_on! {
        fn reconcile(queues: Vec<QueueName>) -> Reconciled;
        fn unrecorded(queues: Vec<QueueName>, limit: u32) -> Vec<TaskRecord>;
        fn retire(server: ServerId) -> ();
    }
}

impl Inspect for Faulty {
    fn history(&self, queue: QueueName, days: u32) -> Reply<'_, Vec<DayStats>> {
        Box::pin(async move {
            let mut history = self.inner.history(queue, days).await?;
            if self.has(Fault::CountsYesterdayAsToday) {
                history.iter_mut().for_each(|day| day.day -= 1);
            }
            Ok(history)
        })
    }

    fn page(&self, request: PageRequest) -> Reply<'_, Page> {
        match self.has(Fault::PagesByOffset) {
            true => Box::pin(self.page_by_offset(request)),
            false => self.inner.page(request),
        }
    }

    fn find(&self, what: Find, limit: u32) -> Reply<'_, Found> {
        match self.has(Fault::NeverForgetsSubjects) {
            true => Box::pin(self.find_for_ever(what, limit)),
            false => self.inner.find(what, limit),
        }
    }

    fn reschedule(&self, key: TaskKey, when: When) -> Reply<'_, ()> {
        Box::pin(async move {
            let due = self.inner.get(key.clone()).await?.and_then(|task| task.due);
            match due {
                Some(due) if self.has(Fault::IgnoresReschedule) => {
                    self.inner.reschedule(key, When::At(due)).await
                }
                _ => self.inner.reschedule(key, when).await,
            }
        })
    }

    pass_on! {
        fn queues() -> Vec<QueueName>;
        fn queue_stats(queues: Vec<QueueName>) -> Vec<QueueStats>;
        fn get(key: TaskKey) -> Option<TaskRecord>;
        fn request_cancel(keys: Vec<TaskKey>) -> Vec<CancelOutcome>;
        fn run_now(key: TaskKey) -> State;
        fn archive(key: TaskKey, reason: String) -> State;
        fn delete(key: TaskKey) -> State;
        fn bulk(bulk: Bulk) -> u64;
        fn update_payload(key: TaskKey, payload: Bytes) -> ();
        fn pause(queue: QueueName, reason: String) -> bool;
        fn resume(queue: QueueName) -> bool;
        fn remove_queue(queue: QueueName, force: bool) -> u64;
        fn servers() -> Vec<ServerBeat>;
        fn quarantine(queue: QueueName, limit: u32) -> Vec<Quarantined>;
    }
}

impl Signal for Faulty {
    pass_on! {
        fn publish(cancel: Cancel) -> ();
        fn subscribe() -> Box<dyn CancelFeed>;
    }

    fn watch(&self, queues: Vec<QueueName>) -> Box<dyn Watch> {
        match self.has(Fault::LosesWakeUps) {
            true => Box::new(Forgetful { inner: Arc::clone(&self.inner), queues }),
            false => self.inner.watch(queues),
        }
    }
}

/// A watch that begins to look when somebody waits.
struct Forgetful {
    inner: Arc<dyn Broker>,
    queues: Vec<QueueName>,
}

impl Watch for Forgetful {
    fn changed(&mut self) -> BoxFuture<'_, ()> {
        let mut watch = self.inner.watch(self.queues.clone());
        Box::pin(async move { watch.changed().await })
    }
}
