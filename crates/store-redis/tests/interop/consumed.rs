//! What we enqueue: byte for byte what Go would have written where the task says nothing beyond asynq, and Go's worker runs it,
//! retries it, archives it and carries our header along.

use std::time::Duration;

use poolwright_broker::{Find, Inspect, Upkeep};
use poolwright_core::{
    NewTask, Scope, State, Subject, TaskId, Tenant, Timestamp, TypeName, UniqueLock, When,
};
use poolwright_testbed::{RedisServer, Reply};
use serde_json::{Value, json};

use crate::both::{self, Both, MINUTE, key, queue, task};

/// Quick to look, so that stories are.
const EAGER: [&str; 8] = [
    "--queues",
    "q",
    "--task-check-interval",
    "20ms",
    "--delayed-check-interval",
    "50ms",
    "--retry-delay",
    "1s",
];

fn read(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(crate::go::source().join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The task of a line that Go made its golden bytes from; none where ours has no such thing.
fn as_ours(line: &Value, golden: &Value) -> Option<NewTask> {
    // Groups are asynq's alone, and a lock says in our header how long it lasts.
    if golden["error"].is_string() || !line["group"].is_null() || !line["unique_ms"].is_null() {
        return None;
    }
    let millis = |name: &str| line[name].as_i64();
    let span =
        |name: &str| millis(name).map(|given| Duration::from_secs(u64::try_from(given).unwrap() / 1_000));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let payload = match line {
        _ if line["payload_json"].is_object() => line["payload_json"].to_string().into_bytes(),
        _ if line["payload_base64"].is_string() => vec![0, 1, 0xff, 0xfe],
        _ => line["payload"].as_str().unwrap_or_default().as_bytes().to_vec(),
    };
    let id = TaskId::new(text(&golden["id"])).unwrap();
    let mut task = NewTask::new(
        queue(&text(&golden["queue"])),
        id,
        TypeName::new(text(&line["type"])).unwrap(),
        payload,
    );
    task.headers = serde_json::from_value(line["headers"].clone()).unwrap_or_default();
    task.max_retry = millis("max_retry").map_or(25, |given| u32::try_from(given.max(0)).unwrap());
    task.deadline = millis("deadline_ms").filter(|at| *at != 0).map(Timestamp::from_millis);
    task.timeout =
        span("timeout_ms").unwrap_or(if task.deadline.is_some() { Duration::ZERO } else { 30 * MINUTE });
    task.retention = span("retention_ms").unwrap_or_default();
    task.when = millis("process_at_ms").map_or(When::Now, |at| When::At(Timestamp::from_secs(at / 1_000)));
    Some(task)
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let pairs = (0..hex.len() / 2).map(|at| &hex[2 * at..2 * at + 2]);
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// This needs no Go: the golden bytes are kept.
#[tokio::test]
async fn plain_tasks_are_byte_for_byte_what_go_writes() {
    let server = RedisServer::start().await.unwrap();
    let store = both::open(&server).await;
    let mut compared = 0;
    for (line, golden) in read("vectors.tasks.jsonl").iter().zip(read("vectors.golden.jsonl")) {
        let Some(task) = as_ours(line, &golden) else { continue };
        poolwright_broker::Submit::enqueue(&*store, vec![task]).await.unwrap().remove(0).unwrap();
        let hash = golden["key"].as_str().unwrap();
        let message = server.command(&["HGET", hash, "msg"]).await.unwrap();
        let Reply::Bytes(message) = message else { panic!("no message at {hash}") };
        assert_eq!(message, bytes_of(golden["msg"].as_str().unwrap()), "{line}");
        assert_eq!(
            server.command(&["HGET", hash, "state"]).await.unwrap(),
            golden["state"].as_str().unwrap()
        );
        if let Some(score) = golden["score"].as_str() {
            let list = format!("asynq:{{{}}}:scheduled", golden["queue"].as_str().unwrap());
            let ours = server.command(&["ZSCORE", &list, golden["id"].as_str().unwrap()]).await.unwrap();
            assert_eq!(ours, score, "{line}");
        }
        compared += 1;
    }
    assert_eq!(compared, 19);
}

#[tokio::test]
async fn a_worker_in_go_runs_every_kind_of_task() {
    let Some(both) = Both::start().await else { return };
    let mut plain = task("plain", r#"{"result":"r é"}"#);
    plain.retention = MINUTE;
    plain.headers.insert("trace".to_owned(), "abc".to_owned());
    let mut scheduled = task("scheduled", "");
    scheduled.when = When::After(Duration::from_secs(1));
    let mut unique = task("unique", "");
    unique.unique = Some(UniqueLock::new("t:lock", MINUTE));
    let mut late = task("late", r#"{"ms":60000}"#);
    (late.timeout, late.max_retry) = (Duration::from_millis(500), 0);
    let mut brief = task("brief", "");
    brief.retention = Duration::from_millis(500);
    let mut dead = task("dead", r#"{"do":"skip_retry","error":"never"}"#);
    dead.unique = Some(UniqueLock::new("t:dead", MINUTE));
    let gone = task("gone", r#"{"do":"revoke"}"#);
    let mut panics = task("panics", r#"{"panic":true,"error":"ouch"}"#);
    panics.max_retry = 0;
    both.send(vec![plain, scheduled, unique, late, brief, dead, gone, panics]).await;

    let worker = both.go.worker(&EAGER).await;
    let mut inspector = both.go.inspector();
    let start = worker.event("start", "plain").await;
    assert_eq!((&start["headers"], &start["max_retry"]), (&json!({"trace": "abc"}), &json!(25)));
    for (id, state) in [
        ("plain", "completed"),
        ("scheduled", "task_not_found"),
        ("unique", "task_not_found"),
        ("late", "archived"),
        ("dead", "archived"),
        ("gone", "task_not_found"),
        ("panics", "archived"),
    ] {
        inspector.until_state("q", id, state).await;
    }
    worker.event("end", "brief").await;
    worker.stop().await;

    assert_eq!(both.task("plain").await.result.as_deref(), Some("r é".as_bytes()));
    assert!(!both.has("asynq:{q}:unique:t:lock").await);
    // A part of a second became a whole one, not none.
    assert_eq!(both.task("late").await.failed.unwrap().error.as_ref(), "context deadline exceeded");
    let dead = both.task("dead").await;
    let failed = dead.failed.clone().unwrap();
    assert_eq!((failed.error.as_ref(), dead.state), ("never: skip retry for the task", State::Archived));
    let letters = both.store.unrecorded(vec![queue("q")], 10).await.unwrap();
    assert_eq!(both::ids(&letters), ["dead", "panics", "late"]);
    // One that Go archived wants a letter of its own, and the letter can be confirmed.
    let held = letters.iter().map(|task| poolwright_broker::Held::of(task).unwrap()).collect();
    both.store.mark_recorded(held).await.unwrap();
    assert!(both.store.unrecorded(vec![queue("q")], 10).await.unwrap().is_empty());
    assert!(both.task("panics").await.failed.unwrap().error.contains("ouch"));
}

#[tokio::test]
async fn our_header_survives_a_retry_in_go() {
    let Some(both) = Both::start().await else { return };
    let mut sent = task("a", r#"{"fail_first":1}"#);
    sent.subjects = vec![Subject::new("knowledge", "kn_42"), Subject::new("a/b", "c\nd")];
    sent.scopes = vec![Scope::new("knowledge_base", "kb_7")];
    sent.tenant = Some(Tenant("acme".into()));
    (sent.timeout, sent.retention) = (Duration::from_millis(7_250), MINUTE);
    sent.deadline = Some(Timestamp::from_micros(4_102_444_800_500_000));
    both.send(vec![sent.clone()]).await;
    let mut args = EAGER;
    args[7] = "1h";
    let worker = both.go.worker(&args).await;
    let mut inspector = both.go.inspector();
    inspector.until_state("q", "a", "retry").await;
    worker.stop().await;

    let find = Find::Subject(Subject::new("knowledge", "kn_42"));
    let found = both.store.find(find.clone(), 10).await.unwrap();
    assert_eq!(found.tasks, [(key("q", "a"), State::Retry, TypeName::new("t").unwrap())]);
    let back = both.task("a").await;
    assert_eq!((back.retried, back.failed.unwrap().error.as_ref()), (1, "told to fail"));
    assert_eq!((&back.subjects, &back.scopes, &back.tenant), (&sent.subjects, &sent.scopes, &sent.tenant));
    assert_eq!((back.timeout, back.deadline), (sent.timeout, sent.deadline));
    assert!(back.headers.is_empty(), "ours is none of the user's");
    let text = inspector.act("task", "q", "a").await;
    assert_eq!(text["headers"]["poolwright"].as_str().unwrap().lines().count(), 6, "{text}");

    // Go ends it; what is left of the index is passed over, and goes with the next look for what belongs to nothing.
    inspector.act("run", "q", "a").await;
    let worker = both.go.worker(&EAGER).await;
    inspector.until_state("q", "a", "completed").await;
    worker.stop().await;
    assert_eq!(both.store.find(find.clone(), 10).await.unwrap().tasks[0].1, State::Completed);
    inspector.act("delete", "q", "a").await;
    assert!(both.has("asynq:{q}:scope:knowledge_base/kb_7").await, "asynq knows nothing of it");
    let mended = both.store.reconcile(vec![queue("q")]).await.unwrap();
    assert_eq!(mended.index_entries, 3);
    assert!(both.store.find(find, 10).await.unwrap().tasks.is_empty());
}
