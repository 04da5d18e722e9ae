//! Attempts for the tests of the layers.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::time::Duration;

use poolwright_core::{BoxError, Class, NewTask, Next, QueueName, TaskId, TaskRecord, Timestamp, TypeName};
use poolwright_handler::{Context, Output, TaskCall, TaskService, testing};
use tower::{Service, ServiceExt};

/// When every attempt of these tests begins.
pub(crate) const START: Timestamp = Timestamp::from_secs(1_000_000);

/// A task of type `x:y` that may run for 30 s, with three retries, in its first attempt.
pub(crate) fn record() -> TaskRecord {
    let mut task = NewTask::new(
        QueueName::new("default").unwrap(),
        TaskId::new("kn_42").unwrap(),
        TypeName::new("x:y").unwrap(),
        &b"{}"[..],
    );
    task.timeout = Duration::from_secs(30);
    task.max_retry = 3;
    testing::claimed(task, START)
}

/// The same in its last attempt.
pub(crate) fn last_attempt() -> TaskRecord {
    TaskRecord { retried: 3, ..record() }
}

/// A service of a plain async function of the context.
pub(crate) fn handler<F, Fut>(function: F) -> TaskService
where
    F: Fn(Context) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    TaskService::new(tower::service_fn(move |call: TaskCall| {
        let done = function(call.into_context());
        async move { done.await.map(|()| Output::default()) }
    }))
}

/// Runs one attempt.
pub(crate) async fn run<S>(service: S, cx: &Context) -> Result<Output, BoxError>
where
    S: Service<TaskCall, Response = Output, Error = BoxError>,
{
    service.oneshot(TaskCall::new(cx.clone())).await
}

/// The class and the text of a failure.
#[track_caller]
pub(crate) fn failure(result: Result<Output, BoxError>) -> (Class, String) {
    let error = result.expect_err("the attempt fails");
    (Next::of(&*error).class, poolwright_core::error::describe(&*error))
}
