//! Turns what ends a handler from outside into ordinary errors: a timeout, a request to stop, a panic.
//!
//! It stands next to the handler, so that every layer sees these as errors with a class.
//!
//! ```text
//!              time is over, or the token fires                 stop_grace passes
//!   running ──────────────────────────────────────► stopping ─────────────────────► dropped: error of the reason
//!      │                                               │
//!      └── returns or panics: as it is                 └── returns or panics: see below
//! ```
//!
//! When time is over the guard fires the token itself, so that a handler which waits for `cx.cancelled()` or meets a
//! checkpoint learns of both in the same way. What it gives while it is stopping:
//!
//! | asked to stop because | `Ok` | transient, a panic, the word of a checkpoint | any other error |
//! | --- | --- | --- | --- |
//! | its time was over | success | `timed_out`, caused by it | as it is |
//! | somebody cancelled it | success | `cancelled`, caused by it | `cancelled`, caused by it |
//! | another reason was given | success | that reason, caused by it | as it is |
//! | the token was fired without a reason (the worker stops) | success | `cancelled`, caused by it | as it is |
//!
//! `Ok` means that the work was done, and running it again would do it twice. A connection that broke or a channel that
//! closed most likely did so *because* of the stop, and would hide it. An error that says more (permanent, rate limited,
//! revoked, …) knows better, but for a cancelled task, which nothing may bring back. The worker gives a task back
//! instead when it stops and finds `cancelled` here; it knows why it fired the token.
//!
//! A handler that answers without waiting is not watched at all: a timer for each would cost more than many handlers do.
//! What its first poll missed, it finds when it begins to watch.
//!
//! Invariant: once this future has given its result, the handler's future is gone; nothing of it runs on.

use std::future::Future;
use std::pin::Pin;
use std::task::{self, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use poolwright_core::{BoxError, Class, Next, TaskError};
use poolwright_handler::{Context, Output, TaskCall};
use tokio::time::Sleep;
use tokio_util::sync::WaitForCancellationFutureOwned;
use tower::{Layer, Service};

use crate::panic::catch;

/// How long a handler has to return by itself after it was asked to stop: 5 s.
pub const STOP_GRACE: Duration = Duration::from_secs(5);

/// Makes [`Guard`].
#[derive(Debug, Clone, Copy)]
pub struct GuardLayer {
    stop_grace: Duration,
}

impl GuardLayer {
    /// A guard that waits this long for a handler which was asked to stop, before it drops its future.
    #[must_use]
    pub const fn new(stop_grace: Duration) -> Self {
        Self { stop_grace }
    }
}

impl Default for GuardLayer {
    fn default() -> Self {
        Self::new(STOP_GRACE)
    }
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guard<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Guard { inner, stop_grace: self.stop_grace }
    }
}

/// Bounds the inner service; see the module.
#[derive(Debug, Clone)]
pub struct Guard<S> {
    inner: S,
    stop_grace: Duration,
}

impl<S> Service<TaskCall> for Guard<S>
where
    S: Service<TaskCall, Response = Output, Error = BoxError>,
{
    type Response = Output;
    type Error = BoxError;
    type Future = Guarded<S::Future>;

    fn poll_ready(&mut self, task: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(task)
    }

    /// The future must be polled within a tokio runtime that has timers.
    fn call(&mut self, call: TaskCall) -> Self::Future {
        let cx = call.context().clone();
        let work = match never_begins(&cx) {
            Some(error) => Err(error),
            None => catch(|| self.inner.call(call)),
        };
        let (work, refusal) = match work {
            Ok(work) => (Some(work), None),
            Err(error) => (None, Some(error.into())),
        };
        Guarded { work, refusal, watch: None, stop_grace: self.stop_grace, cx }
    }
}

/// An attempt whose end came before its beginning is not begun.
fn never_begins(cx: &Context) -> Option<TaskError> {
    if let Some(reason) = cx.stop_reason() {
        return Some(TaskError::new(reason, format!("{} before it began", told(cx))));
    }
    let is_over = cx.time_left().is_some_and(|left| left.is_zero());
    is_over.then(|| TaskError::new(Class::TimedOut, "its time was over before it began"))
}

/// The reason to stop, as the beginning of a message.
fn told(cx: &Context) -> String {
    match cx.given_reason() {
        Some(Class::TimedOut) => overtime(cx),
        Some(Class::Cancelled) => "it was cancelled".to_owned(),
        Some(Class::Crashed) => "its lease was lost".to_owned(),
        Some(other) => format!("it was asked to stop ({other})"),
        None => "it was asked to stop".to_owned(),
    }
}

/// Says which limit it was, as it was set: what was left of it when the handler began differs from attempt to attempt,
/// and equal failures should read alike.
fn overtime(cx: &Context) -> String {
    let task = cx.task();
    let limit = task.started_at.filter(|_| !task.timeout.is_zero()).map(|started| started + task.timeout);
    match task.deadline {
        Some(deadline) if limit.is_none_or(|limit| deadline <= limit) => {
            format!("its deadline {deadline} had passed")
        }
        _ if task.timeout.is_zero() => "its time was over".to_owned(),
        _ => format!("its timeout of {:?} was over", task.timeout),
    }
}

pin_project! {
    /// The future of [`Guard`].
    pub struct Guarded<F> {
        // None once it has given its result.
        #[pin]
        work: Option<F>,
        // The result of an attempt that did not begin.
        refusal: Option<BoxError>,
        // None before the work waits for the first time. In a box, because the future moves through all layers before.
        watch: Option<Pin<Box<Watch>>>,
        stop_grace: Duration,
        cx: Context,
    }
}

pin_project! {
    /// What may end a handler that waits.
    struct Watch {
        // The end of its time; while stopping, the end of its grace.
        #[pin]
        alarm: Option<Sleep>,
        #[pin]
        stopped: WaitForCancellationFutureOwned,
        is_stopping: bool,
    }
}

impl<F: Future<Output = Result<Output, BoxError>>> Future for Guarded<F> {
    type Output = Result<Output, BoxError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Self::Output> {
        if let Some(error) = self.as_mut().project().refusal.take() {
            return Poll::Ready(Err(error));
        }
        let mut this = self.project();
        // Before the work: a handler that never has to wait uses up tokio's budget for this poll, and timers asked
        // after it would not answer, so that it could not be stopped.
        let mut is_over = match this.watch {
            Some(watch) => watch.as_mut().grace_is_over(this.cx, *this.stop_grace, task),
            None => false,
        };
        let work =
            this.work.as_mut().as_pin_mut().expect("a future is not polled after it has given its result");
        let polled = catch(|| work.poll(task));
        if matches!(polled, Ok(Poll::Pending)) && this.watch.is_none() {
            // Asked at once, to be woken by it; if the budget is used up, that wakes as well, and it is asked again.
            let watch = this.watch.insert(Box::pin(Watch::over(this.cx)));
            is_over = watch.as_mut().grace_is_over(this.cx, *this.stop_grace, task);
        }
        let result = match polled {
            Ok(Poll::Pending) if !is_over => return Poll::Pending,
            Ok(Poll::Pending) => Err(dropped(this.cx, *this.stop_grace)),
            Ok(Poll::Ready(Err(error))) => Err(after_stop(this.cx, error)),
            Ok(Poll::Ready(Ok(output))) => Ok(output),
            Err(panic) => Err(after_stop(this.cx, panic.into())),
        };
        // What the handler holds is let go under watch too, and before anybody hears of the end.
        if let Err(panic) = catch(|| this.work.set(None)) {
            tracing::warn!(
                task_id = %this.cx.task_id(),
                task_type = %this.cx.task_type(),
                queue = %this.cx.queue(),
                error = %panic,
                "a handler's future panicked while it was dropped"
            );
        }
        Poll::Ready(result)
    }
}

impl Watch {
    fn over(cx: &Context) -> Self {
        Self {
            alarm: cx.time_left().map(tokio::time::sleep),
            stopped: cx.cancel_token().clone().cancelled_owned(),
            is_stopping: false,
        }
    }

    /// Moves from running to stopping when it is time, and tells whether the grace has passed.
    fn grace_is_over(
        self: Pin<&mut Self>,
        cx: &Context,
        stop_grace: Duration,
        task: &mut task::Context<'_>,
    ) -> bool {
        let mut this = self.project();
        if !*this.is_stopping {
            if rings(this.alarm.as_mut(), task) {
                cx.stop(Class::TimedOut);
            }
            if this.stopped.poll(task).is_pending() {
                return false;
            }
            *this.is_stopping = true;
            this.alarm.set(Some(tokio::time::sleep(stop_grace)));
        }
        rings(this.alarm, task)
    }
}

fn rings(alarm: Pin<&mut Option<Sleep>>, task: &mut task::Context<'_>) -> bool {
    alarm.as_pin_mut().is_some_and(|alarm| alarm.poll(task).is_ready())
}

/// The error of a handler that did not return in its grace.
fn dropped(cx: &Context, grace: Duration) -> BoxError {
    let reason = cx.stop_reason().unwrap_or(Class::Cancelled);
    let text = format!("{}, and it did not return within {grace:?}", told(cx));
    TaskError::new(reason, text).into()
}

/// The error of a handler that failed: its own, or the reason why it was stopped.
fn after_stop(cx: &Context, error: BoxError) -> BoxError {
    let class = Next::of(&*error).class;
    match cx.stop_reason() {
        Some(reason) if reason != class && (may_come_of_stopping(class) || is_cancelled(cx)) => {
            TaskError::new(reason, told(cx)).caused_by(error).into()
        }
        _ => error,
    }
}

/// An error of this class may be nothing but the echo of the stop.
const fn may_come_of_stopping(class: Class) -> bool {
    matches!(class, Class::Transient | Class::Panicked | Class::TimedOut | Class::Cancelled)
}

/// Somebody wants the task gone.
fn is_cancelled(cx: &Context) -> bool {
    cx.given_reason() == Some(Class::Cancelled)
}
