//! [`Signal`]: within the process by its bells, to other processes by what is written: new work and cancel flags.

use poolwright_broker::{Cancel, CancelFeed, Reply, Signal, Watch};
use poolwright_core::QueueName;

use crate::SqliteStore;
use crate::writer::closed;

impl Signal for SqliteStore {
    fn publish(&self, cancel: Cancel) -> Reply<'_, ()> {
        // Other processes see the flag on the record, which their watchers look for.
        let published = if self.bells.publish(cancel) { Ok(()) } else { Err(closed()) };
        Box::pin(std::future::ready(published))
    }

    fn subscribe(&self) -> Reply<'_, Box<dyn CancelFeed>> {
        let feed = self.bells.subscribe().map(|feed| Box::new(feed) as Box<dyn CancelFeed>);
        Box::pin(std::future::ready(feed.ok_or_else(closed)))
    }

    fn watch(&self, queues: Vec<QueueName>) -> Box<dyn Watch> {
        Box::new(self.bells.watch(queues))
    }
}
