//! What makes things quick: new work and cancellations. Losing a signal costs time, never a task.

use poolwright_core::{BoxFuture, QueueName, TaskKey};

use crate::Reply;

/// A running task should end. The flag on its record says the same for good; this only says it sooner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cancel {
    /// Which task.
    pub key: TaskKey,
}

/// Cancellations as they are published.
pub trait CancelFeed: Send {
    /// The next one; none when the store was closed.
    fn next(&mut self) -> BoxFuture<'_, Option<Cancel>>;
}

/// Notices that there may be work.
pub trait Watch: Send {
    /// Returns when something happened since the last return (or since the watch was made) that may have given
    /// one of its queues a claimable or an earlier due task. It may return without cause; it never misses one.
    /// Safe to drop while waiting: what it would have said is said at the next call. Closing the store returns it once;
    /// after that it waits for ever.
    ///
    /// What happened: an enqueue (a scheduled one, too), a promotion, a settlement that left the task pending or in retry
    /// or started its follow-up, `run_now`, `reschedule`, `resume`, and each of them done in bulk.
    fn changed(&mut self) -> BoxFuture<'_, ()>;
}

/// Passes signals between processes, as well as the store can.
pub trait Signal: Send + Sync {
    /// Tells whoever runs the task to look at its flag.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`], [`crate::Error::Refused`].
    fn publish(&self, cancel: Cancel) -> Reply<'_, ()>;

    /// Listens for cancellations from now on. A slow listener loses the oldest ones.
    ///
    /// # Errors
    /// [`crate::Error::Unavailable`], [`crate::Error::Refused`].
    fn subscribe(&self) -> Reply<'_, Box<dyn CancelFeed>>;

    /// Watches queues for work, from now on. Make the watch first, claim second, wait third.
    fn watch(&self, queues: Vec<QueueName>) -> Box<dyn Watch>;
}
