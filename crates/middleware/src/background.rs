//! Marks the attempt as background work.
//!
//! Layers inside and the handler may ask [`poolwright_handler::background::is_background`], for instance to wait for a
//! model's free slot where interactive callers would not.

use std::task::{self, Poll};

use poolwright_core::BoxError;
use poolwright_handler::background::{self, Marked};
use poolwright_handler::{Output, TaskCall};
use tower::{Layer, Service};

/// Makes [`InBackground`].
#[derive(Debug, Clone, Copy, Default)]
pub struct BackgroundLayer;

impl<S> Layer<S> for BackgroundLayer {
    type Service = InBackground<S>;

    fn layer(&self, inner: S) -> Self::Service {
        InBackground { inner }
    }
}

/// Runs the inner service with the mark: its call and its future.
#[derive(Debug, Clone)]
pub struct InBackground<S> {
    inner: S,
}

impl<S> Service<TaskCall> for InBackground<S>
where
    S: Service<TaskCall, Response = Output, Error = BoxError>,
{
    type Response = Output;
    type Error = BoxError;
    type Future = Marked<S::Future>;

    fn poll_ready(&mut self, task: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(task)
    }

    fn call(&mut self, call: TaskCall) -> Self::Future {
        background::scope(background::enter(|| self.inner.call(call)))
    }
}
