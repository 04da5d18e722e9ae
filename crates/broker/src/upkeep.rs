//! The work of the loops that every process runs: idempotent, and safe to run in many processes at once.

use std::time::Duration;

use poolwright_core::{QueueName, TaskRecord, Timestamp};

use crate::{Held, Reply, ServerBeat, ServerId};

/// The longest lease that a caller may ask for: the bound of `lease` in the file of queues, and of the worker's option.
pub const LEASE_MAX: Duration = Duration::from_secs(3_600);

/// How far ahead of the store's clock a lease may end and still be believed; see [`Upkeep::take_over`].
///
/// Twice [`LEASE_MAX`]: a lease of that length stays its holder's when the clock is set back right after it was given,
/// by anything up to an hour. Clocks that are put right step by seconds or minutes; an hour is what a mistaken summer time
/// comes to.
pub const LEASE_AHEAD_MAX: Duration = LEASE_MAX.saturating_mul(2);

/// The answer to a promotion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Promoted {
    /// How many became pending.
    pub tasks: u32,
    /// When the next one of these queues is due; none when none waits. It has passed when the limit left due tasks.
    pub next_due: Option<Timestamp>,
}

/// A request for tasks whose worker lost contact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeOver {
    /// Where to look.
    pub queues: Vec<QueueName>,
    /// How many at most.
    pub limit: u32,
    /// How long the new leases last.
    pub lease: Duration,
    /// Once the store's clock is past this, nothing is taken over. The caller asks because of what it knew of leases when
    /// it asked; a request that got stuck on its way (behind another writer, in a connection, in a process that was
    /// suspended) must not act on what has changed since.
    pub not_after: Timestamp,
}

/// How long and how many ended tasks a queue keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// The queue.
    pub queue: QueueName,
    /// At most so many archived tasks: those beyond the newest so many go. asynq: 10,000.
    pub tasks_max: u64,
    /// No archived task older than this. asynq: 90 days.
    pub age_max: Duration,
    /// Spare archived tasks whose dead letter is not recorded yet. Nothing newer goes in their stead.
    pub spare_unrecorded: bool,
}

/// What a sweep removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swept {
    /// Completed tasks whose retention had passed.
    pub expired: u64,
    /// Archived tasks beyond the limits. Never silent: the caller logs and counts it.
    pub trimmed: u64,
    /// More is left; sweep again.
    pub more: bool,
}

/// What a reconciliation mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reconciled {
    /// Index entries without a task.
    pub index_entries: u64,
    /// Active tasks without a lease.
    pub leaseless: u64,
    /// Unique locks without a holder.
    pub locks: u64,
}

/// Keeps a store in order.
pub trait Upkeep: Send + Sync {
    /// Makes due tasks (scheduled, retry) pending, in each queue the earliest first, at most `limit` in one call. They
    /// wait since now, not since they were due.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`], [`crate::Error::Refused`].
    fn promote_due(&self, queues: Vec<QueueName>, limit: u32) -> Reply<'_, Promoted>;

    /// How often due tasks have to be looked for in any case, counted from the whole second: other programs may add some of
    /// which no watch tells, or whose clock is not ours. None: a watch tells of each.
    fn look_every(&self) -> Option<Duration> {
        None
    }

    /// Takes over active tasks whose lease has expired: they stay active, with a new token and lease, and are
    /// returned, in each queue the earliest expired first. `started_at`, progress and result stay: they tell of the
    /// attempt that was lost. The caller asks the judge and settles as usual; if it dies first, the next one takes over.
    ///
    /// A lease that ends further ahead of the store's clock than [`LEASE_AHEAD_MAX`] was written by a clock that was wrong,
    /// and counts as expired: else, once a clock is set back, the tasks of a worker that died before would wait for as
    /// long as it leapt. These come after the others of their queue. A worker that lives extends by the clock as it is
    /// now, so whoever sees the clock go back lets one lease pass before it asks.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`], [`crate::Error::Refused`].
    fn take_over(&self, request: TakeOver) -> Reply<'_, Vec<TaskRecord>>;

    /// Removes completed tasks whose retention has passed and archived ones beyond the limits, of these queues and in
    /// bounded steps: about a thousand tasks a call.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`], [`crate::Error::Refused`].
    fn sweep(&self, limits: Vec<ArchiveLimits>) -> Reply<'_, Swept>;

    /// Mends what other programs or an earlier fault left behind.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`], [`crate::Error::Refused`].
    fn reconcile(&self, queues: Vec<QueueName>) -> Reply<'_, Reconciled>;

    /// Archived tasks whose dead letter nobody has confirmed, in each queue the oldest first. Every entry into the
    /// archive wants a letter of its own.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`], [`crate::Error::Refused`].
    fn unrecorded(&self, queues: Vec<QueueName>, limit: u32) -> Reply<'_, Vec<TaskRecord>>;

    /// Confirms that the dead letters of these tasks and attempts are stored. Unknown ones are passed over.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`], [`crate::Error::Refused`].
    fn mark_recorded(&self, held: Vec<Held>) -> Reply<'_, ()>;

    /// Says that a server lives; the record, in place of its earlier one, lasts `lasts` from now.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`], [`crate::Error::Refused`].
    fn beat(&self, server: ServerBeat, lasts: Duration) -> Reply<'_, ()>;

    /// Removes a server's record at its stop; an unknown one is passed over.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`], [`crate::Error::Refused`].
    fn retire(&self, server: ServerId) -> Reply<'_, ()>;
}
