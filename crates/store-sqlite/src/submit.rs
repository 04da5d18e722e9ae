//! [`Submit`]: new tasks.

use poolwright_broker::{Enqueued, Error, Reply, Submit};
use poolwright_core::NewTask;

use crate::SqliteStore;
use crate::steps::enqueue::enqueue;

/// A payload of this size counts as one task more when calls are grouped.
const PAYLOAD_BYTES_PER_WEIGHT: usize = 4_096;

impl Submit for SqliteStore {
    fn enqueue(&self, tasks: Vec<NewTask>) -> Reply<'_, Vec<Result<Enqueued, Error>>> {
        let weight = tasks.iter().map(|task| 1 + task.payload.len() / PAYLOAD_BYTES_PER_WEIGHT).sum();
        self.write(weight, move |work| Ok(enqueue(work, &tasks)?))
    }
}
