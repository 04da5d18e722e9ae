//! `dead-letters`.

use poolwright::core::{Class, DeadLetter, Scope, Tenant};
use serde_json::{Value, json};

use crate::stage::{STORE, Stage, claim, keys};

/// Fails tasks of these types for good, one after another, as a worker would; their letters have the numbers 1, 2, …
fn stage(types: &[&str]) -> Stage {
    let stage = Stage::new();
    for (n, task_type) in types.iter().enumerate() {
        stage.enqueue(task_type, &format!("task-{n}"));
    }
    stage.store(async |stores| {
        for n in 0..types.len() {
            let task = claim(stores, "default").await;
            let class = if n == 0 { Class::Permanent } else { Class::Transient };
            let mut letter = DeadLetter::of(&task, class, &format!("failure {n}"), stores.broker.now());
            letter.scopes = vec![Scope::new("knowledge_base", format!("kb_{n}"))];
            letter.tenant = Some(Tenant("4".into()));
            stores.ledger.record(&[letter]).await.unwrap();
        }
    });
    stage
}

fn ids(listing: &Value) -> Vec<i64> {
    listing["letters"].as_array().unwrap().iter().map(|letter| letter["id"].as_i64().unwrap()).collect()
}

#[test]
fn letters_are_listed_newest_first_in_pages() {
    let stage = stage(&["document:process", "manual:process", "document:process"]);
    let first = stage.json(&["dead-letters", "list", "--limit", "2"]);
    assert_eq!((ids(&first), &first["next"]), (vec![3, 2], &json!(2)));
    let second = stage.json(&["dead-letters", "list", "--limit", "2", "--before", "2"]);
    assert_eq!((ids(&second), &second["next"]), (vec![1], &json!(null)));
    let letter = &second["letters"][0];
    for field in
        "task_id queue task_type class last_error fail_count failed_at scope scope_id tenant_id".split(' ')
    {
        assert!(!letter[field].is_null(), "{field}: {letter}");
    }
    let text = stage.run(&["dead-letters", "list", "--limit", "2"]).ok().says("go on with --before 2");
    let text = text.prints("knowledge_base/kb_2").prints("default/task-2").prints("failure 2");
    assert_eq!(text.stdout.lines().count(), 3);
}

#[test]
fn filters_must_all_hold() {
    let stage = stage(&["document:process", "manual:process", "document:process"]);
    let list = |args: &[&str]| ids(&stage.json(&[&["dead-letters", "list"], args].concat()));
    assert_eq!(list(&["--type", "document:process"]), [3, 1]);
    assert_eq!(list(&["--type", "document:process", "--class", "permanent"]), [1]);
    assert_eq!(list(&["--scope", "knowledge_base/kb_1"]), [2]);
    assert_eq!(list(&["--tenant", "4", "--queue", "default", "--unreplayed"]), [3, 2, 1]);
    assert_eq!(list(&["--tenant", "5"]), [0; 0]);
    stage.run(&["dead-letters", "list", "--tenant", "5"]).ok().says("no dead letters");
}

#[test]
fn a_filter_that_can_match_nothing_is_misuse() {
    let stage = stage(&["document:process"]);
    let refused = |args: &[&str], why: &str| {
        stage.run(&[&["dead-letters", "list"], args].concat()).misused().says(why);
    };
    refused(&["--type", "document:proces"], "did you mean `document:process`?");
    refused(&["--queue", "defalt"], "did you mean `default`?");
    refused(&["--class", "transiet"], "transient");
    refused(&["--scope", "kb_7"], "expected KIND/ID");
    refused(&["--limit", "201"], "201 is not in 1..=200");
}

#[test]
fn a_type_that_left_the_file_can_still_be_looked_for() {
    let stage = stage(&["document:process"]);
    stage.write(
        "queues.toml",
        "version = 1\n[pools.p]\nworkers = 1\nqueues = { q = 1 }\n[tasks.t]\nqueue = \"q\"\n",
    );
    assert_eq!(ids(&stage.json(&["dead-letters", "list", "--type", "document:process"])), [1]);
}

#[test]
fn one_letter_is_shown_in_full() {
    let stage = stage(&["document:process"]);
    let letter = stage.json(&["dead-letters", "show", "1"]);
    assert_eq!((&letter["task_id"], &letter["class"]), (&json!("task-0"), &json!("permanent")));
    assert_eq!(letter["shown"], json!({ "knowledge_id": "kn_1" }));
    let text = stage.run(&["dead-letters", "show", "1"]).ok();
    text.prints("failure 0").prints("kb_0").prints("kn_1");
    stage.run(&["dead-letters", "show", "2"]).failed().says("no dead letter 2");
    stage.run(&["dead-letters", "show", "0"]).misused().says("0 is not in 1..");
}

#[test]
fn a_letter_is_replayed_once_unless_somebody_insists() {
    let stage = stage(&["document:process"]);
    let done = stage.json(&["dead-letters", "replay", "1"]);
    assert_eq!(keys(&done), ["refused", "replayed", "tasks"]);
    assert_eq!((&done["replayed"], &done["tasks"][0]["queue"]), (&json!(1), &json!("default")));
    let id = done["tasks"][0]["id"].as_str().unwrap();
    let task = stage.record("default", id).unwrap();
    assert_eq!(&task.payload[..], br#"{"knowledge_id":"kn_1"}"#);
    let again = stage.run(&["dead-letters", "replay", "1"]).failed();
    again.says("dead letter 1 was replayed already, as task default/").says("--again insists");
    stage.run(&["dead-letters", "replay", "1", "--again"]).ok().prints("dead letter 1 goes on as default/");
    stage.run(&["dead-letters", "show", "1"]).ok().prints("replayed");
}

#[test]
fn one_letter_that_is_refused_does_not_stop_the_others() {
    let stage = stage(&["document:process", "document:process"]);
    let ran = stage.run(&["--json", "dead-letters", "replay", "1", "9", "2"]).failed();
    let ran = ran.says("dead letter 9 was not replayed: no dead letter 9");
    let report = ran.json();
    assert_eq!((&report["replayed"], &report["refused"][0]["letter"]), (&json!(2), &json!(9)));
}

#[test]
fn all_that_match_are_replayed() {
    let stage = stage(&["document:process", "manual:process", "document:process"]);
    let replay = ["dead-letters", "replay", "--all", "--type", "document:process"];
    assert_eq!(stage.json(&replay), json!({ "replayed": 2, "refused": [] }));
    stage.run(&replay).ok().prints("nothing was replayed\n");
    stage.run(&["dead-letters", "replay", "--all"]).ok().prints("1 dead letter goes on\n");
    assert_eq!(ids(&stage.json(&["dead-letters", "list", "--unreplayed"])), [0; 0]);
}

#[test]
fn what_is_to_be_replayed_must_be_said_one_way() {
    let stage = stage(&["document:process"]);
    let refused = |args: &[&str], why: &str| {
        stage.run(&[&["dead-letters", "replay"], args].concat()).misused().says(why);
    };
    refused(&[], "replay --all");
    refused(&["1", "--all"], "cannot be used with");
    refused(&["1", "--type", "document:process"], "cannot be used with");
    refused(&["--type", "document:process"], "replay --all");
    refused(&["--all", "--again"], "cannot be used with");
    refused(&["--all", "--type", "document:proces"], "did you mean");
    assert_eq!(ids(&stage.json(&["dead-letters", "list", "--unreplayed"])), [1]);
}

#[test]
fn letters_are_deleted_by_number() {
    let stage = stage(&["document:process", "document:process"]);
    let ran = stage.run(&["dead-letters", "delete", "1", "7"]).failed().says("there is no dead letter 7");
    assert_eq!(ran.stdout, "dead letter 1 is deleted\n");
    assert_eq!(stage.json(&["dead-letters", "delete", "2"]), json!({ "deleted": [2], "missing": [] }));
    assert_eq!(ids(&stage.json(&["dead-letters", "list"])), [0; 0]);
    assert!(stage.record("default", "task-0").is_some(), "the failed task stays");
}

#[test]
fn a_ledger_apart_is_named_and_not_made_by_looking() {
    let stage = stage(&["document:process"]);
    let missing = stage.run(&["dead-letters", "list", "--ledger", "sqlite://letters.db"]).failed();
    missing
        .says("there is no ledger at sqlite://letters.db; workers make it when they start, and --ledger or POOLWRIGHT_LEDGER_URL names another");
    assert!(!stage.path("letters.db").exists());
    stage.store_at(&stage.path("letters.db"), async |_| ());
    let apart = stage
        .run_in(&[("POOLWRIGHT_LEDGER_URL", "sqlite://letters.db")], &["--json", "dead-letters", "list"]);
    assert_eq!(ids(&apart.ok().json()), [0; 0]);
    let same = format!("sqlite://{STORE}");
    assert_eq!(ids(&stage.json(&["dead-letters", "list", "--ledger", &same])), [1]);
}
