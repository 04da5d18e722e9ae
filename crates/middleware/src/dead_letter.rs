//! Keeps the dead letter of an attempt that would end its task for good.
//!
//! It stands outermost, where the error that the handler and its layers gave is still whole, and asks the judge
//! whether that error would be final. The letter is left in the context; the worker writes it only after the store
//! has accepted the end, so a refused settlement leaves no letter behind.
//!
//! Invariant: nothing is written here, and the result passes unchanged.

use std::future::Future;
use std::pin::Pin;
use std::task::{self, Poll, ready};

use pin_project_lite::pin_project;
use poolwright_core::verdict::judge;
use poolwright_core::{BoxError, DeadLetter, End, Settlement};
use poolwright_handler::{Context, Output, TaskCall};
use tower::{Layer, Service};

/// Makes [`KeepsDeadLetter`].
#[derive(Debug, Clone, Copy, Default)]
pub struct DeadLetterLayer;

impl<S> Layer<S> for DeadLetterLayer {
    type Service = KeepsDeadLetter<S>;

    fn layer(&self, inner: S) -> Self::Service {
        KeepsDeadLetter { inner }
    }
}

/// Leaves a dead letter in the context when the inner service fails for good.
#[derive(Debug, Clone)]
pub struct KeepsDeadLetter<S> {
    inner: S,
}

impl<S> Service<TaskCall> for KeepsDeadLetter<S>
where
    S: Service<TaskCall, Response = Output, Error = BoxError>,
{
    type Response = Output;
    type Error = BoxError;
    type Future = KeepingDeadLetter<S::Future>;

    fn poll_ready(&mut self, task: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(task)
    }

    fn call(&mut self, call: TaskCall) -> Self::Future {
        let cx = call.context().clone();
        KeepingDeadLetter { inner: self.inner.call(call), cx }
    }
}

pin_project! {
    /// The future of [`KeepsDeadLetter`].
    pub struct KeepingDeadLetter<F> {
        #[pin]
        inner: F,
        cx: Context,
    }
}

impl<F: Future<Output = Result<Output, BoxError>>> Future for KeepingDeadLetter<F> {
    type Output = Result<Output, BoxError>;

    fn poll(self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.inner.poll(task));
        if let Err(error) = &result {
            keep(this.cx, &**error);
        }
        Poll::Ready(result)
    }
}

/// Leaves the letter, if this error would be the end of the task.
fn keep(cx: &Context, error: &(dyn std::error::Error + 'static)) {
    let now = cx.now();
    let verdict = judge(End::failed(error), &cx.task().attempt(), cx.policy(), now, cx.roll());
    if let Settlement::Archive { error, class } = verdict {
        cx.leave_dead_letter(DeadLetter::of(cx.task(), class, &error, now));
    }
}
