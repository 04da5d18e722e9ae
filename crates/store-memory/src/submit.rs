//! [`Submit`]: tasks one after another, each with its own outcome.

use poolwright_broker::{Enqueued, Error, Reply, Submit};
use poolwright_core::NewTask;

use crate::MemoryStore;

impl Submit for MemoryStore {
    fn enqueue(&self, tasks: Vec<NewTask>) -> Reply<'_, Vec<Result<Enqueued, Error>>> {
        self.step(move |content, now| {
            let outcomes = tasks.into_iter().map(|task| {
                let queue = task.key.queue.clone();
                content.queue(&queue).enqueue(task, now)
            });
            outcomes.collect()
        })
    }
}
