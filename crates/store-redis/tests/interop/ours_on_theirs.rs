//! Our inspection of what is Go's: every state of its tasks, waiting groups included, is shown, run, archived and deleted, and
//! asynq's inspector agrees.

use poolwright_broker::{Bulk, BulkAction, CancelOutcome, Inspect, Upkeep};
use poolwright_core::{Class, State, When};
use serde_json::{Value, json};

use crate::both::{Both, MINUTE, done, key, queue};

/// A Go task in each state, named for it; the active one waits in a worker, which is given.
async fn in_each_state(both: &Both) -> crate::go::Process {
    let mut tasks = [
        json!({"id": "active", "payload_json": {"do": "wait"}, "retention_ms": 60_000}),
        json!({"id": "retry", "payload_json": {"do": "fail", "error": "boom"}}),
        json!({"id": "archived", "payload_json": {"do": "skip_retry"}, "unique_ms": 600_000}),
        json!({"id": "completed", "payload_json": {"result": "r"}, "retention_ms": 60_000}),
        json!({"id": "scheduled", "process_in_ms": 60_000}),
        json!({"id": "grouped", "group": "g", "payload": "member", "unique_ms": 600_000}),
    ];
    for task in &mut tasks {
        task["type"] = json!("t");
        task["queue"] = json!("q");
    }
    both.go.enqueue(&tasks).await;
    let worker = both.go.worker(&["--queues", "q", "--retry-delay", "1h"]).await;
    worker.event("start", "active").await;
    let mut inspector = both.go.inspector();
    for state in ["retry", "archived", "completed"] {
        inspector.until_state("q", state, state).await;
    }
    // A worker that only waits takes nothing of what comes later.
    inspector.act("pause", "q", "").await;
    both.go.enqueue(&[json!({"type": "t", "queue": "q", "id": "pending"})]).await;
    worker
}

#[tokio::test]
async fn each_state_of_theirs_is_shown() {
    let Some(both) = Both::start().await else { return };
    let worker = in_each_state(&both).await;
    for state in State::ALL {
        assert_eq!(both.page("q", state).await, [state.as_str()]);
        let task = both.task(state.as_str()).await;
        assert_eq!(task.state, state);
        assert_eq!(task.due.is_some(), matches!(state, State::Scheduled | State::Retry), "{task:?}");
        assert_eq!(task.lease_until.is_some(), state == State::Active, "{task:?}");
        assert_eq!(task.expires_at.is_some(), state == State::Completed, "{task:?}");
        assert_eq!(task.completed_at.is_some(), state == State::Completed, "{task:?}");
        assert_eq!(task.failed.is_some(), matches!(state, State::Retry | State::Archived), "{task:?}");
    }
    assert_eq!(both.task("completed").await.result.as_deref(), Some(&b"r"[..]));
    let failed = both.task("retry").await.failed.unwrap();
    assert_eq!((failed.error.as_ref(), failed.class), ("boom", Class::Transient));
    let stats = both.stats("q").await;
    assert_eq!(State::ALL.map(|state| stats.count(state)), [1; 6]);
    assert_eq!((stats.processed, stats.failed, stats.quarantined), (3, 2, 0));
    let grouped = both.task("grouped").await;
    assert_eq!((grouped.state, &grouped.payload[..], grouped.due), (State::Scheduled, &b"member"[..], None));
    assert!(grouped.unique.is_some());
    let servers = both.store.servers().await.unwrap();
    assert_eq!((servers.len(), servers[0].pid, servers[0].pools[0].workers), (1, worker.pid, 10));
    assert_eq!(servers[0].pools[0].queues[0].queue, queue("q"));
    let running = crate::both::until("a heartbeat with its task", async || {
        both.store.servers().await.unwrap().remove(0).tasks.pop()
    });
    assert_eq!(running.await.key, key("q", "active"));
}

#[tokio::test]
async fn what_we_run_and_delete_of_theirs_is_so_for_them() {
    let Some(both) = Both::start().await else { return };
    let _worker = in_each_state(&both).await;
    let mut inspector = both.go.inspector();
    for id in ["scheduled", "retry", "archived", "completed"] {
        assert_eq!(both.store.run_now(key("q", id)).await.unwrap().as_str(), id);
        let shown = inspector.act("task", "q", id).await;
        assert_eq!(shown["state"], "pending", "{id}");
    }
    assert_eq!(both.store.run_now(key("q", "grouped")).await.unwrap(), State::Scheduled);
    assert_eq!(inspector.act("groups", "q", "").await, json!({}));
    let front_first = ["pending", "scheduled", "retry", "archived", "completed", "grouped"];
    assert_eq!(inspector.ids("q", "pending").await, front_first);
    assert!(inspector.act("queue", "q", "").await["latency_ms"].as_i64().unwrap() < 60_000);
    for id in front_first {
        both.store.delete(key("q", id)).await.unwrap();
        assert_eq!(inspector.state("q", id).await, "task_not_found");
    }
    let keys = both.keys().await;
    assert!(!keys.iter().any(|key| key.contains(":unique:")), "{keys:?}");
    assert!(both.store.delete(key("q", "active")).await.is_err());
    assert_eq!(
        both.store.request_cancel(vec![key("q", "active")]).await.unwrap(),
        [CancelOutcome::Signalled]
    );
}

#[tokio::test]
async fn what_we_archive_and_change_of_theirs_is_so_for_them() {
    let Some(both) = Both::start().await else { return };
    let _worker = in_each_state(&both).await;
    let mut inspector = both.go.inspector();
    both.store.update_payload(key("q", "pending"), "ours".into()).await.unwrap();
    both.store.reschedule(key("q", "scheduled"), When::After(10 * MINUTE)).await.unwrap();
    assert_eq!(inspector.act("task", "q", "pending").await["payload"], "ours");
    let next = inspector.act("task", "q", "scheduled").await["next_process_at_ms"].as_i64().unwrap();
    assert_eq!(next, both.task("scheduled").await.due.unwrap().as_millis());
    for id in ["pending", "scheduled", "retry", "completed", "grouped"] {
        both.store.archive(key("q", id), "by hand".into()).await.unwrap();
        let shown = inspector.act("task", "q", id).await;
        assert_eq!((&shown["state"], &shown["last_error"]), (&json!("archived"), &json!("by hand")), "{id}");
    }
    assert_eq!(inspector.act("queue", "q", "").await["archived"], 6);
    let all = Bulk {
        queue: queue("q"),
        state: State::Archived,
        action: BulkAction::Delete,
        limit: 100,
        reason: String::new(),
    };
    assert_eq!(both.store.bulk(all).await.unwrap(), 6);
    let numbers = inspector.act("queue", "q", "").await;
    assert_eq!(
        (&numbers["size"], &numbers["active"], &numbers["completed"]),
        (&json!(1), &json!(1), &json!(0))
    );
}

/// Groups are asynq's alone: ours shows them beside its lists, acts on their tasks, and is in their way nowhere.
#[tokio::test]
async fn waiting_groups_are_shown_and_in_nobodys_way() {
    let Some(both) = Both::start().await else { return };
    let member = |id: &str| json!({"type": "t", "queue": "q", "id": id, "payload": id, "group": "g:1"});
    both.go.enqueue(&["a", "b", "c", "d"].map(member)).await;
    both.store.promote_due(vec![queue("q")], 10).await.unwrap();
    both.store.reconcile(vec![queue("q")]).await.unwrap();
    for state in State::ALL {
        assert!(both.page("q", state).await.is_empty());
    }
    let shown = async || {
        let groups = both.store.groups(&queue("q")).await.unwrap();
        groups.into_iter().map(|group| (group.name, group.waiting)).collect::<Vec<_>>()
    };
    assert_eq!(shown().await, [("g:1".to_owned(), 4)]);
    let waiting = both.store.tasks_of_group(&queue("q"), "g:1", 10).await.unwrap();
    assert_eq!(crate::both::ids(&waiting), ["a", "b", "c", "d"]);
    assert_eq!(&waiting[3].payload[..], b"d");
    both.store.run_now(key("q", "a")).await.unwrap();
    both.store.delete(key("q", "b")).await.unwrap();
    let mut inspector = both.go.inspector();
    let aggregating = json!({"op": "list", "queue": "q", "state": "aggregating", "group": "g:1"});
    let listed = inspector.get(aggregating).await;
    assert_eq!((&listed[0]["id"], &listed[1]["id"], &listed[2]), (&json!("c"), &json!("d"), &Value::Null));
    assert_eq!(inspector.act("groups", "q", "").await, json!({"g:1": 2}));
    let task = both.claim_one("a").await;
    both.end(&task, done()).await;

    let args =
        ["--queues", "q", "--group-type", "all", "--group-grace", "1s", "--task-check-interval", "20ms"];
    let worker = both.go.worker(&args).await;
    let taken = worker.heard.line(|line| line["event"] == "aggregate").await;
    assert_eq!((&taken["group"], &taken["count"]), (&json!("g:1"), &json!(2)));
    worker.heard.line(|line| line["event"] == "end" && line["type"] == "all").await;
    worker.stop().await;
    assert_eq!(shown().await, []);
    let left = both.keys().await;
    assert!(left.iter().all(|key| !key.contains(":g")), "{left:?}");
}
