//! What a worker shows of itself: numbers, never payloads.

use std::sync::atomic::{AtomicU64, Ordering};

use poolwright_core::PoolName;

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// The numbers of a worker as they are counted.
        #[derive(Debug, Default)]
        pub(crate) struct Counters { $(pub(crate) $name: Counter,)+ }

        /// The numbers of a worker since its start.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Counts { $($(#[doc = $doc])+ pub $name: u64,)+ }

        impl Counters {
            pub(crate) fn snapshot(&self) -> Counts {
                Counts { $($name: self.$name.get(),)+ }
            }
        }
    };
}

counters! {
    /// Tasks claimed.
    claimed,
    /// Attempts that succeeded.
    completed,
    /// Attempts that failed and used a retry.
    retried,
    /// Attempts put off (rate limit, lock conflict, snooze), which use no retry.
    deferred,
    /// Tasks that failed for good.
    archived,
    /// Tasks gone without a dead letter: cancelled, revoked, or flagged before they ran.
    discarded,
    /// Tasks given back unused.
    released,
    /// Tasks given back with their queue paused for an operator.
    held,
    /// Attempts whose lease was lost to a later attempt; their results were dropped.
    lease_lost,
    /// Attempts given back because no handler here knows their type.
    no_handler,
    /// Tasks of dead workers that were taken over.
    crashed_taken_over,
    /// Attempts that became stalled: a blocked thread.
    stalled,
    /// Dead letters recorded.
    letters_recorded,
    /// Dead letters that the sink did not take; they are offered again.
    sink_failed,
}

/// Where a worker is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It claims and runs tasks.
    Running,
    /// It claims no more; what runs may end.
    Draining,
    /// What still ran was asked to end.
    Stopping,
    /// It has ended.
    Ended,
}

/// One pool of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolStatus {
    /// Its name.
    pub name: PoolName,
    /// Its workers.
    pub workers: u32,
    /// Those that have a task: running, or ended and not stored yet.
    pub busy: u32,
    /// Those of them whose handler was asked to end and cannot be dropped.
    pub stalled: u32,
    /// Attempts that ended well.
    pub completed: u64,
    /// Attempts that ended in another way.
    pub failed: u64,
}

/// A worker at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Where it is in its life.
    pub phase: Phase,
    /// The store does not answer.
    pub store_is_away: bool,
    /// Its pools, in the order given.
    pub pools: Vec<PoolStatus>,
    /// Its numbers.
    pub counts: Counts,
}

impl Status {
    /// Workers that have a task, in all pools.
    #[must_use]
    pub fn busy(&self) -> u32 {
        self.pools.iter().map(|pool| pool.busy).sum()
    }
}

/// How a worker ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Its last numbers.
    pub status: Status,
    /// Results that could not be stored, because the store stayed away or refused until the end. Their tasks are
    /// taken over when their leases expire.
    pub unsettled: usize,
    /// Handlers that still block a thread, which ends with the process.
    pub stuck: u32,
    /// A loop of the worker failed, which is a bug; the worker stopped because of it.
    pub failed: Option<String>,
}
