//! Queues in numbers: those of the file always, and whatever else the store has.

use poolwright_broker::{DayStats, QueueStats};
use poolwright_core::{PoolName, QueueName, Timestamp, TypeName};
use poolwright_registry::{Error as RegistryError, Queue, Topology};
use serde::Serialize;

use crate::{Error, TaskInspector, times};

/// A queue in numbers. One that never got a task is all zeros.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct QueueView {
    /// What the file calls it; what the store calls it when the file does not know it.
    pub name: String,
    /// What the store calls it.
    pub stored: QueueName,
    /// Its name for people.
    pub label: String,
    /// What goes through it, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The pool that owns it; none: the file does not know it, and nobody here works on it.
    pub pool: Option<PoolName>,
    /// How often its pool draws it, relative to the pool's other queues; 0 when the file does not know it.
    pub weight: u32,
    /// The pools that borrow it.
    pub borrowed_by: Vec<PoolName>,
    /// All that it holds, completed ones left out.
    pub size: u64,
    /// Tasks that wait for a worker.
    pub pending: u64,
    /// Tasks that run.
    pub active: u64,
    /// Tasks that wait for their first due time.
    pub scheduled: u64,
    /// Tasks that wait for their next try.
    pub retry: u64,
    /// Tasks that ended badly.
    pub archived: u64,
    /// Tasks that ended well and are kept.
    pub completed: u64,
    /// Records that were set aside because they do not decode.
    pub quarantined: u64,
    /// Attempts that ended today (UTC).
    pub processed: u64,
    /// Of these, failed.
    pub failed: u64,
    /// Attempts that ended, ever.
    pub processed_total: u64,
    /// Of these, failed.
    pub failed_total: u64,
    /// No worker takes tasks from it.
    pub paused: bool,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_reason: Option<String>,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "times::maybe")]
    pub paused_since: Option<Timestamp>,
    /// For how long its oldest pending task waits, in milliseconds.
    pub latency_ms: u64,
}

/// A day of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DayView {
    /// The day in UTC, as `2026-11-30`.
    pub date: String,
    /// Attempts that ended.
    pub processed: u64,
    /// Of these, failed.
    pub failed: u64,
}

impl TaskInspector {
    /// Every queue of the file in its order, then those that only the store knows.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn queues(&self) -> Result<Vec<QueueView>, Error> {
        let names = self.all_queues().await?;
        self.views(names).await
    }

    /// One queue.
    ///
    /// # Errors
    /// [`Error::UnknownQueue`], [`Error::Store`].
    pub async fn queue(&self, name: &str) -> Result<QueueView, Error> {
        let stored = self.stored(name).await?;
        let mut views = self.views(vec![stored]).await?;
        Ok(views.pop().expect("one name has one view"))
    }

    /// The last days of a queue (UTC), today first; at most a year.
    ///
    /// # Errors
    /// [`Error::UnknownQueue`], [`Error::Store`].
    pub async fn history(&self, queue: &str, days: u32) -> Result<Vec<DayView>, Error> {
        let queue = self.stored(queue).await?;
        Ok(self.broker.history(queue, days).await?.iter().map(day).collect())
    }

    /// The stored name of a queue that is named as the file or as the store calls it.
    ///
    /// # Errors
    /// [`Error::UnknownQueue`], [`Error::Store`].
    pub async fn stored(&self, name: &str) -> Result<QueueName, Error> {
        if let Some(queue) = self.topology.queue(name) {
            return Ok(queue.stored.clone());
        }
        let stored = self.broker.queues().await?;
        stored.into_iter().find(|queue| *queue == name).ok_or_else(|| unknown(&self.topology, name))
    }

    /// The stored names of all queues: those of the file in its order, then those that only the store knows.
    pub(crate) async fn all_queues(&self) -> Result<Vec<QueueName>, Error> {
        let mut all: Vec<QueueName> =
            self.topology.queues().iter().map(|queue| queue.stored.clone()).collect();
        let others = self.broker.queues().await?;
        all.extend(others.into_iter().filter(|queue| self.topology.queue(queue).is_none()));
        Ok(all)
    }

    async fn views(&self, names: Vec<QueueName>) -> Result<Vec<QueueView>, Error> {
        let stats = self.broker.queue_stats(names).await?;
        let now = self.broker.now();
        Ok(stats
            .iter()
            .map(|stats| view(self.topology.queue(&stats.queue).map(AsRef::as_ref), stats, now))
            .collect())
    }
}

fn view(known: Option<&Queue>, stats: &QueueStats, now: Timestamp) -> QueueView {
    let latency = stats.oldest_pending.map_or(0, |since| now.since(since).as_millis());
    QueueView {
        name: known.map_or_else(|| stats.queue.to_string(), |queue| queue.name.to_string()),
        stored: stats.queue.clone(),
        label: known.map_or_else(|| stats.queue.to_string(), |queue| queue.label.to_string()),
        description: known.and_then(|queue| queue.description.as_deref()).map(str::to_owned),
        pool: known.map(|queue| queue.home.clone()),
        weight: known.map_or(0, |queue| queue.weight),
        borrowed_by: known.map_or_else(Vec::new, |queue| queue.borrowers.clone()),
        size: stats.size(),
        pending: stats.pending,
        active: stats.active,
        scheduled: stats.scheduled,
        retry: stats.retry,
        archived: stats.archived,
        completed: stats.completed,
        quarantined: stats.quarantined,
        processed: stats.processed_today,
        failed: stats.failed_today,
        processed_total: stats.processed,
        failed_total: stats.failed,
        paused: stats.paused.is_some(),
        paused_reason: stats.paused.as_ref().map(|paused| paused.reason.clone()),
        paused_since: stats.paused.as_ref().map(|paused| paused.since),
        latency_ms: u64::try_from(latency).unwrap_or(u64::MAX),
    }
}

fn day(stats: &DayStats) -> DayView {
    DayView { date: times::date(stats.day), processed: stats.processed, failed: stats.failed }
}

/// What people call a queue: its name in the file, or its stored name when the file does not know it.
pub(crate) fn shown_name(topology: &Topology, stored: &QueueName) -> String {
    topology.queue(stored).map_or_else(|| stored.to_string(), |queue| queue.name.to_string())
}

/// The protected types whose tasks go into this queue.
pub(crate) fn protected_types(topology: &Topology, stored: &QueueName) -> Vec<TypeName> {
    let here = topology.types().iter().filter(|rules| rules.protected && rules.queue.stored == *stored);
    here.map(|rules| rules.name.clone()).collect()
}

fn unknown(topology: &Topology, name: &str) -> Error {
    let hint = match topology.require_queue(name) {
        Err(RegistryError::Unknown { hint, .. }) => hint,
        _ => String::new(),
    };
    Error::UnknownQueue { queue: name.to_owned(), hint }
}
