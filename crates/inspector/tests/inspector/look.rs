//! What an operator sees.

use std::time::Duration;

use crate::stage::{START, Stage, document, typed};
use poolwright_broker::{Error as StoreError, Find};
use poolwright_core::{Class, State, Subject, TaskId};
use poolwright_inspector::{Action, Error, PAGE_SIZE, PAGE_SIZE_MAX};
use serde_json::json;

#[tokio::test]
async fn every_queue_of_the_file_has_a_row_and_unknown_ones_follow() {
    let stage = Stage::new();
    stage.put("elsewhere", "a", State::Pending).await;
    let queues = stage.inspector.queues().await.unwrap();
    let names: Vec<&str> = queues.iter().map(|queue| queue.name.as_str()).collect();
    assert_eq!(names, ["default", "maintenance", "elsewhere"]);
    let (default, low, other) = (&queues[0], &queues[1], &queues[2]);
    assert_eq!((default.label.as_str(), default.weight), ("Documents", 2));
    assert_eq!(
        (default.pool.as_ref().unwrap().as_str(), default.borrowed_by[0].as_str()),
        ("core", "shared")
    );
    assert_eq!((low.stored.as_str(), low.size), ("low", 0));
    assert_eq!((other.pool.as_ref(), other.weight, other.pending), (None, 0, 1));
}

#[tokio::test]
async fn a_queue_is_told_in_numbers() {
    let stage = Stage::new();
    for state in
        [State::Completed, State::Archived, State::Retry, State::Scheduled, State::Active, State::Pending]
    {
        stage.put("default", state.as_str(), state).await;
    }
    stage.clock.advance(Duration::from_millis(1_500));
    stage.inspector.pause("default", "the disk is full").await.unwrap();
    let queue = stage.inspector.queue("default").await.unwrap();
    let counts = [queue.pending, queue.active, queue.scheduled, queue.retry, queue.archived, queue.completed];
    assert_eq!(counts, [1; 6]);
    assert_eq!((queue.size, queue.latency_ms), (5, 1_500));
    assert_eq!((queue.processed, queue.failed, queue.processed_total, queue.failed_total), (3, 2, 3, 2));
    assert_eq!(queue.paused_reason.as_deref(), Some("the disk is full"));
    let json = serde_json::to_value(&queue).unwrap();
    assert_eq!(json["paused"], true);
    assert_eq!(json["paused_since"], "2030-03-17T17:46:41.500Z");
}

#[tokio::test]
async fn history_names_its_days() {
    let stage = Stage::new();
    stage.put("low", "a", State::Archived).await;
    let days = stage.inspector.history("maintenance", 2).await.unwrap();
    assert_eq!((days[0].date.as_str(), days[0].processed, days[0].failed), ("2030-03-17", 1, 1));
    assert_eq!((days[1].date.as_str(), days[1].processed), ("2030-03-16", 0));
}

#[tokio::test]
async fn a_queue_goes_by_either_name_and_a_wrong_one_is_told() {
    let stage = Stage::new();
    stage.put("low", "a", State::Pending).await;
    for name in ["maintenance", "low"] {
        assert_eq!(
            stage.inspector.tasks(name, State::Pending, 0, None).await.unwrap().tasks.len(),
            1,
            "{name}"
        );
        assert_eq!(stage.inspector.task((name, "a")).await.unwrap().queue, "maintenance");
    }
    let error = stage.inspector.queue("defualt").await.unwrap_err();
    assert_eq!(error.to_string(), "unknown queue `defualt`, did you mean `default`?");
    assert!(error.is_not_found());
}

#[tokio::test]
async fn a_view_shows_what_the_file_allows_of_the_payload_and_no_more() {
    let stage = Stage::new();
    let key = stage.put("default", "a", State::Retry).await;
    let view = stage.inspector.task(&key).await.unwrap();
    let json = serde_json::to_value(&view).unwrap();
    assert_eq!(
        json,
        json!({
            "id": "a", "queue": "default", "type": "document:process", "state": "retry",
            "allowed_actions": ["cancel", "run_now", "archive", "delete"],
            "last_error": "boom", "last_error_class": "transient", "last_failed_at": START.to_string(),
            "next_process_at": (START + Duration::from_secs(30)).to_string(),
            "retried": 1, "max_retry": 25, "enqueued_at": START.to_string(),
            "knowledge_id": "kn_1", "knowledge_count": 2,
        })
    );
}

#[tokio::test]
async fn a_type_that_the_file_does_not_know_shows_nothing_of_its_payload() {
    let stage = Stage::new();
    let key = stage.put_task(typed("default", "a", "unheard:of"), State::Completed).await;
    let view = stage.inspector.task(&key).await.unwrap();
    assert!(view.shown.is_empty());
    assert_eq!(view.allowed_actions, [Action::RunNow, Action::Delete]);
    assert_eq!((view.completed_at, view.expires_at), (Some(START), Some(START + Duration::from_secs(3_600))));
    assert!(!serde_json::to_string(&view).unwrap().contains("done"), "a result is not shown");
}

#[tokio::test]
async fn a_running_task_names_its_worker_and_an_orphan_is_marked() {
    let stage = Stage::new();
    let key = stage.put("default", "a", State::Active).await;
    stage.beat("core", 42, 8, false, std::slice::from_ref(&key)).await;
    let view = stage.inspector.task(&key).await.unwrap();
    assert_eq!(
        (view.worker.as_deref(), view.started_at, view.is_orphaned),
        (Some("host:42"), Some(START), false)
    );
    let page = stage.inspector.tasks("default", State::Active, 0, None).await.unwrap();
    assert_eq!(page.tasks, [view]);
    stage.clock.advance(Duration::from_secs(11));
    let view = stage.inspector.task(&key).await.unwrap();
    assert_eq!((view.worker, view.is_orphaned), (None, true));
}

#[tokio::test]
async fn pages_follow_one_another_to_the_end() {
    let stage = Stage::new();
    for n in 0..5 {
        stage.put("default", &format!("t{n}"), State::Pending).await;
    }
    let first = stage.inspector.tasks("default", State::Pending, 2, None).await.unwrap();
    let ids =
        |tasks: &[poolwright_inspector::TaskView]| tasks.iter().map(|t| t.id.to_string()).collect::<Vec<_>>();
    assert_eq!(
        (ids(&first.tasks), first.has_more, first.page_size),
        (vec!["t4".into(), "t3".into()], true, 2)
    );
    let second =
        stage.inspector.tasks("default", State::Pending, 3, first.next_cursor.clone()).await.unwrap();
    assert_eq!((ids(&second.tasks).len(), second.has_more, second.next_cursor), (3, false, None));
    let error = stage.inspector.tasks("default", State::Archived, 2, first.next_cursor).await.unwrap_err();
    assert!(matches!(error, Error::Store(StoreError::BadCursor { .. })));
}

#[tokio::test]
async fn a_page_size_is_brought_into_its_bounds() {
    let stage = Stage::new();
    let size =
        async |asked| stage.inspector.tasks("default", State::Pending, asked, None).await.unwrap().page_size;
    assert_eq!((size(0).await, size(7).await, size(u32::MAX).await), (PAGE_SIZE, 7, PAGE_SIZE_MAX));
}

#[tokio::test]
async fn an_id_alone_is_searched_in_every_queue() {
    let stage = Stage::new();
    stage.put("low", "only", State::Archived).await;
    stage.put("elsewhere", "far", State::Pending).await;
    assert_eq!(stage.inspector.task("only").await.unwrap().queue, "maintenance");
    assert_eq!(stage.inspector.task(&TaskId::new("far").unwrap()).await.unwrap().queue, "elsewhere");
    assert_eq!(stage.inspector.task("none").await.unwrap_err().to_string(), "no task none in any queue");
    stage.put("default", "only", State::Pending).await;
    assert_eq!(
        stage.inspector.task("only").await.unwrap_err().to_string(),
        "task only is in several queues (default, low), say which one"
    );
}

#[tokio::test]
async fn a_task_that_is_not_there_is_told() {
    let stage = Stage::new();
    let error = stage.inspector.task(("maintenance", "none")).await.unwrap_err();
    assert_eq!(error.to_string(), "no task none in queue low");
    assert!(error.is_not_found());
    assert!(matches!(stage.inspector.task("").await, Err(Error::Name(_))));
}

#[tokio::test]
async fn a_raw_record_has_everything() {
    let stage = Stage::new();
    let key = stage.put("default", "a", State::Completed).await;
    let task = stage.inspector.raw(&key).await.unwrap();
    assert!(task.payload.windows(6).any(|bytes| bytes == b"s3cret"));
    assert_eq!(task.result.as_deref(), Some(&b"\"done\""[..]));
}

#[tokio::test]
async fn tasks_of_a_subject_are_found() {
    let stage = Stage::new();
    let mut task = document("default", "a");
    task.subjects.push(Subject::new("knowledge", "kn_1"));
    let key = stage.put_task(task, State::Archived).await;
    stage.put("default", "b", State::Pending).await;
    let found = stage.inspector.find(Find::Subject(Subject::new("knowledge", "kn_1")), 10).await.unwrap();
    assert_eq!((&found.tasks[0].key, found.tasks[0].state, found.tasks.len()), (&key, State::Archived, 1));
    let json = serde_json::to_value(&found).unwrap();
    let task = json!({ "id": "a", "queue": "default", "type": "document:process", "state": "archived" });
    assert_eq!(json, json!({ "tasks": [task], "complete": true }));
}

#[tokio::test]
async fn pools_add_up_over_live_processes() {
    let stage = Stage::new();
    let key = stage.put("default", "a", State::Active).await;
    stage.beat("core", 1, 8, false, std::slice::from_ref(&key)).await;
    stage.beat("core", 2, 8, false, &[]).await;
    stage.beat("core", 3, 8, true, &[]).await;
    stage.beat("old", 4, 2, false, &[]).await;
    let pools = stage.inspector.pools().await.unwrap();
    let names: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["core", "upkeep", "shared", "old"]);
    let core = &pools[0];
    assert_eq!((core.instances, core.cluster_capacity, core.active, core.concurrency), (2, 16, 1, 8));
    assert!((core.utilization - 0.0625).abs() < f64::EPSILON);
    assert_eq!((pools[1].instances, pools[1].utilization, pools[3].concurrency), (0, 0.0, 0));
    let servers = stage.inspector.servers().await.unwrap();
    assert_eq!((servers.len(), servers[0].status, servers[2].status), (4, "active", "stopping"));
    assert_eq!((servers[0].tasks[0].id.as_str(), servers[0].tasks[0].queue.as_str()), ("a", "default"));
}

#[tokio::test]
async fn an_archived_task_says_what_ended_it() {
    let stage = Stage::new();
    let key = stage.put("default", "a", State::Archived).await;
    let view = stage.inspector.task(&key).await.unwrap();
    assert_eq!((view.last_error.as_deref(), view.last_error_class), (Some("no use"), Some(Class::Permanent)));
}
