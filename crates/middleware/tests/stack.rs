//! The order of the layers, and where the user's stand.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::future::pending;
use std::sync::{Arc, Mutex};

use poolwright_core::{BoxError, Class, Next, PoolName, TaskError, TaskRecord, TypeName};
use poolwright_handler::{Context, Output, TaskCall, TaskService, background};
use poolwright_middleware::{Options, Stack};
use support::{failure, handler, last_attempt, record, run};
use tower::limit::ConcurrencyLimitLayer;
use tower::util::MapRequestLayer;
use tower::{Layer, Service, ServiceExt, layer::layer_fn};

type Log = Arc<Mutex<Vec<String>>>;

/// A layer that notes each call and each error under its name.
fn noting(
    name: &'static str,
    log: &Log,
) -> impl Layer<TaskService, Service = TaskService> + Send + Sync + 'static {
    let log = log.clone();
    layer_fn(move |inner: TaskService| {
        let log = log.clone();
        TaskService::new(tower::service_fn(move |call: TaskCall| {
            let (inner, log) = (inner.clone(), log.clone());
            async move {
                log.lock().unwrap().push(name.to_owned());
                let result = inner.oneshot(call).await;
                if let Err(error) = &result {
                    log.lock().unwrap().push(format!("{name} saw {}", Next::of(&**error).class));
                }
                result
            }
        }))
    })
}

fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut log.lock().unwrap())
}

fn pool(name: &str) -> PoolName {
    PoolName::new(name).unwrap()
}

fn stack() -> Stack {
    Stack::new(Options::default())
}

#[tokio::test(start_paused = true)]
async fn user_layers_see_timeouts_cancels_and_panics_as_errors() {
    let log = Log::default();
    let stack = stack().user_layer(noting("mine", &log));
    for (inner, class) in [
        (handler(|_| pending()), Class::TimedOut),
        (handler(|_| async { panic!("boom") }), Class::Panicked),
        (
            handler(|cx: Context| async move {
                cx.stop(Class::Cancelled);
                pending().await
            }),
            Class::Cancelled,
        ),
    ] {
        let cx = Context::builder(record()).build();
        let result = run(stack.service(&pool("core"), inner), &cx).await;
        assert_eq!(failure(result).0, class);
        assert_eq!(taken(&log), ["mine".to_owned(), format!("mine saw {class}")]);
    }
}

#[tokio::test]
async fn layers_for_all_stand_outside_of_the_pools_and_those_outside_of_the_types() {
    let log = Log::default();
    let stack = stack()
        .type_layer(TypeName::new("x:y").unwrap(), noting("type", &log))
        .pool_layer(pool("core"), noting("pool", &log))
        .user_layer(noting("all, first", &log))
        .user_layer(noting("all, second", &log));
    assert!(stack.pools().eq([&pool("core")]));
    assert!(stack.task_types().eq([&TypeName::new("x:y").unwrap()]));
    let inner = handler(|_| async { Ok(()) });
    let cx = Context::builder(record()).build();
    run(stack.service(&pool("core"), inner.clone()), &cx).await.unwrap();
    assert_eq!(taken(&log), ["all, first", "all, second", "pool", "type"]);
    run(stack.service(&pool("shared"), inner.clone()), &cx).await.unwrap();
    assert_eq!(taken(&log), ["all, first", "all, second", "type"]);
    let other = TaskRecord { task_type: TypeName::new("other").unwrap(), ..record() };
    run(stack.service(&pool("core"), inner), &Context::builder(other).build()).await.unwrap();
    assert_eq!(taken(&log), ["all, first", "all, second", "pool"]);
}

#[tokio::test]
async fn the_background_mark_covers_layers_and_handler_with_and_without_user_layers() {
    let seen = Log::default();
    let note =
        |log: &Log, who: &str| log.lock().unwrap().push(format!("{who}: {}", background::is_background()));
    let inner = {
        let seen = seen.clone();
        handler(move |cx| {
            note(&seen, "call");
            let seen = seen.clone();
            async move {
                let spawned = cx.spawn(async { background::is_background() }).await.unwrap();
                note(&seen, if spawned { "handler" } else { "nobody" });
                Ok(())
            }
        })
    };
    let cx = Context::builder(record()).build();
    run(stack().service(&pool("core"), inner.clone()), &cx).await.unwrap();
    assert_eq!(taken(&seen), ["call: true", "handler: true"]);
    let marks = {
        let seen = seen.clone();
        MapRequestLayer::new(move |call: TaskCall| {
            note(&seen, "layer");
            call
        })
    };
    run(stack().user_layer(marks).service(&pool("core"), inner), &cx).await.unwrap();
    assert_eq!(taken(&seen), ["layer: true", "call: true", "handler: true"]);
    assert!(!background::is_background());
}

#[tokio::test]
async fn towers_own_layers_fit() {
    let stack = stack().user_layer(ConcurrencyLimitLayer::new(1)).user_layer(MapRequestLayer::new(
        |call: TaskCall| {
            call.context().extend("from a layer");
            call
        },
    ));
    let (began, mut has_begun) = tokio::sync::mpsc::channel::<Context>(2);
    let inner = handler(move |cx| {
        let began = began.clone();
        async move {
            assert_eq!(cx.extension::<&str>(), Some("from a layer"));
            began.send(cx.clone()).await.expect("the test listens");
            cx.cancelled().await;
            Ok(())
        }
    });
    let service = stack.service(&pool("core"), inner);
    let attempts: Vec<_> = (0..2)
        .map(|_| {
            let service = service.clone();
            tokio::spawn(async move { run(service, &Context::builder(record()).build()).await })
        })
        .collect();
    let first = has_begun.recv().await.expect("one begins");
    // The other has been started, has found the limit taken, and waits: the runtime has nothing else to do.
    tokio::task::yield_now().await;
    assert!(has_begun.try_recv().is_err(), "the second waits for the first");
    first.stop(Class::Cancelled);
    has_begun.recv().await.expect("then the other begins").stop(Class::Cancelled);
    for attempt in attempts {
        attempt.await.unwrap().unwrap();
    }
}

/// A service that is never ready for anything.
#[derive(Clone)]
struct Refuses;

impl Service<TaskCall> for Refuses {
    type Response = Output;
    type Error = TaskError;
    type Future = std::future::Ready<Result<Output, TaskError>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), TaskError>> {
        std::task::Poll::Ready(Err(TaskError::permanent("not on a Sunday")))
    }

    fn call(&mut self, _: TaskCall) -> Self::Future {
        unreachable!("it is never ready")
    }
}

#[tokio::test]
async fn an_error_of_a_layer_that_is_not_ready_belongs_to_the_attempt() {
    let cx = Context::builder(record()).build();
    let stack = stack().user_layer(layer_fn(|_: TaskService| Refuses));
    let service = stack.service(&pool("core"), handler(|_| async { Ok(()) }));
    assert_eq!(failure(run(service, &cx).await), (Class::Permanent, "not on a Sunday".into()));
    assert_eq!(&*cx.take_dead_letter().expect("it is final").error, "not on a Sunday");
}

#[tokio::test]
async fn the_options_reach_the_guard() {
    let stack = Stack::new(Options { stop_grace: std::time::Duration::ZERO });
    let cx = Context::builder(last_attempt()).build();
    let hangs = handler(|cx: Context| async move {
        cx.stop(Class::TimedOut);
        pending::<Result<(), BoxError>>().await
    });
    let (class, text) = failure(run(stack.service(&pool("core"), hangs), &cx).await);
    assert_eq!((class, text.ends_with("did not return within 0ns")), (Class::TimedOut, true), "{text}");
    assert_eq!(cx.take_dead_letter().expect("it is final").class, Class::TimedOut);
}
