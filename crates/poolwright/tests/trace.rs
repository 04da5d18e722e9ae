//! The trace of whoever enqueues goes on in the attempt.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use opentelemetry::trace::{TraceContextExt, TracerProvider};
use opentelemetry_sdk::trace::SdkTracerProvider;
use poolwright::prelude::*;
use poolwright::testing::TestQueue;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;

#[derive(Serialize, Deserialize, TaskType)]
#[task("mail:send")]
struct SendMail;

/// The trace id of the current span.
fn trace_id() -> String {
    tracing::Span::current().context().span().span_context().trace_id().to_string()
}

async fn send_mail(_: SendMail) -> Result<String, BoxError> {
    Ok(trace_id())
}

#[tokio::test]
async fn an_attempt_belongs_to_the_trace_of_its_enqueue() {
    let provider = SdkTracerProvider::builder().build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));

    let topology = Topology::simple([("mail", 1)]).task("mail:send", "mail").build().unwrap();
    let queue = TestQueue::new(Orchestrator::new(topology).handle(send_mail)).await.unwrap();
    let request = tracing::info_span!("request");
    let (enqueued, trace) = {
        let client = queue.client();
        let enqueue = async {
            let enqueued = client.task(&SendMail).retention(Duration::from_secs(60)).send().await.unwrap();
            (enqueued, trace_id())
        };
        tracing::Instrument::instrument(enqueue, request).await
    };
    let traceparent = queue.enqueued_tasks()[0].headers["traceparent"].clone();
    assert!(traceparent.starts_with(&format!("00-{trace}-")), "{traceparent}");

    queue.drain().await.assert_clean();
    let task = queue.inspector().raw(&enqueued.key).await.unwrap();
    assert_eq!(task.result.as_deref(), Some(format!("\"{trace}\"").as_bytes()));
}
