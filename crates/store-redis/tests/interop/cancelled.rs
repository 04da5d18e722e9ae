//! Cancellations cross over: asynq's inspector ends what we run, and we end what a worker in Go runs.

use poolwright_broker::{Cancel, CancelOutcome, Extension, Held, Inspect, Signal};
use poolwright_broker::{Dispatch, Upkeep};
use poolwright_core::State;
use serde_json::json;

use crate::both::{Both, MINUTE, done, key, queue, task, until};

const HELD: &str = r#"{"do":"wait"}"#;

/// A worker in Go whose ears are open.
async fn listening(both: &Both) -> crate::go::Process {
    let eager = ["--queues", "q", "--task-check-interval", "20ms", "--delayed-check-interval", "50ms"];
    let worker = both.go.worker(&[&eager[..], &["--retry-delay", "1h"]].concat()).await;
    until("a subscription", async || {
        let heard = both.redis(&["PUBSUB", "NUMSUB", "asynq:cancel"]).await;
        (heard.items()[1].integer() >= Some(1)).then_some(())
    })
    .await;
    worker
}

#[tokio::test]
async fn go_cancels_what_we_run() {
    let Some(both) = Both::start().await else { return };
    let mut feed = both.store.subscribe().await.unwrap();
    both.send(vec![task("a", ""), task("b", "")]).await;
    let held = both.claim("q", 1).await.remove(0);
    let mut inspector = both.go.inspector();
    // Of one that nobody runs nobody hears, as with Go's own workers.
    for id in ["b", "nobody", "a"] {
        inspector.get(json!({"op": "cancel", "id": id})).await;
    }
    assert_eq!(feed.next().await, Some(Cancel { key: key("q", "a") }));
    assert!(both.task("a").await.cancel_requested && !both.task("b").await.cancel_requested);
    // Whoever heard nothing reads it with the next extension of the lease.
    let extended = both.store.extend(vec![Held::of(&held).unwrap()], MINUTE).await.unwrap();
    assert!(matches!(extended[0], Extension::Cancelled(_)));
    both.end(&held, poolwright_core::Settlement::Discard).await;
    assert_eq!(inspector.state("q", "a").await, "task_not_found");
}

/// The same task id in two queues: Go's word names no queue, so both end; another process's tasks are none of ours.
#[tokio::test]
async fn go_cancels_by_the_id_alone() {
    let Some(both) = Both::start().await else { return };
    let other = both.another().await;
    let (mut here, mut there) = (both.store.subscribe().await.unwrap(), other.subscribe().await.unwrap());
    let mut second = task("a", "");
    second.key = key("other", "a");
    both.send(vec![task("a", ""), second]).await;
    both.claim("q", 1).await;
    crate::both::claim(&*other, "other", 1, MINUTE).await;
    both.go.inspector().get(json!({"op": "cancel", "id": "a"})).await;
    assert_eq!(here.next().await, Some(Cancel { key: key("q", "a") }));
    assert_eq!(there.next().await, Some(Cancel { key: key("other", "a") }));
}

#[tokio::test]
async fn we_cancel_what_go_runs() {
    let Some(both) = Both::start().await else { return };
    both.send(vec![task("a", HELD)]).await;
    let worker = listening(&both).await;
    worker.event("start", "a").await;
    let outcome = both.store.request_cancel(vec![key("q", "a")]).await.unwrap();
    assert_eq!(outcome, [CancelOutcome::Signalled]);
    both.store.publish(Cancel { key: key("q", "a") }).await.unwrap();
    let failed = worker.event("failed", "a").await;
    assert_eq!(failed["error"], "context canceled");
    let mut inspector = both.go.inspector();
    inspector.until_state("q", "a", "retry").await;
    worker.stop().await;

    // Go knows no flag and would run it again; it is still there, and the next of ours who meets it lets it go.
    let back = both.task("a").await;
    assert!(back.cancel_requested && back.state == State::Retry && back.retried == 1);
    inspector.act("run", "q", "a").await;
    assert!(both.claim("q", 1).await.is_empty());
    assert_eq!(inspector.state("q", "a").await, "task_not_found");
}

/// What we hear of ourselves on Go's channel is an echo: each cancellation comes once.
#[tokio::test]
async fn our_own_word_is_heard_once_by_us_and_by_go() {
    let Some(both) = Both::start().await else { return };
    let mut feed = both.store.subscribe().await.unwrap();
    both.send(vec![task("ours", ""), task("theirs", HELD)]).await;
    let held = both.claim("q", 1).await.remove(0);
    let worker = listening(&both).await;
    worker.event("start", "theirs").await;
    for id in ["ours", "theirs"] {
        both.store.publish(Cancel { key: key("q", id) }).await.unwrap();
    }
    for id in ["ours", "theirs"] {
        assert_eq!(feed.next().await, Some(Cancel { key: key("q", id) }));
    }
    worker.event("failed", "theirs").await;
    // A word of Go's behind them: were one of ours doubled, it would come first.
    both.go.inspector().get(json!({"op": "cancel", "id": "ours"})).await;
    assert_eq!(feed.next().await, Some(Cancel { key: key("q", "ours") }));
    both.end(&held, done()).await;
    worker.stop().await;
    assert_eq!(both.store.take_over(crate::both::all_of(queue("q"))).await.unwrap(), []);
}
