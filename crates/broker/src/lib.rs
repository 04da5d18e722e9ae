//! The contract between runtime and store: small traits, plain data.
//!
//! | Trait | Asked by |
//! | --- | --- |
//! | [`Submit`] | client |
//! | [`Dispatch`] | worker: claims, leases, settlements |
//! | [`Upkeep`] | the worker's loops |
//! | [`Inspect`] | inspector |
//! | [`Signal`] | worker and inspector |
//!
//! # Rules that every store keeps
//!
//! The conformance suite holds each of them against each store.
//!
//! 1. **One task, one atomic step.** A batch is many whole steps in one round trip; the outcome of one never
//!    depends on another's failure. A call that returns an outer error did nothing, or says that it is unknown.
//! 2. **A token is proof.** A claim and a take-over make a new one. `extend`, `settle`, `store_result` and `progress`
//!    present it. A lease that expired but was not taken over is still its holder's. A later token makes an
//!    earlier one worthless for ever.
//! 3. **The store's clock rules.** A relative time is added to the store's clock; nothing is due early. A time is reached
//!    when the clock shows it: what is due at `t` is due at `t`, and what lasts until `t` (lease, lock, retention, age in
//!    the archive, server record) is over at `t`.
//! 4. **Order.** A queue's pending tasks are claimed first in, first out. A task that becomes due, is retried with no
//!    delay, or is run by hand goes to the end. A released one goes back to where it was, before all that came later, with the `pending_since` it had. Lists
//!    ordered by a time are ordered by id (bytewise) where the times are equal.
//! 5. **Locks leak on no path.** A unique lock is its task's until the task is gone, completed, archived or
//!    quarantined, or until its time is over. Nobody but the holder frees it: once its time is over another may take
//!    it, and then it is the other's. It lasts until the later of due time and enqueue, plus `lasts`. `run_now` does not
//!    take it again, `reschedule` does not move its end.
//! 6. **Cancel survives.** The flag stays until the task ends; it outlives `Retry` (except one of class cancelled),
//!    `Release` and `Hold`. A claim that meets a flagged task discards it and takes the next. `run_now` clears it.
//! 7. **Every exit cleans up**: lease, lock, subject index.
//! 8. **Poison is set aside.** A record that does not decode goes to quarantine and blocks nothing.
//! 9. **Pause** stops claims and nothing else.
//! 10. **Counters**, by UTC day and in total: `processed` counts `Complete`, `Discard`, `Archive` and `Retry` that is
//!     charged as a retry; `failed` counts the last two. Nothing an operator does is counted, nor is a flagged task that
//!     a claim discards.
//! 11. **Text that people wrote** (errors, reasons, notes) is stored as [`poolwright_core::text::error_text`] cuts it.
//! 12. **A follow-up** (see [`Submit`]) stays with its task until that task ends by `Complete`, `Archive` or `Discard`, or
//!     by a claim that finds it flagged. It takes the record's place in the same step, as if enqueued then. What an
//!     operator archives or deletes takes its follow-up along.

pub mod dispatch;
pub mod error;
pub mod inspect;
pub mod lottery;
pub mod server;
pub mod signal;
pub mod submit;
pub mod upkeep;

pub use dispatch::{
    Claim, ClaimId, ClaimReply, ClaimRequest, Demand, Dispatch, Exchanged, Extension, Held, Settled,
    WeightedQueue,
};
pub use error::Error;
pub use inspect::{
    Bulk, BulkAction, CancelOutcome, Cursor, DayStats, Find, Found, HISTORY_DAYS_MAX, Inspect, Page,
    PageRequest, Paused, Quarantined, QueueStats,
};
pub use lottery::Lottery;
pub use server::{PoolBeat, RunningTask, ServerBeat, ServerId};
pub use signal::{Cancel, CancelFeed, Signal, Watch};
pub use submit::{Enqueued, How, Submit};
pub use upkeep::{ArchiveLimits, LEASE_AHEAD_MAX, LEASE_MAX, Promoted, Reconciled, Swept, TakeOver, Upkeep};

use poolwright_core::Timestamp;

/// What every method of a broker gives: a future of a result with the broker's [`Error`].
pub type Reply<'a, T> = poolwright_core::BoxFuture<'a, Result<T, Error>>;

/// A whole store. `Arc<dyn Broker>` is what runtime, client and inspector hold; it upcasts to each part.
pub trait Broker: Submit + Dispatch + Upkeep + Inspect + Signal + 'static {
    /// The store's clock, as well as it is known here.
    fn now(&self) -> Timestamp;

    /// What kind of store it is and where, for messages: `sqlite:tasks.db`. Without secrets.
    fn describe(&self) -> String;

    /// Ends background work and flushes what is buffered. Calls after it are refused, but for `now`, `describe` and another
    /// close, which is no error. Watches return once, feeds give none.
    fn close(&self) -> Reply<'_, ()>;
}
