//! Enqueue and attempt are one trace, whoever carries the context between them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use opentelemetry::baggage::BaggageExt;
use opentelemetry::trace::{SpanId, SpanKind, Status, TraceContextExt, TraceId, TracerProvider};
use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use poolwright_core::{BoxError, Class, Headers, TaskError, TaskRecord};
use poolwright_handler::{Context, TaskService};
use poolwright_middleware::{TraceLayer, trace};
use support::{handler, record, run};
use tower::Layer;
use tracing::{Instrument, subscriber::DefaultGuard};
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;

const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn remote() -> (TraceId, SpanId) {
    let trace = TraceId::from_hex("0af7651916cd43dd8448eb211c80319c").unwrap();
    (trace, SpanId::from_hex("b7ad6b7169203331").unwrap())
}

/// Keeps the spans that ended.
#[derive(Debug, Clone, Default)]
struct Spans(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Spans {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}

impl Spans {
    /// Spans of this thread are kept until the guard is dropped.
    fn collect() -> (Self, DefaultGuard) {
        let spans = Self::default();
        let provider = SdkTracerProvider::builder().with_simple_exporter(spans.clone()).build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        let guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
        (spans, guard)
    }

    /// The only span of this name.
    #[track_caller]
    fn only(&self, name: &str) -> SpanData {
        let spans = self.0.lock().unwrap();
        let mut named = spans.iter().filter(|span| span.name == name);
        let span = named.next().expect("it has ended").clone();
        assert!(named.next().is_none(), "there is more than one `{name}`");
        span
    }
}

fn fields(span: &SpanData) -> HashMap<String, String> {
    let text = |value: &Value| value.as_str().into_owned();
    span.attributes.iter().map(|KeyValue { key, value, .. }| (key.to_string(), text(value))).collect()
}

/// The headers of a task that is enqueued in a span, as the client does.
fn enqueue(headers: Headers) -> Headers {
    let span = tracing::info_span!("enqueue", otel.kind = "producer");
    span.in_scope(|| {
        let mut headers = headers;
        trace::inject(&mut headers);
        headers
    })
}

fn traced(inner: TaskService) -> TaskService {
    TaskService::new(TraceLayer.layer(inner))
}

/// Runs a task that succeeds and gives its span.
async fn attempt(spans: &Spans, task: TaskRecord) -> SpanData {
    let cx = Context::builder(task).build();
    run(traced(handler(|_| async { Ok(()) })), &cx).await.unwrap();
    spans.only("poolwright.attempt")
}

fn headers<const N: usize>(pairs: [(&str, &str); N]) -> Headers {
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

fn is_root(span: &SpanData) -> bool {
    span.parent_span_id == SpanId::INVALID
}

#[tokio::test]
async fn the_attempt_is_a_child_of_its_enqueue() {
    let (spans, _guard) = Spans::collect();
    let headers = enqueue(Headers::new());
    assert_eq!(headers.keys().collect::<Vec<_>>(), ["traceparent"]);
    let unrelated = tracing::info_span!("the worker's loop");
    let attempt = attempt(&spans, TaskRecord { headers, ..record() }).instrument(unrelated).await;
    let enqueue = spans.only("enqueue");
    assert_eq!(attempt.span_context.trace_id(), enqueue.span_context.trace_id());
    assert_eq!(attempt.parent_span_id, enqueue.span_context.span_id());
    assert!(attempt.parent_span_is_remote);
    assert_eq!((&enqueue.span_kind, &attempt.span_kind), (&SpanKind::Producer, &SpanKind::Consumer));
}

#[tokio::test]
async fn what_a_handler_enqueues_continues_its_attempt() {
    let (spans, _guard) = Spans::collect();
    let cx = Context::builder(TaskRecord {
        headers: headers([
            ("Traceparent", TRACEPARENT),
            ("tracestate", "vendor=opaque"),
            ("baggage", "customer=ada"),
        ]),
        ..record()
    })
    .build();
    let sent = Arc::new(Mutex::new(Headers::new()));
    let out = sent.clone();
    let fans_out = handler(move |_| {
        let out = out.clone();
        async move {
            tokio::task::yield_now().await;
            *out.lock().unwrap() = enqueue(Headers::new());
            Ok(())
        }
    });
    run(traced(fans_out), &cx).await.unwrap();
    let (attempt, enqueue) = (spans.only("poolwright.attempt"), spans.only("enqueue"));
    assert_eq!((attempt.span_context.trace_id(), attempt.parent_span_id), remote());
    assert_eq!(enqueue.span_context.trace_id(), remote().0);
    assert_eq!(enqueue.parent_span_id, attempt.span_context.span_id());
    let sent = sent.lock().unwrap();
    assert!(sent["traceparent"].contains(&enqueue.span_context.span_id().to_string()));
    assert_eq!((&*sent["tracestate"], &*sent["baggage"]), ("vendor=opaque", "customer=ada"));
}

#[tokio::test]
async fn a_payloads_lf_traceparent_is_continued_when_headers_have_none() {
    let payload = format!(r#"{{"tenant_id": 7, "nested": {{"a": [1]}}, "lf_traceparent": "{TRACEPARENT}"}}"#);
    let (spans, _guard) = Spans::collect();
    let span = attempt(&spans, TaskRecord { payload: payload.clone().into(), ..record() }).await;
    assert_eq!((span.span_context.trace_id(), span.parent_span_id), remote());

    let (spans, _guard) = Spans::collect();
    let other = "00-11111111111111111111111111111111-2222222222222222-01";
    let headers = headers([("traceparent", other)]);
    let span = attempt(&spans, TaskRecord { payload: payload.into(), headers, ..record() }).await;
    assert_eq!(span.parent_span_id, SpanId::from_hex("2222222222222222").unwrap());
}

#[tokio::test]
async fn a_context_that_is_none_is_ignored() {
    let payloads = [
        r#"{"lf_traceparent": 5}"#,
        r#"{"lf_traceparent": "00-zz-yy-01"}"#,
        r#"{"lf_traceparent": null}"#,
        r#"["lf_traceparent"]"#,
        r#"{"lf_traceparent": ""#,
        "",
    ];
    for payload in payloads {
        let (spans, _guard) = Spans::collect();
        let span = attempt(&spans, TaskRecord { payload: payload.into(), ..record() }).await;
        assert!(is_root(&span), "{payload}");
    }
    for header in ["", "00", "junk-junk-junk-junk", "00-00000000000000000000000000000000-0000000000000000-01"]
    {
        let (spans, _guard) = Spans::collect();
        let headers = headers([("traceparent", header)]);
        let span = attempt(&spans, TaskRecord { headers, ..record() }).await;
        assert!(is_root(&span), "{header}");
    }
}

#[tokio::test]
async fn a_context_chosen_by_the_caller_is_left_alone() {
    let (_spans, _guard) = Spans::collect();
    let own = headers([("TraceParent", TRACEPARENT)]);
    assert_eq!(enqueue(own.clone()), own);
}

#[tokio::test]
async fn a_caller_that_uses_opentelemetry_without_tracing_is_followed() {
    let span = opentelemetry::trace::SpanContext::new(
        remote().0,
        remote().1,
        opentelemetry::TraceFlags::SAMPLED,
        true,
        opentelemetry::trace::TraceState::default(),
    );
    let context = opentelemetry::Context::new().with_remote_span_context(span);
    let _attached = context.with_baggage([KeyValue::new("customer", "ada")]).attach();
    let mut sent = Headers::new();
    trace::inject(&mut sent);
    assert_eq!((&*sent["traceparent"], &*sent["baggage"]), (TRACEPARENT, "customer=ada"));
}

#[tokio::test]
async fn the_span_tells_task_pool_and_outcome_and_no_payload() {
    let (spans, _guard) = Spans::collect();
    let secret = TaskRecord {
        retried: 2,
        payload: r#"{"password":"secret"}"#.into(),
        headers: headers([("authorization", "secret")]),
        ..record()
    };
    let span = attempt(&spans, secret).await;
    let told = fields(&span);
    for (field, value) in [
        ("task_id", "kn_42"),
        ("task_type", "x:y"),
        ("queue", "default"),
        ("pool", "test"),
        ("attempt", "3"),
        ("outcome", "success"),
    ] {
        assert_eq!(told.get(field).map(String::as_str), Some(value), "{field}");
    }
    assert!(!told.contains_key("class") && !format!("{span:?}").contains("secret"));
    assert_eq!(span.status, Status::Unset);
}

#[tokio::test]
async fn a_failure_is_told_by_class_and_only_trouble_marks_the_span() {
    for (error, class, status) in [
        ("disk on fire".into(), "transient", Status::error("disk on fire")),
        (
            TaskError::permanent("é".repeat(2_000)).into(),
            "permanent",
            Status::error(poolwright_core::text::cut(&"é".repeat(2_000), 1_024)),
        ),
        (TaskError::new(Class::Undecodable, "quotes \"secret\"").into(), "undecodable", Status::error("")),
        (TaskError::snooze(std::time::Duration::from_secs(9)).into(), "snoozed", Status::Unset),
        (TaskError::new(Class::Cancelled, "enough").into(), "cancelled", Status::Unset),
    ] {
        let (spans, _guard) = Spans::collect();
        let error: Mutex<Option<BoxError>> = Mutex::new(Some(error));
        let error = Arc::new(error);
        let fails = handler(move |_| {
            let error = error.lock().unwrap().take().expect("it runs once");
            async { Err(error) }
        });
        run(traced(fails), &Context::builder(record()).build()).await.unwrap_err();
        let span = spans.only("poolwright.attempt");
        let told = fields(&span);
        assert_eq!((&*told["outcome"], &*told["class"]), ("error", class));
        assert_eq!(span.status, status);
    }
}

#[tokio::test]
async fn an_attempt_given_up_from_outside_says_so() {
    let (spans, _guard) = Spans::collect();
    let cx = Context::builder(record()).build();
    let mut hanging = Box::pin(run(traced(handler(|_| std::future::pending())), &cx));
    assert!(polled_once(&mut hanging).await.is_pending());
    drop(hanging);
    assert_eq!(fields(&spans.only("poolwright.attempt"))["outcome"], "dropped");
}

async fn polled_once<F: Future + Unpin>(future: &mut F) -> std::task::Poll<F::Output> {
    std::future::poll_fn(|task| std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(task))).await
}

#[tokio::test]
async fn without_opentelemetry_everything_passes_through() {
    assert_eq!(enqueue(Headers::new()), Headers::new());
    let kept = headers([("traceparent", TRACEPARENT), ("origin", "import")]);
    assert_eq!(enqueue(kept.clone()), kept);
    let cx = Context::builder(TaskRecord { headers: kept, ..record() }).build();
    run(traced(handler(|_| async { Ok(()) })), &cx).await.unwrap();

    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry());
    let seen = handler(|cx| async move {
        let span = tracing::Span::current();
        assert_eq!(span.metadata().map(|m| m.name()), Some("poolwright.attempt"));
        assert!(!span.context().has_active_span());
        assert_eq!(cx.headers()["traceparent"], TRACEPARENT);
        Ok(())
    });
    run(traced(seen), &cx).await.unwrap();
}
