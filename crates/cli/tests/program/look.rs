//! Commands that look: queues, tasks, pools, servers, history.

use std::time::Duration;

use poolwright::broker::{PoolBeat, RunningTask, ServerBeat, ServerId};
use poolwright::core::{Charge, Class, Settlement};
use serde_json::json;

use crate::stage::{Stage, claim, keys, settle};

fn failing(error: &str) -> Settlement {
    Settlement::Retry {
        after: Duration::from_secs(3_600),
        error: error.into(),
        class: Class::Transient,
        charge: Charge::Retry,
    }
}

#[test]
fn looking_makes_no_store_and_says_how_one_is_made() {
    let stage = Stage::new();
    for args in [
        &["queues"][..],
        &["tasks", "default", "--state", "pending"],
        &["task", "default", "a"],
        &["pools"],
        &["servers"],
        &["history", "default"],
        &["dead-letters", "list"],
        &["run-now", "default", "a"],
        &["pause", "default", "--reason", "x"],
    ] {
        let ran = stage.run(args).failed();
        assert_eq!(ran.stdout, "", "{args:?}");
        ran.says("there is no store at sqlite://.poolwright/tasks.db; `poolwright enqueue` and `poolwright demo` make one");
    }
    assert!(stage.names().is_empty(), "{:?}", stage.names());
}

#[test]
fn queues_are_those_of_the_file_in_its_order() {
    let stage = Stage::new();
    stage.enqueue("document:process", "a");
    stage.run(&["pause", "default", "--reason", "the disk is full"]).ok();
    let queues = stage.json(&["queues"]);
    assert_eq!(queues.as_array().unwrap().len(), 11);
    let default = &queues[0];
    assert_eq!(
        (&default["name"], &default["pool"], &default["pending"]),
        (&json!("default"), &json!("core"), &json!(1))
    );
    assert_eq!((&default["paused"], &default["paused_reason"]), (&json!(true), &json!("the disk is full")));
    for field in
        "weight size active scheduled retry archived completed processed failed latency_ms".split(' ')
    {
        assert!(default[field].is_u64(), "{field}: {default}");
    }
    let ran = stage.run(&["queues"]).ok();
    let head: Vec<&str> = ran.stdout.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(head[..3], ["QUEUE", "POOL", "PENDING"]);
    let row = ran.stdout.lines().nth(1).unwrap();
    assert!(
        row.starts_with("default ") && row.contains("paused") && row.ends_with("the disk is full"),
        "{row}"
    );
    assert!(
        ran.stdout.lines().all(|line| line.trim_end() == line),
        "blanks at the end of a line: {}",
        ran.stdout
    );
}

#[test]
fn tasks_come_in_pages() {
    let stage = Stage::new();
    for id in ["a", "b", "c"] {
        stage.enqueue("document:process", id);
    }
    let list = ["tasks", "default", "--state", "pending", "--limit", "2"];
    let first = stage.json(&list);
    assert_eq!(keys(&first), ["has_more", "next_cursor", "page_size", "tasks"]);
    assert_eq!(first["has_more"], true);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = stage.json(&[&list[..], &["--cursor", cursor]].concat());
    assert_eq!((&second["has_more"], second["tasks"].as_array().unwrap().len()), (&json!(false), 1));
    let ids: Vec<_> = [&first, &second].iter().flat_map(|page| page["tasks"].as_array().unwrap()).collect();
    assert_eq!(ids.iter().map(|task| task["id"].as_str().unwrap()).collect::<Vec<_>>(), ["c", "b", "a"]);
    let text = stage.run(&list).ok().says(&format!("there are more; go on with --cursor {cursor}"));
    assert_eq!(text.stdout.lines().count(), 3);
}

#[test]
fn a_list_without_tasks_is_empty_and_a_note() {
    let stage = Stage::new();
    stage.enqueue("document:process", "a");
    let ran = stage.run(&["tasks", "wiki", "--state", "archived"]).ok().says("no archived tasks in wiki");
    assert_eq!(ran.stdout, "");
    let page = stage.json(&["tasks", "wiki", "--state", "archived"]);
    assert_eq!((&page["tasks"], &page["has_more"]), (&json!([]), &json!(false)));
}

#[test]
fn each_state_has_its_columns() {
    let stage = Stage::new();
    for id in ["retry", "archived", "completed", "active", "pending"] {
        stage.enqueue("document:process", id);
    }
    stage.run(&["enqueue", "document:process", "--payload", "{}", "--id", "scheduled", "--delay", "1h"]).ok();
    stage.store(async |stores| {
        settle(stores, "default", failing("the model is away")).await;
        let archive = Settlement::Archive { error: "no text".into(), class: Class::Permanent };
        settle(stores, "default", archive).await;
        let complete = Settlement::Complete { retain_for: Duration::from_secs(7_200), result: None };
        settle(stores, "default", complete).await;
        claim(stores, "default").await;
    });
    let row = |state: &str| {
        let ran = stage.run(&["tasks", "default", "--state", state]).ok();
        let mut lines = ran.stdout.lines();
        let head = lines.next().unwrap().to_owned();
        let rows: Vec<String> = lines.map(str::to_owned).collect();
        assert_eq!(rows.len(), 1, "{ran:?}");
        assert!(rows[0].starts_with(state), "{ran:?}");
        (head, rows[0].clone())
    };
    assert!(row("pending").0.contains("ENQUEUED"));
    assert!(row("active").0.contains("WORKER"));
    let (head, scheduled) = row("scheduled");
    assert!(head.contains("DUE") && scheduled.contains(" in "), "{scheduled}");
    let (head, retry) = row("retry");
    assert!(head.contains("NEXT TRY") && retry.contains("transient") && retry.ends_with("the model is away"));
    let (_, archived) = row("archived");
    assert!(archived.contains("permanent") && archived.ends_with("no text"), "{archived}");
    assert!(row("completed").0.ends_with("EXPIRES"));
}

#[test]
fn a_task_is_shown_with_what_the_file_allows_of_its_payload() {
    let stage = Stage::new();
    let payload = r#"{"tenant_id":4,"knowledge_id":"kn_1","secret":"s3cr3t"}"#;
    stage.run(&["enqueue", "document:process", "--payload", payload, "--id", "a"]).ok();
    let task = stage.json(&["task", "default", "a"]);
    assert_eq!(
        (&task["id"], &task["type"], &task["state"]),
        (&json!("a"), &json!("document:process"), &json!("pending"))
    );
    assert_eq!(task["allowed_actions"], json!(["cancel", "archive", "delete"]));
    assert_eq!((&task["tenant_id"], &task["knowledge_id"]), (&json!(4), &json!("kn_1")));
    let text = stage.run(&["task", "default", "a"]).ok().prints("cancel, archive, delete").prints("kn_1");
    assert!(!text.stdout.contains("s3cr3t") && !task.to_string().contains("s3cr3t"));
}

#[test]
fn an_error_of_many_lines_is_cut_in_lists_and_whole_in_the_task() {
    let stage = Stage::new();
    stage.enqueue("document:process", "a");
    let error = format!("日本語のエラー\n\u{1b}[2Jsecond line\u{202e}\n{}", "👩‍👩‍👧‍👦".repeat(200));
    stage.store(async |stores| settle(stores, "default", failing(&error)).await);
    let list = stage.run(&["tasks", "default", "--state", "retry"]).ok();
    assert_eq!(list.stdout.lines().count(), 2, "{list:?}");
    assert!(list.stdout.trim_end().ends_with('…') && list.stdout.contains("日本語のエラー"), "{list:?}");
    let task = stage.run(&["task", "default", "a"]).ok().prints("second line");
    for text in [&list.stdout, &task.stdout] {
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text:?}");
    }
    assert_eq!(stage.json(&["task", "default", "a"])["last_error"], json!(error), "JSON has it to the byte");
}

#[test]
fn what_is_not_there_fails_and_what_cannot_be_is_misuse() {
    let stage = Stage::new();
    stage.enqueue("document:process", "a");
    stage.run(&["task", "default", "b"]).failed().says("no task b in queue default");
    stage.run(&["task", "defalt", "a"]).misused().says("unknown queue `defalt`, did you mean `default`?");
    stage.run(&["tasks", "defalt", "--state", "pending"]).misused().says("did you mean `default`?");
    stage.run(&["history", "defalt"]).misused().says("did you mean `default`?");
    stage.run(&["task", "default", "\u{7}"]).misused().says("control characters");
    let cursor = stage.run(&["tasks", "default", "--state", "pending", "--cursor", "xyz"]);
    cursor.misused().says("not a cursor of this list: xyz");
}

#[test]
fn a_queue_that_only_the_store_knows_is_shown_too() {
    let stage = Stage::new();
    stage.enqueue("document:process", "a");
    stage.write(
        "queues.toml",
        "version = 1\n[pools.p]\nworkers = 1\nqueues = { q = 1 }\n[tasks.t]\nqueue = \"q\"\n",
    );
    let queues = stage.json(&["queues"]);
    assert_eq!(
        (&queues[1]["name"], &queues[1]["pool"], &queues[1]["pending"]),
        (&json!("default"), &json!(null), &json!(1))
    );
    stage.run(&["queues"]).ok().prints("not in the file of queues");
    assert_eq!(stage.json(&["task", "default", "a"])["queue"], "default");
}

#[test]
fn pools_and_servers_show_who_lives() {
    let stage = Stage::new();
    stage.enqueue("document:process", "a");
    assert_eq!(stage.json(&["servers"]), json!([]));
    stage.run(&["servers"]).ok().says("no live worker process");
    stage.run(&["pools"]).ok().says("no live process runs a pool");
    stage.store(async |stores| {
        let task = claim(stores, "default").await;
        let at = stores.broker.now();
        let pool: poolwright::core::PoolName = "core".to_owned().try_into().unwrap();
        let beat = ServerBeat {
            id: ServerId("host:7:x".into()),
            host: "host".into(),
            pid: 7,
            started_at: at,
            beat_at: at,
            stopping: false,
            pools: vec![PoolBeat { pool: pool.clone(), workers: 8, busy: 1, stalled: 0, queues: vec![] }],
            tasks: vec![RunningTask {
                key: task.key,
                task_type: task.task_type,
                pool,
                started_at: at,
                stalled: true,
            }],
        };
        stores.broker.beat(beat, Duration::from_secs(3_600)).await.unwrap();
    });
    let core = &stage.json(&["pools"])[0];
    assert_eq!((&core["name"], &core["instances"], &core["active"]), (&json!("core"), &json!(1), &json!(1)));
    assert_eq!((&core["cluster_capacity"], &core["utilization"]), (&json!(8), &json!(0.125)));
    stage.run(&["pools"]).ok().prints("12 %");
    let server = &stage.json(&["servers"])[0];
    assert_eq!(
        (&server["host"], &server["pid"], &server["status"]),
        (&json!("host"), &json!(7), &json!("active"))
    );
    assert_eq!(server["tasks"][0]["id"], "a");
    stage.run(&["servers"]).ok().prints("core 1/8").prints("default/a").prints("stalled");
    assert_eq!(stage.json(&["task", "default", "a"])["worker"], "host:7");
}

#[test]
fn a_history_has_a_row_for_each_day() {
    let stage = Stage::new();
    stage.enqueue("document:process", "a");
    stage.store(async |stores| settle(stores, "default", failing("boom")).await);
    let days = stage.json(&["history", "default", "--days", "3"]);
    assert_eq!(days.as_array().unwrap().len(), 3);
    assert_eq!(keys(&days[0]), ["date", "failed", "processed"]);
    // The attempt ended today, unless midnight has passed since.
    let failed: u64 = days.as_array().unwrap().iter().map(|day| day["failed"].as_u64().unwrap()).sum();
    assert_eq!(failed, 1);
    assert_eq!(stage.run(&["history", "default"]).ok().stdout.lines().count(), 15);
}
