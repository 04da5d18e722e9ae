//! asynq's inspector on what is ours: it lists every state, runs, archives, deletes and changes our tasks, pauses and removes our
//! queues, and we agree with what it did.

use poolwright_broker::{Error, Find, Inspect, Upkeep};
use poolwright_core::{Charge, Class, NewTask, Settlement, State, Subject, UniqueLock, When};
use serde_json::{Value, json};

use crate::both::{self, Both, MINUTE, done, ids, key, queue, task};

const STATES: [&str; 6] = ["pending", "active", "scheduled", "retry", "archived", "completed"];

/// A task named for its state, with all that ours can have.
fn rich(id: &str) -> NewTask {
    let mut task = task(id, &format!("of {id}"));
    task.subjects = vec![Subject::new("knowledge", id)];
    task.headers.insert("trace".to_owned(), id.to_owned());
    task.retention = MINUTE;
    task.unique = Some(UniqueLock::new(format!("t:{id}"), 10 * MINUTE));
    if id.starts_with("scheduled") {
        task.when = When::After(MINUTE);
    }
    task
}

/// One of our tasks in each state, named for it with this behind its name.
async fn in_each_state(both: &Both, mark: &str) {
    let name = |state: &str| format!("{state}{mark}");
    both.send(["active", "retry", "archived", "completed"].map(|state| rich(&name(state))).to_vec()).await;
    for task in both.claim("q", 4).await {
        let error = "boom".to_owned();
        let end = match task.key.id.as_str() {
            id if id.starts_with("retry") => {
                Settlement::Retry { after: MINUTE, error, class: Class::Transient, charge: Charge::Retry }
            }
            id if id.starts_with("archived") => Settlement::Archive { error, class: Class::Permanent },
            id if id.starts_with("completed") => {
                Settlement::Complete { retain_for: MINUTE, result: Some("result".into()) }
            }
            _ => continue,
        };
        both.end(&task, end).await;
    }
    both.send(vec![rich(&name("scheduled")), rich(&name("pending"))]).await;
}

async fn assert_gone(both: &Both, id: &str) {
    assert!(both.store.get(key("q", id)).await.unwrap().is_none(), "{id}");
    assert!(!both.has(&format!("asynq:{{q}}:unique:t:{id}")).await, "the lock of {id}");
    let find = Find::Subject(Subject::new("knowledge", id));
    assert!(both.store.find(find, 10).await.unwrap().tasks.is_empty(), "{id}");
}

#[tokio::test]
async fn it_lists_each_state_of_ours() {
    let Some(both) = Both::start().await else { return };
    in_each_state(&both, "").await;
    let mut inspector = both.go.inspector();
    assert_eq!(inspector.get(json!({"op": "queues"})).await, json!(["q"]));
    let numbers = inspector.act("queue", "q", "").await;
    for state in STATES {
        assert_eq!(numbers[state], 1, "{numbers}");
        let listed = inspector.list("q", state).await;
        assert_eq!(listed.len(), 1, "{listed:?}");
        let shown = &listed[0];
        let mut alone = inspector.act("task", "q", state).await;
        if state == "pending" {
            // It is next at the time at which one looks.
            alone["next_process_at_ms"] = shown["next_process_at_ms"].clone();
        }
        assert_eq!(*shown, alone);
        assert_eq!(
            (&shown["id"], &shown["state"], &shown["type"]),
            (&json!(state), &json!(state), &json!("t"))
        );
        assert_eq!(
            (&shown["payload"], &shown["headers"]["trace"]),
            (&json!(format!("of {state}")), &json!(state))
        );
        assert_eq!((&shown["timeout_ms"], &shown["max_retry"]), (&json!(1_800_000), &json!(25)));
        assert_eq!((&shown["orphaned"], &shown["retention_ms"]), (&json!(false), &json!(60_000)));
    }
    let facts = ["size", "processed", "failed", "processed_total", "failed_total", "groups", "paused"];
    assert_eq!(
        facts.map(|fact| numbers[fact].clone()),
        [6, 3, 2, 3, 2, 0].map(Value::from).into_iter().chain([json!(false)]).collect::<Vec<_>>()[..]
    );
    assert!(
        numbers["latency_ms"].as_i64().unwrap() >= 0 && numbers["memory_usage_bytes"].as_u64().unwrap() > 0
    );
    let days = inspector.get(json!({"op": "history", "queue": "q", "days": 2})).await;
    assert_eq!(
        (&days[0]["processed"], &days[0]["failed"], &days[1]["processed"]),
        (&json!(3), &json!(2), &json!(0))
    );
    let ours = both.store.history(queue("q"), 2).await.unwrap();
    assert_eq!((ours[0].processed, ours[0].failed, ours[1].processed), (3, 2, 0));
}

#[tokio::test]
async fn what_it_runs_we_claim() {
    let Some(both) = Both::start().await else { return };
    in_each_state(&both, "").await;
    both.end(&both.claim_one("pending").await, done()).await;
    let mut inspector = both.go.inspector();
    let waiting = ["scheduled", "retry", "archived", "completed"];
    for id in waiting {
        inspector.act("run", "q", id).await;
        let task = both.task(id).await;
        // asynq forgets to write since when.
        assert_eq!((task.state, task.pending_since), (State::Pending, None), "{id}");
        assert!(task.due.is_none() && task.completed_at.is_none() && task.expires_at.is_none(), "{task:?}");
    }
    let refused = inspector.ask(json!({"op": "run", "queue": "q", "id": "active"})).await.unwrap_err();
    assert!(refused["error"].as_str().unwrap().contains("already running"), "{refused}");
    assert_eq!(both.stats("q").await.oldest_pending, None);
    let claimed = both.claim("q", 10).await;
    assert_eq!(ids(&claimed), waiting);
    for task in &claimed {
        let id = task.key.id.as_str();
        assert_eq!(task.subjects, [Subject::new("knowledge", id)]);
        assert_eq!(task.retried, u32::from(id == "retry"), "{id}");
        assert_eq!(task.failed.is_some(), id == "retry" || id == "archived", "{id}");
        both.end(task, done()).await;
        assert_gone(&both, id).await;
    }
}

#[tokio::test]
async fn what_it_archives_is_archived_for_us_and_wants_a_letter() {
    let Some(both) = Both::start().await else { return };
    in_each_state(&both, "").await;
    let mut inspector = both.go.inspector();
    let moved = ["pending", "scheduled", "retry", "completed"];
    for id in moved {
        inspector.act("archive", "q", id).await;
        let task = both.task(id).await;
        assert_eq!((task.state, &task.subjects[..]), (State::Archived, &[Subject::new("knowledge", id)][..]));
        assert!(task.due.is_none() && task.pending_since.is_none() && task.expires_at.is_none(), "{task:?}");
        let failed = task.failed.unwrap();
        let expected = if id == "retry" { Class::Transient } else { Class::Operator };
        assert_eq!(failed.class, expected, "{id}: {}", failed.error);
    }
    let letters = both.store.unrecorded(vec![queue("q")], 10).await.unwrap();
    let mut unrecorded = ids(&letters);
    unrecorded.sort_unstable();
    assert_eq!(unrecorded, ["archived", "completed", "pending", "retry", "scheduled"]);
    let held = letters.iter().map(|task| poolwright_broker::Held::of(task).unwrap()).collect();
    both.store.mark_recorded(held).await.unwrap();
    assert!(both.store.unrecorded(vec![queue("q")], 10).await.unwrap().is_empty());
    // Run and archived again it has another end, which wants another letter.
    inspector.act("run", "q", "pending").await;
    both.until_next_second().await;
    inspector.act("archive", "q", "pending").await;
    let again = both.store.unrecorded(vec![queue("q")], 10).await.unwrap();
    assert_eq!(ids(&again), ["pending"]);
    let before = letters.iter().find(|task| task.key.id.as_str() == "pending").unwrap();
    assert_ne!(again[0].token, before.token);
}

#[tokio::test]
async fn what_it_deletes_is_gone_with_its_lock() {
    let Some(both) = Both::start().await else { return };
    in_each_state(&both, "").await;
    let mut inspector = both.go.inspector();
    let rest = ["pending", "scheduled", "retry", "archived", "completed"];
    for id in rest {
        inspector.act("delete", "q", id).await;
    }
    let refused = inspector.ask(json!({"op": "delete", "queue": "q", "id": "active"})).await.unwrap_err();
    assert!(refused["error"].as_str().unwrap().contains("in active state"), "{refused}");
    // Our index knows nothing of it, until we look for what belongs to nothing.
    let mended = both.store.reconcile(vec![queue("q")]).await.unwrap();
    assert_eq!((mended.index_entries, mended.locks, mended.leaseless), (5, 0, 0));
    for id in rest {
        assert_gone(&both, id).await;
    }
    let keys = both.keys().await;
    let of_task =
        |key: &&String| key.contains(":t:") || key.contains(":unique:") || key.contains(":subject:");
    let left: Vec<_> = keys.iter().filter(of_task).collect();
    assert_eq!(
        left,
        ["asynq:{q}:subject:knowledge/active", "asynq:{q}:t:active", "asynq:{q}:unique:t:active"]
    );
}

#[tokio::test]
async fn it_acts_on_all_of_a_state() {
    let Some(both) = Both::start().await else { return };
    let mut inspector = both.go.inspector();
    for (op, states) in [
        ("run_all", &["scheduled", "retry", "archived"][..]),
        ("archive_all", &["pending", "scheduled", "retry"]),
        ("delete_all", &["pending", "scheduled", "retry", "archived", "completed"]),
    ] {
        in_each_state(&both, op).await;
        for state in states {
            let count =
                inspector.get(json!({"op": op, "queue": "q", "state": state})).await.as_u64().unwrap();
            assert!(count > 0, "{op} {state}");
        }
        if op == "run_all" {
            let mut claimed = ids(&both.claim("q", 10).await);
            claimed.sort_unstable();
            assert_eq!(
                claimed,
                ["archived", "pending", "retry", "scheduled"].map(|state| format!("{state}{op}"))
            );
        }
    }
    // asynq leaves behind what it knows nothing of, and the locks of pending ones.
    let mended = both.store.reconcile(vec![queue("q")]).await.unwrap();
    assert!(mended.index_entries > 0 && mended.locks == 1, "{mended:?}");
    let stats = both.stats("q").await;
    assert_eq!((stats.size(), stats.active, stats.completed), (stats.active, 7, 0));
}

#[tokio::test]
async fn it_changes_payloads_and_we_see_it() {
    let Some(both) = Both::start().await else { return };
    in_each_state(&both, "").await;
    let mut inspector = both.go.inspector();
    let call = json!({"op": "update_payload", "queue": "q", "id": "scheduled", "payload": "changed"});
    inspector.get(call).await;
    let changed = both.task("scheduled").await;
    assert_eq!((&changed.payload[..], changed.state), (&b"changed"[..], State::Scheduled));
    assert_eq!(changed.subjects, [Subject::new("knowledge", "scheduled")]);
    assert!(changed.due.is_some() && changed.unique.is_some());
    both.store.update_payload(key("q", "scheduled"), "ours".into()).await.unwrap();
    assert_eq!(inspector.act("task", "q", "scheduled").await["payload"], "ours");
}

#[tokio::test]
async fn it_pauses_and_resumes_our_queues_and_we_theirs() {
    let Some(both) = Both::start().await else { return };
    both.send(vec![task("a", "")]).await;
    let mut inspector = both.go.inspector();
    inspector.act("pause", "q", "").await;
    let paused = both.stats("q").await.paused.unwrap();
    assert_eq!(paused.reason, "");
    assert!(both.claim("q", 1).await.is_empty());
    assert!(!both.store.pause(queue("q"), "for a reason".into()).await.unwrap(), "it was paused");
    let stats = both.stats("q").await.paused.unwrap();
    assert_eq!((stats.reason.as_str(), stats.since), ("for a reason", paused.since));
    inspector.act("unpause", "q", "").await;
    assert!(both.stats("q").await.paused.is_none());

    assert!(both.store.pause(queue("q"), "ours".into()).await.unwrap());
    assert_eq!(inspector.act("queue", "q", "").await["paused"], true);
    let refused = inspector.ask(json!({"op": "pause", "queue": "q"})).await.unwrap_err();
    assert!(refused["error"].as_str().unwrap().contains("already paused"), "{refused}");
    inspector.act("unpause", "q", "").await;
    // A reason of ours does not come back with a pause of theirs.
    both.until_next_second().await;
    inspector.act("pause", "q", "").await;
    assert_eq!(both.stats("q").await.paused.unwrap().reason, "");
    assert!(both.store.resume(queue("q")).await.unwrap());
    assert_eq!(inspector.act("queue", "q", "").await["paused"], false);
    both.claim_one("a").await;
}

#[tokio::test]
async fn it_removes_our_queues() {
    let Some(both) = Both::start().await else { return };
    in_each_state(&both, "").await;
    let mut inspector = both.go.inspector();
    let remove = |force: bool| json!({"op": "delete_queue", "queue": "q", "force": force});
    assert_eq!(inspector.ask(remove(false)).await.unwrap_err()["kind"], "queue_not_empty");
    assert!(inspector.ask(remove(true)).await.is_err(), "one is active");
    let held = both.task("active").await;
    both.end(&held, done()).await;
    inspector.get(remove(true)).await;
    assert!(both.store.queues().await.unwrap().is_empty());
    let left = both.stats("q").await;
    assert_eq!((left.size(), left.completed, left.processed), (0, 1, 4), "what asynq leaves behind");

    // Ours takes the rest along, and what hung on tasks goes with the next look.
    both.store.remove_queue(queue("q"), true).await.unwrap();
    both.store.reconcile(vec![queue("q")]).await.unwrap();
    assert_eq!(both.keys().await, [""; 0]);
    assert_eq!(both.store.remove_queue(queue("q"), true).await, Err(Error::NoQueue { queue: queue("q") }));
    both.send(vec![both::task("a", "")]).await;
    assert_eq!(
        inspector.get(json!({"op": "queues"})).await,
        json!(["q"]),
        "the next task registers it again"
    );
}
