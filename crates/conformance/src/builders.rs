//! Test data that states only what matters.
//!
//! ```
//! use poolwright_conformance::builders::task;
//!
//! let late = task("a1").queue("low").after(90).unique("x:y:1", 60).build();
//! assert_eq!(late.key.queue, "low");
//! ```

use std::time::Duration;

use bytes::Bytes;
use poolwright_broker::{ClaimId, ClaimRequest, Demand, WeightedQueue};
use poolwright_core::{
    Charge, Class, NewTask, OnConflict, PoolName, QueueName, Scope, Settlement, Subject, TaskId, TaskKey,
    Tenant, Timestamp, TypeName, UniqueLock, When,
};

/// The queue of every task that names no other.
pub const QUEUE: &str = "q";

/// A queue name. Panics on one that is none, as all of this module does.
#[must_use]
pub fn queue(name: &str) -> QueueName {
    QueueName::new(name).expect("a test names its queues well")
}

/// Queue names.
#[must_use]
pub fn queues(names: &[&str]) -> Vec<QueueName> {
    names.iter().map(|name| queue(name)).collect()
}

/// The key of a task in a queue.
#[must_use]
pub fn key(queue_name: &str, id: &str) -> TaskKey {
    TaskKey::new(queue(queue_name), TaskId::new(id).expect("a test names its tasks well"))
}

/// So many seconds.
#[must_use]
pub const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A task with this id in queue [`QUEUE`], of type `test:task`, with an empty payload and asynq's defaults.
#[must_use]
pub fn task(id: &str) -> TaskBuilder {
    let key = key(QUEUE, id);
    let task_type = TypeName::new("test:task").expect("is a name");
    TaskBuilder(NewTask::new(key.queue, key.id, task_type, Bytes::new()))
}

/// Tasks with these ids, as [`task`] makes them.
#[must_use]
pub fn tasks(ids: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<NewTask> {
    ids.into_iter().map(|id| task(id.as_ref()).build()).collect()
}

/// Builds a [`NewTask`].
#[derive(Debug, Clone)]
pub struct TaskBuilder(NewTask);

impl TaskBuilder {
    /// The task.
    #[must_use]
    pub fn build(self) -> NewTask {
        self.0
    }

    fn with(mut self, change: impl FnOnce(&mut NewTask)) -> Self {
        change(&mut self.0);
        self
    }

    /// Its queue.
    #[must_use]
    pub fn queue(self, name: &str) -> Self {
        self.with(|task| task.key.queue = queue(name))
    }

    /// Its type.
    #[must_use]
    pub fn task_type(self, name: &str) -> Self {
        self.with(|task| task.task_type = TypeName::new(name).expect("a test names its types well"))
    }

    /// Its payload.
    #[must_use]
    pub fn payload(self, payload: impl Into<Bytes>) -> Self {
        self.with(|task| task.payload = payload.into())
    }

    /// A header.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Self {
        self.with(|task| {
            task.headers.insert(name.into(), value.into());
        })
    }

    /// Due so many seconds after the store takes it.
    #[must_use]
    pub fn after(self, seconds: u64) -> Self {
        self.when(When::After(secs(seconds)))
    }

    /// Due at this time.
    #[must_use]
    pub fn at(self, time: Timestamp) -> Self {
        self.when(When::At(time))
    }

    /// Due then.
    #[must_use]
    pub fn when(self, when: When) -> Self {
        self.with(|task| task.when = when)
    }

    /// How often it may be tried again.
    #[must_use]
    pub fn max_retry(self, retries: u32) -> Self {
        self.with(|task| task.max_retry = retries)
    }

    /// How long an attempt may take.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|task| task.timeout = timeout)
    }

    /// After when it is not tried any more.
    #[must_use]
    pub fn deadline(self, deadline: Timestamp) -> Self {
        self.with(|task| task.deadline = Some(deadline))
    }

    /// How many seconds it is kept after success.
    #[must_use]
    pub fn retention(self, seconds: u64) -> Self {
        self.with(|task| task.retention = secs(seconds))
    }

    /// The lock it asks for, and for how many seconds from its due time on.
    #[must_use]
    pub fn unique(self, lock: &str, lasts_secs: u64) -> Self {
        self.with(|task| task.unique = Some(UniqueLock::new(lock, secs(lasts_secs))))
    }

    /// What happens when its id is taken.
    #[must_use]
    pub fn on_conflict(self, on_conflict: OnConflict) -> Self {
        self.with(|task| task.on_conflict = on_conflict)
    }

    /// `on_conflict` is `run_again`.
    #[must_use]
    pub fn run_again(self) -> Self {
        self.on_conflict(OnConflict::RunAgain)
    }

    /// One more thing it works for.
    #[must_use]
    pub fn subject(self, kind: &str, id: &str) -> Self {
        self.with(|task| task.subjects.push(Subject::new(kind, id)))
    }

    /// One more thing it belongs to.
    #[must_use]
    pub fn scope(self, kind: &str, id: &str) -> Self {
        self.with(|task| task.scopes.push(Scope::new(kind, id)))
    }

    /// Whom it is done for.
    #[must_use]
    pub fn tenant(self, tenant: &str) -> Self {
        self.with(|task| task.tenant = Some(Tenant(tenant.into())))
    }
}

impl From<TaskBuilder> for NewTask {
    fn from(builder: TaskBuilder) -> Self {
        builder.0
    }
}

/// The lease of every claim that says no other.
pub const LEASE: Duration = secs(30);

/// A claim of one pool (`pool`) for so many tasks from queues of equal weight.
#[must_use]
pub fn claim(id: u64, slots: u32, queue_names: &[&str]) -> ClaimRequest {
    let queues: Vec<_> = queue_names.iter().map(|name| (*name, 1)).collect();
    ClaimRequest {
        id: ClaimId(id),
        resent: false,
        lease: LEASE,
        demands: vec![demand("pool", slots, &queues, id)],
    }
}

/// What one pool asks for.
#[must_use]
pub fn demand(pool: &str, slots: u32, queues: &[(&str, u32)], seed: u64) -> Demand {
    Demand {
        pool: PoolName::new(pool).expect("a test names its pools well"),
        slots,
        queues: queues
            .iter()
            .map(|(name, weight)| WeightedQueue { queue: queue(name), weight: *weight })
            .collect(),
        seed,
    }
}

/// Success, and nothing is kept.
#[must_use]
pub const fn complete() -> Settlement {
    Settlement::Complete { retain_for: Duration::ZERO, result: None }
}

/// Success, kept for so many seconds with this result.
#[must_use]
pub fn keep(seconds: u64, result: &'static [u8]) -> Settlement {
    Settlement::Complete { retain_for: secs(seconds), result: Some(Bytes::from_static(result)) }
}

/// A transient failure that uses a retry and waits so many seconds.
#[must_use]
pub fn retry(after_secs: u64) -> Settlement {
    retry_as(after_secs, Class::Transient, Charge::Retry)
}

/// A failure of this class that costs this.
#[must_use]
pub fn retry_as(after_secs: u64, class: Class, charge: Charge) -> Settlement {
    Settlement::Retry { after: secs(after_secs), error: format!("it was {class}"), class, charge }
}

/// A permanent failure.
#[must_use]
pub fn archive() -> Settlement {
    Settlement::Archive { error: "never".into(), class: Class::Permanent }
}

/// Back with a pause for this reason.
#[must_use]
pub fn hold(reason: &str) -> Settlement {
    Settlement::Hold { reason: reason.into() }
}
