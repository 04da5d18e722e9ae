//! Commands that act on a task or a queue.

use poolwright::core::{Class, Settlement, State};
use serde_json::json;

use crate::stage::{Stage, claim, settle};

#[test]
fn a_task_that_waits_is_run_now() {
    let stage = Stage::new();
    stage.run(&["enqueue", "document:process", "--payload", "{}", "--id", "a", "--delay", "1h"]).ok();
    stage.run(&["run-now", "default", "a"]).ok().prints("default/a is pending (was scheduled)\n");
    assert_eq!(stage.record("default", "a").unwrap().state, State::Pending);
    let again = stage.run(&["run-now", "default", "a"]).failed();
    again.says("task default/a is pending: run_now is not possible, allowed are: cancel, archive, delete");
}

#[test]
fn an_act_prints_the_state_before_it_as_json() {
    let stage = Stage::new();
    stage.enqueue("faq:import", "a");
    let archived = stage.json(&["archive", "low", "a", "--reason", "not now"]);
    assert_eq!(archived, json!({ "id": "a", "queue": "maintenance", "was": "pending" }));
    let run = stage.json(&["run-now", "maintenance", "a"]);
    assert_eq!(run, json!({ "id": "a", "queue": "maintenance", "was": "archived" }));
    let deleted = stage.json(&["delete", "maintenance", "a"]);
    assert_eq!(deleted, json!({ "id": "a", "queue": "maintenance", "was": "pending" }));
    assert_eq!(stage.record("low", "a"), None);
}

#[test]
fn an_archived_task_keeps_the_reason() {
    let stage = Stage::new();
    stage.enqueue("document:process", "a");
    stage.run(&["archive", "default", "a", "--reason", "the customer left"]).ok();
    let task = stage.json(&["task", "default", "a"]);
    assert_eq!(
        (&task["last_error"], &task["last_error_class"]),
        (&json!("the customer left"), &json!("operator"))
    );
    stage.run(&["archive", "default", "b"]).misused().says("--reason <TEXT>");
    stage.run(&["archive", "default", "b", "--reason", ""]).misused().says("a value is required");
}

#[test]
fn a_cancel_says_what_it_came_to() {
    let stage = Stage::new();
    stage.enqueue("document:process", "runs");
    stage.enqueue("document:process", "waits");
    stage.enqueue("kb:delete", "protected");
    stage.store(async |stores| claim(stores, "default").await);
    let waits = stage.json(&["cancel", "default", "waits"]);
    assert_eq!(waits, json!({ "id": "waits", "queue": "default", "outcome": "deleted" }));
    stage.run(&["cancel", "default", "waits"]).failed().says("default/waits is not there");
    stage
        .run(&["cancel", "default", "runs"])
        .ok()
        .prints("default/runs runs, and its worker is told to end it\n");
    stage.run(&["task", "default", "runs"]).ok().prints("active, its end was asked for");
    stage.run(&["cancel", "maintenance", "protected"]).failed().says("is protected by the file of queues");
    stage.run(&["delete", "maintenance", "protected"]).failed().says("is protected");
    assert!(stage.record("low", "protected").is_some());
}

#[test]
fn what_has_ended_is_not_cancelled() {
    let stage = Stage::new();
    stage.enqueue("document:process", "a");
    let archive = Settlement::Archive { error: "no text".into(), class: Class::Permanent };
    stage.store(async |stores| settle(stores, "default", archive).await);
    stage.run(&["cancel", "default", "a"]).failed().says("has ended already");
    stage.run(&["delete", "default", "a"]).ok().prints("default/a is deleted (was archived)");
    stage.run(&["delete", "default", "a"]).failed().says("no task a in queue default");
}

#[test]
fn a_queue_is_paused_and_resumed_by_either_of_its_names() {
    let stage = Stage::new();
    stage.enqueue("faq:import", "a");
    let paused = stage.json(&["pause", "low", "--reason", "moving house"]);
    let expected =
        json!({ "queue": "maintenance", "paused": true, "paused_reason": "moving house", "changed": true });
    assert_eq!(paused, expected);
    stage.run(&["pause", "maintenance", "--reason", "again"]).ok().prints("maintenance was paused already");
    stage.run(&["queues"]).ok().prints("again");
    stage.run(&["resume", "maintenance"]).ok().prints("maintenance is resumed\n");
    assert_eq!(
        stage.json(&["resume", "low"]),
        json!({ "queue": "maintenance", "paused": false, "changed": false })
    );
    stage.run(&["pause", "maintenence", "--reason", "x"]).misused().says("did you mean `maintenance`?");
    stage.run(&["pause", "maintenance"]).misused().says("--reason <TEXT>");
}
