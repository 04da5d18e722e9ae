//! How attempts end, and what becomes of their tasks.

use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::Inspect;
use poolwright_conformance::builders;
use poolwright_core::{BoxError, Class, OnCancel, Policy, State};
use poolwright_handler::{Output, TaskCall, TaskService};
use poolwright_worker::{Counts, Options, Router};
use tower::service_fn;

use crate::rig::*;

const SHORT: Duration = Duration::from_millis(30);

/// The class and text of a task's last failure.
async fn failure(rig: &Rig, id: &str) -> (Class, String) {
    let failed = rig.get(id).await.unwrap().failed.unwrap();
    (failed.class, failed.error.to_string())
}

#[tokio::test]
async fn success_completes_and_failure_is_retried_until_the_last() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([
            task("good", "ok").retention(60).build(),
            task("bad", "error").max_retry(2).build(),
            task("hopeless", "permanent").build(),
            task("unwanted", "revoked").build(),
        ])
        .await;
        let running = rig.server(&[main_pool(2)]).start().unwrap();
        let is_over = |counts: &Counts| (counts.completed, counts.archived, counts.discarded) == (1, 2, 1);
        let status = running.until(|status| is_over(&status.counts) && status.busy() == 0).await;
        assert_eq!(rig.state("good").await, Some(State::Completed));
        assert_eq!(rig.play.starts_of("bad"), 3);
        assert_eq!(failure(&rig, "bad").await, (Class::Transient, "it did not work".into()));
        assert_eq!(rig.play.starts_of("hopeless"), 1);
        assert_eq!(rig.state("unwanted").await, None);
        let counts = status.counts;
        assert_eq!((counts.completed, counts.retried, counts.discarded, counts.claimed), (1, 2, 1, 6));
        assert_eq!((status.pools[0].completed, status.pools[0].failed), (1, 5));
    })
    .await;
}

#[tokio::test]
async fn a_handler_that_obeys_its_timeout_is_timed_out() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "wait").timeout(SHORT).max_retry(0).build()]).await;
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        running.until(|status| status.counts.archived == 1).await;
        assert_eq!(failure(&rig, "a").await.0, Class::TimedOut);
        assert_eq!(rig.play.reason("a"), Some(Some(Class::TimedOut)));
    })
    .await;
}

#[tokio::test]
async fn a_handler_that_ignores_its_deadline_is_dropped_after_its_grace() {
    safely(async {
        let rig = Rig::new();
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        rig.enqueue([task("a", "deaf").timeout(SHORT).max_retry(0).build(), task("b", "ok").build()]).await;
        // The worker is free again, although the handler never returned.
        running.until(|status| status.counts.archived == 1 && status.counts.completed == 1).await;
        let (class, error) = failure(&rig, "a").await;
        assert_eq!(class, Class::TimedOut);
        assert_eq!(error, "ran longer than its timeout of 30ms and was dropped");
        assert_eq!(rig.play.on_stage("main"), 0);
    })
    .await;
}

#[tokio::test]
async fn a_task_whose_deadline_has_passed_is_not_started() {
    safely(async {
        let rig = Rig::new();
        // Long past by the worker's clock, though the store let it in.
        let past = poolwright_core::Timestamp::from_secs(1_000);
        rig.enqueue([task("a", "ok").deadline(past).build()]).await;
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        running.until(|status| status.counts.archived == 1).await;
        assert_eq!(failure(&rig, "a").await.0, Class::TimedOut);
        assert!(rig.play.starts().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_task_that_runs_is_asked_to_end_and_discarded() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("obeys", "wait").build(), task("deaf", "deaf").build()]).await;
        let running = rig.server(&[main_pool(2)]).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 2).await;
        let keys = ["obeys", "deaf"].map(|id| builders::key(builders::QUEUE, id));
        rig.store.request_cancel(keys.to_vec()).await.unwrap();
        for key in keys {
            let signal: Arc<dyn poolwright_broker::Broker> = Arc::clone(&rig.store) as _;
            signal.publish(poolwright_broker::Cancel { key }).await.unwrap();
        }
        let status = running.until(|status| status.counts.discarded == 2).await;
        assert_eq!(rig.play.reason("obeys"), Some(Some(Class::Cancelled)));
        assert_eq!((rig.state("obeys").await, rig.state("deaf").await), (None, None));
        assert_eq!(status.counts.archived, 0);
    })
    .await;
}

#[tokio::test]
async fn a_cancel_without_a_signal_comes_with_the_next_extension() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "wait").build()]).await;
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        rig.store.request_cancel(vec![builders::key(builders::QUEUE, "a")]).await.unwrap();
        running.until(|status| status.counts.discarded == 1).await;
    })
    .await;
}

#[tokio::test]
async fn a_signal_for_a_task_that_nobody_flagged_ends_nothing() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "wait").retention(60).build()]).await;
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        let before = rig.store.calls("extend");
        let signal: Arc<dyn poolwright_broker::Broker> = Arc::clone(&rig.store) as _;
        signal.publish(poolwright_broker::Cancel { key: builders::key(builders::QUEUE, "a") }).await.unwrap();
        rig.store.until_calls("extend", before + 2).await;
        rig.play.drop_curtain();
        running.until(|status| status.counts.completed == 1).await;
        assert_eq!(rig.play.reason("a"), None);
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_task_can_be_archived_instead() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "wait").build()]).await;
        let policy = Policy { on_cancel: OnCancel::Archive, ..Policy::default() };
        let running = rig.server(&[main_pool(1)]).rules(rules(policy)).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        rig.store.request_cancel(vec![builders::key(builders::QUEUE, "a")]).await.unwrap();
        running.until(|status| status.counts.archived == 1).await;
        assert_eq!(failure(&rig, "a").await.0, Class::Cancelled);
    })
    .await;
}

#[tokio::test]
async fn a_panic_is_a_failure_with_its_words() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "panic").max_retry(0).build(), task("b", "ok").build()]).await;
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        running.until(|status| status.counts.archived == 1 && status.counts.completed == 1).await;
        let (class, error) = failure(&rig, "a").await;
        assert_eq!(class, Class::Panicked);
        assert!(error.ends_with("on purpose"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn layers_that_panic_or_hang_end_their_attempt_and_nothing_else() {
    safely(async {
        let rig = Rig::new();
        let mut router = Router::new();
        rig.cast(&mut router);
        router.wrap(|_, inner| {
            TaskService::new(service_fn(move |call: TaskCall| {
                let inner = inner.clone();
                async move {
                    match call.context().task_id().as_str() {
                        "panics" => panic!("a layer breaks"),
                        "hangs" => std::future::pending::<Result<Output, BoxError>>().await,
                        _ => tower::ServiceExt::oneshot(inner, call).await,
                    }
                }
            }))
        });
        let running = rig.server_with(&[main_pool(1)], router).start().unwrap();
        rig.enqueue([
            task("panics", "ok").max_retry(0).build(),
            task("hangs", "ok").max_retry(0).timeout(SHORT).build(),
            task("passes", "ok").build(),
        ])
        .await;
        running.until(|status| status.counts.archived == 2 && status.counts.completed == 1).await;
        assert_eq!(failure(&rig, "panics").await.0, Class::Panicked);
        assert_eq!(failure(&rig, "hangs").await.0, Class::TimedOut);
    })
    .await;
}

#[tokio::test]
async fn deferrals_use_no_retry() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "snooze").max_retry(1).build()]).await;
        let policy = Policy { max_deferrals: 3, ..Policy::default() };
        let running = rig.server(&[main_pool(1)]).rules(rules(policy)).start().unwrap();
        let status = running.until(|status| status.counts.archived == 1).await;
        // Three put it off, the fourth counts, three more put it off, the next is one too many.
        assert_eq!((status.counts.deferred, status.counts.retried), (6, 1));
        assert_eq!(rig.play.starts_of("a"), 8);
    })
    .await;
}

#[tokio::test]
async fn a_task_without_a_handler_here_goes_back_and_uses_nothing() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "ok").task_type("someone:elses").max_retry(0).build()]).await;
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        let status = running.until(|status| status.counts.no_handler == 1).await;
        assert_eq!(status.counts.archived, 0);
        let record = rig.get("a").await.unwrap();
        assert_eq!((record.state, record.retried, record.crashes), (State::Retry, 0, 0));
        let failed = record.failed.unwrap();
        assert_eq!(failed.class, Class::NoHandler);
        assert_eq!(&*failed.error, "no handler of this worker knows the type someone:elses");
    })
    .await;
}

#[tokio::test]
async fn work_that_outlives_its_handler_holds_no_worker() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("f", 10, "forget")).await;
        let running = rig.server(&[main_pool(2)]).start().unwrap();
        running.until(|status| status.counts.completed == 10 && status.busy() == 0).await;
        assert_eq!(rig.play.forgotten(), 0, "all of it still waits");
        rig.play.drop_curtain();
        rig.play.until(|play| play.forgotten() == 10).await;
    })
    .await;
}

#[tokio::test]
async fn a_stalled_handler_shows_and_keeps_its_task_until_its_thread_returns() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "block").timeout(SHORT).max_retry(0).build()]).await;
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        running.until(|status| status.pools[0].stalled == 1).await;
        rig.store
            .until(async |store| {
                let servers = store.servers().await.unwrap();
                servers.iter().any(|server| server.tasks.iter().any(|task| task.stalled))
            })
            .await;
        assert_eq!(rig.state("a").await, Some(State::Active));
        rig.play.drop_curtain();
        // It was dropped the moment its thread let go of it, or came back with a success, whichever was first.
        let is_over = |counts: &Counts| counts.archived + counts.completed == 1;
        let status = running.until(|status| is_over(&status.counts) && status.busy() == 0).await;
        assert_eq!((status.pools[0].stalled, status.counts.stalled), (0, 1));
    })
    .await;
}

#[tokio::test]
async fn a_stalled_handler_loses_its_task_in_the_end_and_keeps_its_worker() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "block").timeout(SHORT).max_retry(0).build(), task("b", "ok").build()]).await;
        let options = Options { max_stall: Duration::from_millis(200), ..options() };
        let running = rig.server(&[main_pool(1)]).options(options).start().unwrap();
        let status = running.until(|status| status.counts.archived == 1).await;
        assert_eq!((status.pools[0].busy, rig.play.starts_of("b")), (1, 0));
        assert!(failure(&rig, "a").await.1.ends_with("still blocks a thread"));
        rig.play.drop_curtain();
        running.until(|status| status.counts.completed == 1).await;
    })
    .await;
}

#[tokio::test]
async fn handlers_and_what_they_spawn_carry_the_background_mark() {
    safely(async {
        let rig = Rig::new();
        let mut router = Router::new();
        router.handle_as(TYPE, |_: poolwright_handler::Raw| async {
            use poolwright_handler::background::is_background;
            let spawned = tokio::spawn(async { is_background() }).await?;
            let blocking = tokio::task::spawn_blocking(is_background).await?;
            Ok::<_, BoxError>((is_background(), spawned, blocking))
        });
        rig.enqueue([task("a", "ok").retention(60).build()]).await;
        let running = rig.server_with(&[main_pool(1)], router).start().unwrap();
        running.until(|status| status.counts.completed == 1).await;
        assert_eq!(rig.get("a").await.unwrap().result.unwrap(), "[true,true,true]");
        assert!(!poolwright_handler::background::is_background());
    })
    .await;
}

#[tokio::test]
async fn a_task_that_needs_an_operator_goes_back_and_pauses_its_queue() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "operator").max_retry(0).build()]).await;
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        running.until(|status| status.counts.held == 1).await;
        let queue = builders::queue(builders::QUEUE);
        let stats = rig.store.queue_stats(vec![queue]).await.unwrap();
        assert_eq!(stats[0].paused.as_ref().unwrap().reason, "the key has expired");
        let record = rig.get("a").await.unwrap();
        assert_eq!((record.state, record.retried), (State::Pending, 0));
    })
    .await;
}

#[tokio::test]
async fn what_a_handler_tells_while_it_runs_reaches_the_store() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "tells").retention(60).build()]).await;
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        running.until(|status| status.counts.completed == 1).await;
        let record = rig.get("a").await.unwrap();
        let progress = record.progress.unwrap();
        assert_eq!((progress.done, progress.note.as_str()), (0.5, "half way"));
        assert_eq!(record.result.unwrap(), "\"so far\"");
    })
    .await;
}
