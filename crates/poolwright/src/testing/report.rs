//! What handlers of a test queue tell its store while they run.

use std::sync::Arc;

use bytes::Bytes;
use poolwright_broker::{Broker, Held};
use poolwright_core::{BoxError, BoxFuture, TaskRecord};
use poolwright_handler::Report;

pub(super) struct StoreReport(pub(super) Arc<dyn Broker>);

impl Report for StoreReport {
    fn progress<'a>(
        &'a self,
        task: &'a TaskRecord,
        done: f64,
        note: &'a str,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move { Ok(self.0.progress(held(task)?, done, note.to_owned()).await?) })
    }

    fn store_result<'a>(
        &'a self,
        task: &'a TaskRecord,
        result: Bytes,
    ) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move { Ok(self.0.store_result(held(task)?, result).await?) })
    }
}

fn held(task: &TaskRecord) -> Result<Held, BoxError> {
    Held::of(task).ok_or_else(|| format!("task {} is not claimed", task.key).into())
}
