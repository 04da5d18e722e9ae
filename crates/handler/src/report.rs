//! What a running attempt can tell its store.

use bytes::Bytes;
use poolwright_core::{BoxError, BoxFuture, TaskRecord};

/// The way from a handler to the store. The worker gives one; tests may have their own.
pub trait Report: Send + Sync {
    /// Notes how far it is, from 0 to 1, with a word.
    fn progress<'a>(
        &'a self,
        task: &'a TaskRecord,
        done: f64,
        note: &'a str,
    ) -> BoxFuture<'a, Result<(), BoxError>>;

    /// Keeps a result with the task.
    fn store_result<'a>(&'a self, task: &'a TaskRecord, result: Bytes)
    -> BoxFuture<'a, Result<(), BoxError>>;
}

/// Tells nobody: for handlers run inline.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoReport;

impl Report for NoReport {
    fn progress<'a>(&'a self, _: &'a TaskRecord, _: f64, _: &'a str) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async { Ok(()) })
    }

    fn store_result<'a>(&'a self, _: &'a TaskRecord, _: Bytes) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async { Ok(()) })
    }
}
