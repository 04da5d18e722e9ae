//! One span for each attempt, in the trace of whoever enqueued it.
//!
//! The W3C context (`traceparent`, `tracestate`, `baggage`) travels in a task's headers: [`inject`] writes it where a
//! task is enqueued, and the layer continues it where the task runs. OpenTelemetry's own propagators read and write it,
//! whatever the process has set as its global one. A payload's `lf_traceparent` is continued as well when the headers
//! hold no context: producers that know no headers put it there.
//!
//! Without an OpenTelemetry layer in the process the span is an ordinary `tracing` span, no context is parsed, and none
//! is written: the headers of the task are left as they are.
//!
//! Invariant: no payload and no header gets into a span.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{self, Poll, ready};

use opentelemetry::Context as Remote;
use opentelemetry::propagation::{Extractor, Injector, TextMapCompositePropagator, TextMapPropagator};
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use pin_project_lite::pin_project;
use poolwright_core::error::describe;
use poolwright_core::{BoxError, Class, Headers, Next, text};
use poolwright_handler::{Context, Output, TaskCall};
use tower::{Layer, Service};
use tracing::instrument::{Instrument, Instrumented};
use tracing::{Span, field};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// How much of an error's text a span keeps, in bytes. The dead letter has more of it.
const ERROR_BYTES_MAX: usize = 1_024;

static W3C: LazyLock<TextMapCompositePropagator> = LazyLock::new(|| {
    let trace = TraceContextPropagator::new();
    TextMapCompositePropagator::new(vec![Box::new(trace), Box::new(BaggagePropagator::new())])
});

/// Writes the context of the current span into a task's headers.
///
/// The caller has a span for the enqueue open (of kind `producer`); the attempt becomes its child. Headers that hold a
/// `traceparent` already are left alone: somebody chose it. Without an OpenTelemetry span nothing is written.
pub fn inject(headers: &mut Headers) {
    if find(headers, "traceparent").is_some() {
        return;
    }
    let mut context = Span::current().context();
    if !context.has_active_span() {
        // The caller may use OpenTelemetry directly.
        context = Remote::current();
    }
    W3C.inject_context(&context, &mut Carrier(headers));
}

/// Headers as propagators see them.
struct Carrier<H>(H);

impl Injector for Carrier<&mut Headers> {
    fn set(&mut self, key: &str, value: String) {
        // An empty `tracestate` says nothing, and every task would carry it.
        if !value.is_empty() {
            self.0.insert(key.to_owned(), value);
        }
    }
}

impl Extractor for Carrier<&Headers> {
    fn get(&self, key: &str) -> Option<&str> {
        find(self.0, key)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

/// A header by its name, in whatever case its producer wrote it.
fn find<'a>(headers: &'a Headers, key: &str) -> Option<&'a str> {
    let by_case = || headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)).map(|(_, value)| value);
    headers.get(key).or_else(by_case).map(String::as_str)
}

/// Makes [`Traced`].
#[derive(Debug, Clone, Copy, Default)]
pub struct TraceLayer;

impl<S> Layer<S> for TraceLayer {
    type Service = Traced<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Traced { inner }
    }
}

/// Runs the inner service in a span `poolwright.attempt`.
///
/// | field | |
/// | --- | --- |
/// | `task_id`, `task_type`, `queue`, `pool` | which task, and who runs it |
/// | `attempt` | 1 in the first |
/// | `outcome` | `success`, `error`, or `dropped` when it was given up from outside |
/// | `class` | the class of the error |
///
/// OpenTelemetry also gets the kind `consumer` and, for a class that means trouble, the status `error` with the error's
/// text (up to 1 KiB; not for payloads that do not decode, whose text may quote them).
#[derive(Debug, Clone)]
pub struct Traced<S> {
    inner: S,
}

impl<S> Service<TaskCall> for Traced<S>
where
    S: Service<TaskCall, Response = Output, Error = BoxError>,
{
    type Response = Output;
    type Error = BoxError;
    type Future = Tracing<S::Future>;

    fn poll_ready(&mut self, task: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(task)
    }

    fn call(&mut self, call: TaskCall) -> Self::Future {
        let span = attempt_span(call.context());
        let inner = span.in_scope(|| self.inner.call(call)).instrument(span.clone());
        Tracing { inner, end: TellsEnd { span, is_told: false } }
    }
}

fn attempt_span(cx: &Context) -> Span {
    // A root: the loop that happens to run the attempt is no part of its trace.
    let span = tracing::info_span!(
        parent: None,
        "poolwright.attempt",
        otel.kind = "consumer",
        task_id = %cx.task_id(),
        task_type = %cx.task_type(),
        queue = %cx.queue(),
        pool = %cx.pool(),
        attempt = cx.retried().saturating_add(1),
        outcome = field::Empty,
        class = field::Empty,
        otel.status_code = field::Empty,
        otel.status_description = field::Empty,
    );
    // Asks whether anybody keeps parents at all, before it goes looking for one.
    if span.set_parent(Remote::new()).is_ok() {
        // It has just answered; and a span without its parent is still a span.
        let _ = span.set_parent(carried(cx));
    }
    span
}

/// The context that the task brought along.
fn carried(cx: &Context) -> Remote {
    let context = W3C.extract_with_context(&Remote::new(), &Carrier(cx.headers()));
    if context.has_active_span() {
        return context;
    }
    match of_payload(cx.payload()) {
        Some(traceparent) => {
            let headers = Headers::from([("traceparent".to_owned(), traceparent.into_owned())]);
            W3C.extract_with_context(&context, &Carrier(&headers))
        }
        None => context,
    }
}

/// The `lf_traceparent` of a JSON object. Any other payload has none, and that is no error here.
fn of_payload(payload: &[u8]) -> Option<Cow<'_, str>> {
    #[derive(serde::Deserialize)]
    struct Peek<'a> {
        #[serde(borrow)]
        lf_traceparent: Option<Cow<'a, str>>,
    }
    let is_object = payload.trim_ascii_start().first() == Some(&b'{');
    is_object.then(|| serde_json::from_slice::<Peek<'_>>(payload).ok()?.lf_traceparent).flatten()
}

pin_project! {
    /// The future of [`Traced`].
    pub struct Tracing<F> {
        #[pin]
        inner: Instrumented<F>,
        end: TellsEnd,
    }
}

impl<F: Future<Output = Result<Output, BoxError>>> Future for Tracing<F> {
    type Output = Result<Output, BoxError>;

    fn poll(self: Pin<&mut Self>, task: &mut task::Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.inner.poll(task));
        this.end.tell(&result);
        Poll::Ready(result)
    }
}

/// Says in the span how the attempt ended, also when nobody waits for its end any more.
struct TellsEnd {
    span: Span,
    is_told: bool,
}

impl TellsEnd {
    fn tell(&mut self, result: &Result<Output, BoxError>) {
        self.is_told = true;
        let Err(error) = result else {
            self.span.record("outcome", "success");
            return;
        };
        let class = Next::of(&**error).class;
        self.span.record("outcome", "error");
        self.span.record("class", class.as_str());
        if is_trouble(class) {
            self.span.record("otel.status_code", "error");
            if class != Class::Undecodable {
                let text = text::cut(&describe(&**error), ERROR_BYTES_MAX);
                self.span.record("otel.status_description", text.as_str());
            }
        }
    }
}

impl Drop for TellsEnd {
    fn drop(&mut self) {
        if !self.is_told {
            self.span.record("outcome", "dropped");
        }
    }
}

/// A class that somebody should look at, unlike those by which a handler only says "later" or "not wanted".
const fn is_trouble(class: Class) -> bool {
    !matches!(
        class,
        Class::RateLimited | Class::LockConflict | Class::Snoozed | Class::Revoked | Class::Cancelled
    )
}
