//! [`Submit`]: new tasks.

use std::sync::Arc;

use poolwright_broker::{Enqueued, Error, Reply, Submit};
use poolwright_core::NewTask;

use crate::SqliteStore;

/// A payload of this size counts as one task more when calls are grouped.
const PAYLOAD_BYTES_PER_WEIGHT: usize = 4_096;

impl Submit for SqliteStore {
    fn enqueue(&self, tasks: Vec<NewTask>) -> Reply<'_, Vec<Result<Enqueued, Error>>> {
        let weight = tasks.iter().map(|task| 1 + task.payload.len() / PAYLOAD_BYTES_PER_WEIGHT).sum();
        Box::pin(
            async move { self.explained(self.writer.submit(tasks, weight, Arc::clone(&self.anchor)).await) },
        )
    }
}
