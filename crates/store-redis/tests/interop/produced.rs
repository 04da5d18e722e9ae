//! What a producer in Go enqueues: our store shows it rightly, claims it and settles it, and asynq's inspector agrees.

use std::collections::BTreeMap;
use std::time::Duration;

use poolwright_broker::Inspect;
use poolwright_core::{Charge, Class, Settlement, State, TaskRecord, Timestamp};
use serde_json::{Value, json};

use crate::both::{Both, MINUTE, done, ids, key, queue};

/// The tasks of `tests/interop/vectors.tasks.jsonl`, with every option of asynq.
fn vectors() -> Vec<Value> {
    let text = std::fs::read_to_string(crate::go::source().join("vectors.tasks.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Enqueues all of them; gives those that asynq took, with the key of each.
async fn produce(both: &Both) -> Vec<(Value, String, String)> {
    let tasks = vectors();
    let answers = both.go.run("enqueue", &[], &tasks).await;
    assert_eq!(answers.len(), tasks.len());
    let taken = tasks.into_iter().zip(answers).filter(|(_, answer)| answer["error"].is_null());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    taken.map(|(task, answer)| (task, text(&answer["queue"]), text(&answer["id"]))).collect()
}

/// What asynq says of the options that a line leaves out or that it cuts.
struct Meant<'l>(&'l Value);

impl Meant<'_> {
    fn millis(&self, name: &str) -> Option<i64> {
        self.0[name].as_i64()
    }

    /// Whole seconds, the rest cut off.
    fn span(&self, name: &str) -> Option<Duration> {
        self.millis(name).map(|millis| Duration::from_secs(u64::try_from(millis / 1_000).unwrap()))
    }

    /// The beginning of 1970 means none.
    fn deadline(&self) -> Option<Timestamp> {
        self.millis("deadline_ms").filter(|millis| *millis != 0).map(Timestamp::from_millis)
    }

    fn timeout(&self) -> Duration {
        let otherwise = if self.deadline().is_some() { Duration::ZERO } else { 30 * MINUTE };
        self.span("timeout_ms").unwrap_or(otherwise)
    }

    fn due(&self) -> Option<Timestamp> {
        let later = self.millis("process_at_ms").filter(|millis| *millis > 1_000_000_000_000);
        later.map(|millis| Timestamp::from_secs(millis / 1_000))
    }

    fn payload(&self) -> Vec<u8> {
        match self.0 {
            Value::Object(task) if task.contains_key("payload_json") => {
                self.0["payload_json"].to_string().into()
            }
            Value::Object(task) if task.contains_key("payload_base64") => vec![0, 1, 0xff, 0xfe],
            _ => self.0["payload"].as_str().unwrap_or_default().into(),
        }
    }

    fn headers(&self) -> BTreeMap<String, String> {
        serde_json::from_value(self.0["headers"].clone()).unwrap_or_default()
    }

    fn max_retry(&self) -> u32 {
        self.millis("max_retry").map_or(25, |given| u32::try_from(given.max(0)).unwrap())
    }

    fn waits(&self) -> bool {
        self.due().is_some() || !self.0["group"].is_null()
    }
}

fn assert_shown(task: &TaskRecord, line: &Value) {
    let meant = Meant(line);
    assert_eq!(task.task_type.as_str(), line["type"].as_str().unwrap());
    assert_eq!(task.payload, meant.payload(), "{line}");
    assert_eq!(task.headers, meant.headers(), "{line}");
    assert_eq!((task.max_retry, task.retried), (meant.max_retry(), 0), "{line}");
    assert_eq!((task.timeout, task.deadline), (meant.timeout(), meant.deadline()), "{line}");
    assert_eq!(task.retention, meant.span("retention_ms").unwrap_or_default(), "{line}");
    assert_eq!(task.unique.is_some(), !line["unique_ms"].is_null(), "{line}");
    assert!(task.failed.is_none() && task.result.is_none() && !task.cancel_requested, "{line}");
}

#[tokio::test]
async fn each_task_from_go_is_shown_claimed_and_settled_rightly() {
    let Some(both) = Both::start().await else { return };
    let tasks = produce(&both).await;
    assert_eq!(tasks.len(), 28, "asynq takes as many of them as ever");
    let started = both.store.queues().await.unwrap();
    for (line, of, id) in &tasks {
        let task = both.store.get(key(of, id)).await.unwrap().unwrap();
        assert_shown(&task, line);
        let meant = Meant(line);
        if meant.waits() {
            assert_eq!(task.state, State::Scheduled, "{line}");
            assert_eq!((task.due, task.pending_since), (meant.due(), None), "{line}");
            assert_eq!(both.store.run_now(key(of, id)).await.unwrap(), State::Scheduled);
        } else {
            assert_eq!((task.state, task.due), (State::Pending, None), "{line}");
            assert!(task.pending_since.is_some_and(|since| since <= task.enqueued_at + MINUTE), "{line}");
        }
    }
    let mut left: BTreeMap<_, _> =
        tasks.iter().map(|(line, of, id)| ((of.clone(), id.clone()), line)).collect();
    for of in &started {
        for task in both.claim(of.as_str(), 100).await {
            let line = left.remove(&(of.to_string(), task.key.id.to_string())).expect("it is claimed once");
            assert_shown(&task, line);
            let kept = Settlement::Complete { retain_for: task.retention, result: None };
            let state = both.end(&task, kept).await;
            assert_eq!(state, (!task.retention.is_zero()).then_some(State::Completed), "{line}");
        }
    }
    assert!(left.is_empty(), "never claimed: {left:?}");
    both_agree_on_the_end(&both, &tasks).await;
}

/// asynq's inspector shows what is kept and nothing else; no lock is left.
async fn both_agree_on_the_end(both: &Both, tasks: &[(Value, String, String)]) {
    let mut inspector = both.go.inspector();
    let mut kept = 0;
    for (line, of, id) in tasks {
        let stays = Meant(line).span("retention_ms").is_some_and(|span| !span.is_zero());
        let state = inspector.state(of, id).await;
        assert_eq!(state, if stays { "completed" } else { "task_not_found" }, "{line}");
        kept += usize::from(stays);
    }
    let mut sums = BTreeMap::<&str, u64>::new();
    for of in inspector.get(json!({"op": "queues"})).await.as_array().unwrap() {
        let numbers = inspector.act("queue", of.as_str().unwrap(), "").await;
        for name in ["size", "completed", "active", "aggregating", "processed_total", "failed_total"] {
            *sums.entry(name).or_default() += numbers[name].as_u64().unwrap();
        }
    }
    let all = u64::try_from(tasks.len()).unwrap();
    let kept = u64::try_from(kept).unwrap();
    assert_eq!((sums["size"], sums["completed"], sums["active"], sums["aggregating"]), (kept, kept, 0, 0));
    assert_eq!((sums["processed_total"], sums["failed_total"]), (all, 0));
    let locks = both.redis(&["KEYS", "asynq:*:unique:*"]).await;
    assert!(locks.items().is_empty(), "{locks:?}");
}

#[tokio::test]
async fn each_end_that_we_give_a_task_of_go_is_one_that_go_shows() {
    let Some(both) = Both::start().await else { return };
    let named = ["complete", "retry", "archive", "discard", "release"];
    let tasks =
        named.map(|id| json!({"type": "t", "queue": "q", "id": id, "payload": id, "retention_ms": 60_000}));
    both.go.enqueue(&tasks).await;
    let claimed = both.claim("q", 10).await;
    assert_eq!(ids(&claimed), named, "first in, first out");
    let error = || "boom é".to_owned();
    let retry =
        Settlement::Retry { after: MINUTE, error: error(), class: Class::Transient, charge: Charge::Retry };
    let ends = [
        Settlement::Complete { retain_for: MINUTE, result: Some("result".into()) },
        retry,
        Settlement::Archive { error: error(), class: Class::Permanent },
        Settlement::Discard,
        Settlement::Release,
    ];
    for (task, end) in claimed.iter().zip(ends) {
        both.end(task, end).await;
    }
    let mut inspector = both.go.inspector();
    let now = both.store.get(key("q", "retry")).await.unwrap().unwrap().failed.unwrap().at;
    let near =
        |value: &Value, secs: i64| (value.as_i64().unwrap() - now.as_millis() - secs * 1_000).abs() < 2_000;

    let complete = inspector.act("task", "q", "complete").await;
    assert_eq!((&complete["state"], &complete["result"]), (&json!("completed"), &json!("result")));
    assert!(near(&complete["completed_at_ms"], 0), "{complete}");
    let retry = inspector.act("task", "q", "retry").await;
    assert_eq!((&retry["state"], &retry["retried"]), (&json!("retry"), &json!(1)));
    assert_eq!(retry["last_error"], error());
    assert!(near(&retry["next_process_at_ms"], 60) && near(&retry["last_failed_at_ms"], 0), "{retry}");
    let archive = inspector.act("task", "q", "archive").await;
    assert_eq!((&archive["state"], &archive["retried"]), (&json!("archived"), &json!(0)));
    assert_eq!(
        (archive["last_error"].as_str(), near(&archive["last_failed_at_ms"], 0)),
        (Some("boom é"), true)
    );
    assert_eq!(inspector.state("q", "discard").await, "task_not_found");
    let release = inspector.act("task", "q", "release").await;
    assert_eq!(
        (&release["state"], &release["retried"], &release["last_error"]),
        (&json!("pending"), &json!(0), &json!(""))
    );
    for kept in [&complete, &retry, &archive, &release] {
        assert_eq!((&kept["payload"], &kept["retention_ms"]), (&kept["id"], &json!(60_000)));
    }
    let numbers = inspector.act("queue", "q", "").await;
    assert_eq!((&numbers["processed"], &numbers["failed"]), (&json!(4), &json!(2)));
}

#[tokio::test]
async fn a_lock_that_go_took_is_one_for_us_and_the_other_way_round() {
    let Some(both) = Both::start().await else { return };
    let unique = json!({"type": "t", "queue": "q", "id": "go", "payload": "hello", "unique_ms": 60_000});
    both.go.enqueue(std::slice::from_ref(&unique)).await;
    let mut ours = crate::both::task("ours", "hello");
    // `hello` as asynq's lock has it.
    ours.unique = Some(poolwright_core::UniqueLock::new("t:5d41402abc4b2a76b9719d911017c592", MINUTE));
    let refused =
        poolwright_broker::Submit::enqueue(&*both.store, vec![ours.clone()]).await.unwrap().remove(0);
    let holder = key("q", "go");
    assert_eq!(refused, Err(poolwright_broker::Error::DuplicateUnique { holder }));

    let task = both.claim_one("go").await;
    both.end(&task, done()).await;
    both.send(vec![ours]).await;
    let again = both.go.run("enqueue", &[], &[unique]).await;
    assert_eq!(again[0]["kind"], "duplicate");
    let page = both.page("q", State::Pending).await;
    assert_eq!(page, ["ours"], "and nothing else is in {}", queue("q"));
}
