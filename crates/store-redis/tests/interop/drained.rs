//! What a drain leaves in Redis: after ours and one look for what belongs to nothing, the very keys that a drain by Go leaves.

use std::collections::BTreeMap;
use std::time::Duration;

use poolwright_broker::{Inspect, Upkeep};
use poolwright_core::{Charge, Class, NewTask, Settlement, Subject, TaskRecord, UniqueLock, When};
use serde_json::{Value, json};

use crate::both::{Both, done, queue, task, until};

/// Each kind of task that ends without a trace: plain ones, a unique, a scheduled, one retried twice, one revoked.
fn by_go() -> Vec<Value> {
    let mut tasks = [
        json!({"id": "plain", "payload": "x"}),
        json!({"id": "unique", "payload": "u", "unique_ms": 600_000}),
        json!({"id": "scheduled", "process_in_ms": 1_000}),
        json!({"id": "unique-scheduled", "process_in_ms": 1_000, "payload": "s", "unique_ms": 600_000}),
        json!({"id": "retried", "payload_json": {"fail_first": 2}}),
        json!({"id": "unique-retried", "payload_json": {"fail_first": 1}, "unique_ms": 600_000}),
        json!({"id": "revoked", "payload_json": {"do": "revoke"}, "retention_ms": 60_000}),
    ];
    for task in &mut tasks {
        task["type"] = json!("t");
        task["queue"] = json!("q");
    }
    tasks.to_vec()
}

/// The same as we enqueue them, and with what only ours have.
fn by_us() -> Vec<NewTask> {
    let ours = |line: Value| {
        let payload = match &line["payload"] {
            Value::String(text) => text.clone(),
            _ if line["payload_json"].is_null() => String::new(),
            _ => line["payload_json"].to_string(),
        };
        let id = line["id"].as_str().unwrap();
        let mut task = task(id, &payload);
        task.subjects = vec![Subject::new("knowledge", id)];
        if line["unique_ms"].is_number() {
            task.unique = Some(UniqueLock::new(format!("t:{id}"), Duration::from_secs(600)));
        }
        if line["process_in_ms"].is_number() {
            task.when = When::After(Duration::from_secs(1));
        }
        task
    };
    by_go().into_iter().map(ours).collect()
}

/// All attempts of these tasks, and how many fail.
const ATTEMPTS: (u64, u64) = (10, 3);

async fn drain_by_go(both: &Both) {
    let eager = ["--queues", "q", "--task-check-interval", "20ms", "--delayed-check-interval", "50ms"];
    let worker = both.go.worker(&[&eager[..], &["--retry-delay", "1s"]].concat()).await;
    until_drained(both).await;
    worker.stop().await;
}

async fn until_drained(both: &Both) {
    until("a drained queue", async || {
        let stats = both.stats("q").await;
        (stats.size() == 0 && (stats.processed, stats.failed) == ATTEMPTS).then_some(())
    })
    .await;
}

/// What Go's handler does with these payloads.
fn end_of(task: &TaskRecord) -> Settlement {
    let order: Value = serde_json::from_slice(&task.payload).unwrap_or_default();
    let (after, error) = (Duration::from_secs(1), "told to fail".to_owned());
    if u64::from(task.retried) < order["fail_first"].as_u64().unwrap_or(0) {
        return Settlement::Retry { after, error, class: Class::Transient, charge: Charge::Retry };
    }
    if order["do"] == "revoke" { Settlement::Discard } else { done() }
}

async fn drain_by_us(both: &Both) {
    until("a queue that we drained", async || {
        both.store.promote_due(vec![queue("q")], 100).await.unwrap();
        for task in both.claim("q", 10).await {
            both.end(&task, end_of(&task)).await;
        }
        let stats = both.stats("q").await;
        (stats.size() == 0 && stats.processed == ATTEMPTS.0).then_some(())
    })
    .await;
    until_drained(both).await;
    both.store.reconcile(vec![queue("q")]).await.unwrap();
}

/// Every key with type and contents; what was counted by day as one day, should midnight come.
async fn left(both: &Both) -> BTreeMap<String, (String, Value)> {
    let mut left = BTreeMap::new();
    for line in both.go.keys().await {
        let name = line["key"].as_str().unwrap();
        let day = name.len() - name.len().min(10);
        let is_day = name.is_char_boundary(day) && name[day..].split('-').count() == 3;
        let kind = line["type"].as_str().unwrap().to_owned();
        if !is_day {
            left.insert(name.to_owned(), (kind, line["value"].clone()));
            continue;
        }
        let sum: &mut (_, Value) = left.entry(format!("{}DAY", &name[..day])).or_insert((kind, json!(0)));
        let counted: u64 = line["value"].as_str().unwrap().parse().unwrap();
        sum.1 = json!(sum.1.as_u64().unwrap() + counted);
    }
    left
}

async fn go_alone() -> Option<BTreeMap<String, (String, Value)>> {
    let both = Both::start().await?;
    both.go.enqueue(&by_go()).await;
    drain_by_go(&both).await;
    Some(left(&both).await)
}

#[tokio::test]
async fn a_drain_by_us_leaves_the_keys_of_one_by_go() {
    let Some(expected) = go_alone().await else { return };
    assert_eq!(expected["asynq:{q}:processed"].1, ATTEMPTS.0.to_string());
    assert_eq!(expected["asynq:{q}:failed:DAY"].1, ATTEMPTS.1);
    assert_eq!(expected.len(), 5, "{expected:?}");

    let theirs = Both::start().await.unwrap();
    theirs.go.enqueue(&by_go()).await;
    drain_by_us(&theirs).await;
    assert_eq!(left(&theirs).await, expected, "tasks of Go");

    let ours = Both::start().await.unwrap();
    ours.send(by_us()).await;
    drain_by_us(&ours).await;
    assert_eq!(left(&ours).await, expected, "tasks of ours");
}

#[tokio::test]
async fn a_drain_of_ours_by_go_leaves_nothing_more() {
    let Some(expected) = go_alone().await else { return };
    let both = Both::start().await.unwrap();
    both.send(by_us()).await;
    drain_by_go(&both).await;
    let mended = both.store.reconcile(vec![queue("q")]).await.unwrap();
    assert_eq!((mended.index_entries, mended.locks), (7, 0), "Go knows nothing of our index");
    assert_eq!(left(&both).await, expected);
    assert_eq!(both.store.queues().await.unwrap(), [queue("q")]);
}

/// The counters of days go by themselves, on both sides after 90 days.
#[tokio::test]
async fn days_are_counted_for_as_long_as_by_go() {
    let Some(go) = Both::start().await else { return };
    let ours = Both::start().await.unwrap();
    for both in [&go, &ours] {
        both.go.enqueue(&by_go()).await;
    }
    drain_by_go(&go).await;
    drain_by_us(&ours).await;
    for both in [&go, &ours] {
        let days = both.keys().await.into_iter().filter(|key| key.contains("ed:2"));
        let mut seen = 0;
        for day in days {
            let left = both.redis(&["TTL", &day]).await.integer().unwrap();
            assert!((90 * 86_400 - left).abs() < 60, "{day}: {left}");
            seen += 1;
        }
        assert!(seen >= 2);
    }
}
