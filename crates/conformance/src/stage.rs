//! What a case stands on: short words for the calls of a broker, on a fresh store.
//!
//! Calls give the broker's own error, for cases that expect one. Those whose name begins with `the` or `take`
//! expect something to be there, and say so when it is not.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use poolwright_broker::{
    ArchiveLimits, Broker, ClaimRequest, Enqueued, Error, Extension, Held, Page, PageRequest, Promoted,
    QueueStats, Settled, Swept, TakeOver,
};
use poolwright_core::{NewTask, Settlement, State, TaskRecord, Timestamp};

use crate::Harness;
use crate::builders::{LEASE, QUEUE, TaskBuilder, archive, claim, keep, key, queue, queues, retry};

/// How long a case waits for a signal before it calls it lost, unless its caller says otherwise. Only ever fails.
pub const SAFETY: Duration = Duration::from_secs(30);

/// Something a case needed was not there.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unmet {
    #[error("{0}")]
    Missing(String),
    #[error(transparent)]
    Broker(#[from] Error),
}

/// A fresh store, and shorthand for what is done to it.
pub(crate) struct Stage<'h> {
    harness: &'h dyn Harness,
    safety: Duration,
    claims: AtomicU64,
}

impl<'h> Stage<'h> {
    pub(crate) fn new(harness: &'h dyn Harness, safety: Duration) -> Self {
        Self { harness, safety, claims: AtomicU64::new(1) }
    }

    /// How long this case waits for a signal.
    pub(crate) fn safety(&self) -> Duration {
        self.safety
    }

    /// Waits for what must happen; a hang becomes a failure.
    pub(crate) async fn soon<T>(&self, what: &str, future: impl Future<Output = T>) -> T {
        soon(self.safety, what, future).await
    }

    pub(crate) fn harness(&self) -> &'h dyn Harness {
        self.harness
    }

    pub(crate) fn broker(&self) -> Arc<dyn Broker> {
        self.harness.broker()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.harness.now()
    }

    pub(crate) async fn elapse(&self, seconds: u64) {
        self.harness.elapse(Duration::from_secs(seconds)).await;
    }

    /// Asserts that a time the store computed is `exact`, or later by less than its precision.
    #[track_caller]
    pub(crate) fn assert_time(&self, seen: Option<Timestamp>, exact: Timestamp) {
        let seen = seen.expect("a time is kept");
        assert!(seen >= exact, "{seen} is earlier than {exact}");
        assert!(
            seen < exact + self.harness.precision(),
            "{seen} is later than {exact} by more than the precision"
        );
    }

    // Submitting.

    pub(crate) async fn enqueue(&self, task: impl Into<NewTask>) -> Result<Enqueued, Error> {
        let mut outcomes = self.enqueue_all(vec![task.into()]).await?;
        assert_eq!(outcomes.len(), 1, "one task, one outcome");
        outcomes.remove(0)
    }

    pub(crate) async fn enqueue_all(
        &self,
        tasks: Vec<NewTask>,
    ) -> Result<Vec<Result<Enqueued, Error>>, Error> {
        self.broker().enqueue(tasks).await
    }

    // Dispatching.

    /// A claim id that no other claim of this case has.
    pub(crate) fn claim_id(&self) -> u64 {
        self.claims.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) async fn claim_as(&self, request: ClaimRequest) -> Result<Vec<TaskRecord>, Error> {
        let reply = self.broker().claim(request).await?;
        Ok(reply.claims.into_iter().map(|claim| claim.task).collect())
    }

    pub(crate) async fn claim(&self, slots: u32) -> Result<Vec<TaskRecord>, Error> {
        self.claim_from(slots, &[QUEUE]).await
    }

    pub(crate) async fn claim_from(&self, slots: u32, from: &[&str]) -> Result<Vec<TaskRecord>, Error> {
        self.claim_as(claim(self.claim_id(), slots, from)).await
    }

    /// The next task of the queue, which must have one.
    pub(crate) async fn take(&self) -> Result<TaskRecord, Unmet> {
        self.take_from(QUEUE).await
    }

    pub(crate) async fn take_from(&self, from: &str) -> Result<TaskRecord, Unmet> {
        let mut tasks = self.claim_from(1, &[from]).await?;
        tasks.pop().ok_or_else(|| Unmet::Missing(format!("queue {from} gave no task to a claim")))
    }

    /// Enqueues a task and claims it: it must be the next of its queue.
    pub(crate) async fn running(&self, task: impl Into<NewTask>) -> Result<TaskRecord, Unmet> {
        let task = task.into();
        let key = task.key.clone();
        self.enqueue(task).await?;
        let taken = self.take_from(key.queue.as_str()).await?;
        if taken.key != key {
            return Err(Unmet::Missing(format!("expected to claim {key}, got {}", taken.key)));
        }
        Ok(taken)
    }

    pub(crate) async fn settle(&self, task: &TaskRecord, settlement: Settlement) -> Result<Settled, Error> {
        let mut outcomes = self.broker().settle(vec![(held(task), settlement)]).await?;
        assert_eq!(outcomes.len(), 1, "one settlement, one outcome");
        outcomes.remove(0)
    }

    /// Enqueues a task, claims it and settles it so.
    pub(crate) async fn settled(
        &self,
        task: impl Into<NewTask>,
        settlement: Settlement,
    ) -> Result<TaskRecord, Unmet> {
        let taken = self.running(task).await?;
        self.settle(&taken, settlement).await?;
        Ok(taken)
    }

    /// Brings a task into this state: claims what must be claimed, so its queue must hold no other pending task.
    /// A waiting one is due in a minute, a completed one is kept for ten.
    pub(crate) async fn reach(&self, state: State, task: TaskBuilder) -> Result<TaskRecord, Unmet> {
        let key = task.clone().build().key;
        match state {
            State::Pending => drop(self.enqueue(task).await?),
            State::Scheduled => drop(self.enqueue(task.after(60)).await?),
            State::Active => drop(self.running(task).await?),
            State::Retry => drop(self.settled(task, retry(60)).await?),
            State::Archived => drop(self.settled(task, archive()).await?),
            State::Completed => drop(self.settled(task, keep(600, b"kept")).await?),
        }
        let reached = self.broker().get(key).await?.filter(|task| task.state == state);
        reached.ok_or_else(|| Unmet::Missing(format!("the task did not become {state}")))
    }

    pub(crate) async fn extend(&self, task: &TaskRecord, lease: Duration) -> Result<Extension, Error> {
        let answers = self.broker().extend(vec![held(task)], lease).await?;
        assert_eq!(answers.len(), 1, "one lease, one answer");
        Ok(answers[0])
    }

    // Upkeep.

    pub(crate) async fn promote(&self) -> Result<Promoted, Error> {
        self.broker().promote_due(queues(&[QUEUE]), 1_000).await
    }

    pub(crate) async fn sweep(
        &self,
        tasks_max: u64,
        age_max: Duration,
        spare_unrecorded: bool,
    ) -> Result<Swept, Error> {
        let queue = queue(QUEUE);
        self.broker().sweep(vec![ArchiveLimits { queue, tasks_max, age_max, spare_unrecorded }]).await
    }

    /// A sweep that trims nothing.
    pub(crate) async fn sweep_expired(&self) -> Result<Swept, Error> {
        self.sweep(u64::MAX, Duration::MAX, false).await
    }

    pub(crate) async fn take_over(&self) -> Result<Vec<TaskRecord>, Error> {
        let request =
            TakeOver { queues: queues(&[QUEUE]), limit: 1_000, lease: LEASE, not_after: Timestamp::MAX };
        self.broker().take_over(request).await
    }

    // Looking.

    pub(crate) async fn find(&self, id: &str) -> Result<Option<TaskRecord>, Error> {
        self.broker().get(key(QUEUE, id)).await
    }

    /// The record with this id, which must exist.
    pub(crate) async fn the(&self, id: &str) -> Result<TaskRecord, Unmet> {
        self.find(id).await?.ok_or_else(|| Unmet::Missing(format!("no task {id} is there")))
    }

    pub(crate) async fn state(&self, id: &str) -> Result<Option<State>, Error> {
        Ok(self.find(id).await?.map(|task| task.state))
    }

    pub(crate) async fn stats(&self) -> Result<QueueStats, Error> {
        self.stats_of(QUEUE).await
    }

    pub(crate) async fn stats_of(&self, name: &str) -> Result<QueueStats, Error> {
        let mut stats = self.broker().queue_stats(vec![queue(name)]).await?;
        assert_eq!(stats.len(), 1, "one queue, one answer");
        Ok(stats.remove(0))
    }

    pub(crate) async fn page(&self, state: State, limit: u32) -> Result<Page, Error> {
        self.broker().page(PageRequest { queue: queue(QUEUE), state, after: None, limit }).await
    }

    /// The ids of all tasks in this state, in the order of pages.
    pub(crate) async fn ids(&self, state: State) -> Result<Vec<String>, Error> {
        let page = self.page(state, 1_000).await?;
        assert!(page.next.is_none(), "a case has fewer tasks than a page");
        Ok(ids(&page.tasks))
    }
}

/// The proof out of an active record.
#[track_caller]
pub(crate) fn held(task: &TaskRecord) -> Held {
    Held::of(task).expect("a claimed task has a token")
}

/// The ids of these tasks.
pub(crate) fn ids(tasks: &[TaskRecord]) -> Vec<String> {
    tasks.iter().map(|task| task.key.id.as_str().to_owned()).collect()
}

/// All states, with pending as the last: tasks brought into them one after another do not stand in each other's way.
pub(crate) const STATES: [State; 6] =
    [State::Active, State::Scheduled, State::Retry, State::Archived, State::Completed, State::Pending];

/// Asserts that the task was refused for being in this state.
#[track_caller]
pub(crate) fn assert_wrong_state<T: std::fmt::Debug>(outcome: Result<T, Error>, id: &str, is: State) {
    match outcome {
        Err(Error::WrongState { key: of, state, .. }) => assert_eq!((of, state), (key(QUEUE, id), is)),
        other => panic!("a task that is {is} must be refused for it, got {other:?}"),
    }
}

/// The refusal of an attempt that owns nothing any more.
pub(crate) fn lease_lost(id: &str) -> Error {
    Error::LeaseLost { key: key(QUEUE, id) }
}

/// The refusal of a task that is not there.
pub(crate) fn not_found(id: &str) -> Error {
    Error::NotFound { key: key(QUEUE, id) }
}

/// [`Stage::soon`] where the stage cannot go along.
pub(crate) async fn soon<T>(safety: Duration, what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(safety, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {safety:?} in vain for {what}"),
    }
}
