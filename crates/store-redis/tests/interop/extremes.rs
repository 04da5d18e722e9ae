//! What nobody enqueues on purpose: the largest numbers, the longest texts, bytes that are no text. Go takes them, and nothing of
//! ours stumbles.

use poolwright_broker::Inspect;
use poolwright_core::{Class, Settlement, State, Timestamp};
use serde_json::{Value, json};

use crate::both::{Both, MINUTE, done, ids, key, queue};

const FAR: i64 = i64::MAX / 1_000_000;

fn line(id: &str, more: &Value) -> Value {
    let mut line = json!({"type": "t", "queue": "q", "id": id});
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    line
}

#[tokio::test]
async fn the_largest_numbers_are_claimed_and_settled() {
    let Some(both) = Both::start().await else { return };
    let tasks = [
        line("timeout", &json!({"timeout_ms": FAR})),
        line("deadline", &json!({"deadline_ms": i64::MAX})),
        line("past-deadline", &json!({"deadline_ms": -1_000})),
        line("retention", &json!({"retention_ms": FAR})),
        line("retries", &json!({"max_retry": i32::MAX})),
        line("more-retries", &json!({"max_retry": i64::from(i32::MAX) + 1})),
        line("negative-timeout", &json!({"timeout_ms": -5_000})),
        line("negative-retention", &json!({"retention_ms": -5_000})),
        line("long-ago", &json!({"process_at_ms": -1_000})),
        line("payload", &json!({"payload": "x".repeat(2 << 20)})),
    ];
    both.go.enqueue(&tasks).await;
    both.go.enqueue(&[line("never", &json!({"process_at_ms": i64::MAX / 1_000}))]).await;
    let never = both.task("never").await;
    let due = Timestamp::from_secs(i64::MAX / 1_000_000);
    assert_eq!((never.state, never.due), (State::Scheduled, Some(due)));
    for task in tasks {
        let shown = both.task(task["id"].as_str().unwrap()).await;
        assert_eq!(shown.state, State::Pending, "{shown:?}");
    }
    assert_eq!(both.task("retries").await.max_retry, i32::MAX.unsigned_abs());
    assert_eq!(both.task("payload").await.payload.len(), 2 << 20);
    assert_eq!(both.task("negative-timeout").await.timeout, std::time::Duration::ZERO);
    let claimed = both.claim("q", 20).await;
    assert_eq!(claimed.len(), 10);
    for task in &claimed {
        both.end(task, Settlement::Complete { retain_for: task.retention, result: None }).await;
    }
    assert_eq!(both.page("q", State::Completed).await, ["retention"]);
    let mut inspector = both.go.inspector();
    assert_eq!(inspector.ids("q", "completed").await, ["retention"]);
    assert_eq!(both.store.quarantine(queue("q"), 10).await.unwrap(), []);
}

/// asynq takes ids and types of any text; ours have at most 255 bytes and no control characters. What is beyond that is set aside
/// when we meet it: none of it is lost, and what is behind it goes on.
#[tokio::test]
async fn names_that_we_cannot_hold_are_set_aside() {
    let Some(both) = Both::start().await else { return };
    let (long, odd) = ("x".repeat(300), "a\nb");
    let tasks = [
        line(&long, &json!({})),
        line(odd, &json!({})),
        line("type", &json!({"type": "\u{1}"})),
        line("fine", &json!({})),
    ];
    both.go.enqueue(&tasks).await;
    assert_eq!(ids(&both.claim("q", 10).await), ["fine"]);
    let aside = both.store.quarantine(queue("q"), 10).await.unwrap();
    let mut names: Vec<_> = aside.iter().map(|one| one.id.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, [odd, "type", &long[..]]);
    assert!(aside.iter().all(|one| !one.raw.is_empty()));
}

/// Whatever our handlers say in their errors is text that Go can read.
#[tokio::test]
async fn long_and_odd_errors_are_shown_by_go() {
    let Some(both) = Both::start().await else { return };
    let words = ["é".repeat(40_000), "\0\u{1b}[31m\u{fffd}".to_owned(), String::new()];
    both.go.enqueue(&["a", "b", "c"].map(|id| line(id, &json!({})))).await;
    for (task, error) in both.claim("q", 3).await.iter().zip(&words) {
        both.end(task, Settlement::Archive { error: error.clone(), class: Class::Permanent }).await;
    }
    let mut inspector = both.go.inspector();
    assert_eq!(inspector.ids("q", "archived").await, ["a", "b", "c"]);
    for id in ["a", "b", "c"] {
        let ours = both.task(id).await.failed.unwrap();
        assert_eq!(inspector.act("task", "q", id).await["last_error"], ours.error.as_ref());
        inspector.act("run", "q", id).await;
    }
    for task in both.claim("q", 3).await {
        assert!(task.failed.is_some());
        both.end(&task, done()).await;
    }
}

/// Results are bytes, and so is what asynq shows of them.
#[tokio::test]
async fn results_that_are_no_text_cross_over() {
    let Some(both) = Both::start().await else { return };
    let bytes = json!({"do": "ok", "result_base64": "AAH//g=="});
    both.go
        .enqueue(&[
            line("ours", &json!({"retention_ms": 60_000})),
            line("theirs", &json!({"retention_ms": 60_000, "payload_json": bytes})),
        ])
        .await;
    let task = both.claim("q", 1).await.remove(0);
    let result = Some(vec![0, 1, 0xff, 0xfe].into());
    both.end(&task, Settlement::Complete { retain_for: MINUTE, result }).await;
    let worker = both.go.worker(&["--queues", "q"]).await;
    let mut inspector = both.go.inspector();
    inspector.until_state("q", "theirs", "completed").await;
    worker.stop().await;
    for id in ["ours", "theirs"] {
        assert_eq!(inspector.act("task", "q", id).await["result_base64"], "AAH//g==");
        let result = both.store.get(key("q", id)).await.unwrap().unwrap().result.unwrap();
        assert_eq!(&result[..], [0, 1, 0xff, 0xfe]);
    }
}
