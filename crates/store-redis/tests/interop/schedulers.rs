//! What schedulers tell of themselves is read by both sides.

use std::time::Duration;

use poolwright_core::Clock;
use poolwright_core::clock::SystemClock;
use poolwright_store_redis::schedulers::wire_time;
use poolwright_store_redis::wire::{NEVER, SchedulerEnqueueEvent, SchedulerEntry};
use poolwright_testbed::RedisServer;
use serde_json::{Value, json};

use crate::both::{Both, MINUTE, until};
use crate::go::Heard;

const ID: &str = "host1:4242:7837f142-6337-4217-9276-8f27281b67d1";

/// Entries with options of every form that asynq's inspector takes apart.
fn entries() -> [SchedulerEntry; 2] {
    let now = SystemClock.now();
    let entry = |id: &str, spec: &str, options: &[&str]| SchedulerEntry {
        id: id.to_owned(),
        spec: spec.to_owned(),
        task_type: "tick".to_owned(),
        task_payload: "p".into(),
        enqueue_options: options.iter().map(|option| (*option).to_owned()).collect(),
        next_enqueue_time: Some(wire_time(now + MINUTE)),
        prev_enqueue_time: Some(NEVER),
    };
    let options =
        [r#"Queue("low")"#, "MaxRetry(3)", "Timeout(1m30s)", "Retention(24h0m0s)", "Unique(1h0m0s)"];
    let mut ran = entry("e2", "0 * * * *", &[]);
    ran.prev_enqueue_time = Some(wire_time(now));
    [entry("e1", "@every 1m", &options), ran]
}

#[tokio::test]
async fn ours_are_shown_by_gos_inspector_until_they_end() {
    let Some(both) = Both::start().await else { return };
    let entries = entries();
    both.store.beat_scheduler(ID, &entries, MINUTE).await.unwrap();
    let mut inspector = both.go.inspector();
    let mut shown = inspector.get(json!({"op": "scheduler_entries"})).await;
    let shown = shown.as_array_mut().unwrap();
    shown.sort_by_key(|entry| entry["id"].to_string());
    assert_eq!((shown.len(), &shown[0]["id"], &shown[1]["id"]), (2, &json!("e1"), &json!("e2")));
    assert_eq!((&shown[0]["spec"], &shown[0]["type"]), (&json!("@every 1m"), &json!("tick")));
    assert_eq!(
        (&shown[0]["payload"], &shown[0]["options"]),
        (&json!("p"), &json!(entries[0].enqueue_options))
    );
    let next = entries[0].next_enqueue_time.unwrap();
    assert_eq!(shown[0]["next_at_ms"].as_i64().unwrap() / 1_000, next.seconds);
    assert_eq!((&shown[0]["previous_at_ms"], shown[1]["previous_at_ms"].is_i64()), (&Value::Null, true));

    for (id, second) in [("t1", 1), ("t2", 2)] {
        let enqueue_time = Some(wire_time(SystemClock.now() + Duration::from_secs(second)));
        let event = SchedulerEnqueueEvent { task_id: id.to_owned(), enqueue_time };
        both.store.record_enqueue_event("e1", &event).await.unwrap();
    }
    let events = inspector.get(json!({"op": "enqueue_events", "id": "e1"})).await;
    assert_eq!((&events[0]["id"], &events[1]["id"]), (&json!("t2"), &json!("t1")), "newest first");

    both.store.retire_scheduler(ID, &entries).await.unwrap();
    assert_eq!(inspector.get(json!({"op": "scheduler_entries"})).await, json!([]));
    assert!(both.keys().await.iter().all(|key| !key.contains("scheduler")));
}

#[tokio::test]
async fn theirs_are_shown_by_us_until_they_end() {
    let Some(both) = Both::start().await else { return };
    let heard = Heard::default();
    let mut scheduler = both.go.process(&heard, "schedule", &["--heartbeat", "50ms"]).await;
    let tick = json!({"type": "tick", "payload": "p", "queue": "q", "timeout_ms": 90_000});
    scheduler.say(json!({"spec": "@every 1s", "task": tick})).await;
    let entry = heard.line(|line| line["event"] == "registered").await["entry"].clone();
    let seen = until("its entry", async || {
        let all = both.store.schedulers().await.unwrap();
        all.into_iter().find(|scheduler| !scheduler.entries.is_empty())
    })
    .await;
    let shown = &seen.entries[0];
    assert_eq!((json!(shown.id), shown.spec.as_str()), (entry, "@every 1s"));
    assert_eq!((shown.task_type.as_str(), &shown.task_payload[..]), ("tick", &b"p"[..]));
    assert_eq!(shown.enqueue_options, [r#"Queue("q")"#, "Timeout(1m30s)"]);
    assert_eq!(seen.id.split(':').nth(1), Some(scheduler.pid.to_string().as_str()));
    let fired = heard.line(|line| line["event"] == "enqueued").await["task"]["id"].clone();
    let event = async || both.store.enqueue_events(&shown.id, 10).await.unwrap().pop();
    assert_eq!(json!(until("its first event", event).await.task_id), fired);
    scheduler.stop().await;
    assert_eq!(both.store.schedulers().await.unwrap(), []);
    assert!(both.store.enqueue_events(&shown.id, 10).await.unwrap().is_empty());
}

/// `asynq.Inspector` panics on such an option, and asynqmon with it.
#[tokio::test]
async fn an_option_that_go_cannot_take_apart_is_refused_and_changes_nothing() {
    let server = RedisServer::start().await.unwrap();
    let store = crate::both::open(&server).await;
    let told = entries();
    store.beat_scheduler(ID, &told, MINUTE).await.unwrap();
    for option in ["", "MaxRetry", "MaxRetry(3", "(3)", "MaxRetry 3)"] {
        let mut entries = told.clone();
        entries[1].enqueue_options = vec!["Timeout(1m0s)".to_owned(), option.to_owned()];
        let error = store.beat_scheduler(ID, &entries, MINUTE).await.unwrap_err().to_string();
        assert!(error.contains(&format!("{option:?} of scheduler entry \"e2\"")), "{error}");
    }
    assert_eq!(store.schedulers().await.unwrap().remove(0).entries, told);
}
