//! `check` and `schema`.

use serde_json::json;

use crate::stage::{STORE, Stage, keys};

const GOOD: &str = "version = 1\n[pools.mail]\nworkers = 4\nsetting = \"mail.workers\"\nqueues = { mail = 1 }\n\
                    [tasks.\"mail:send\"]\nqueue = \"mail\"\n";
const BAD: &str = "version = 1\n[pools.mail]\nworkrs = 4\nqueues = { mail = 0 }\n";

#[test]
fn without_a_file_the_preset_is_checked_and_that_is_said() {
    let stage = Stage::new();
    let ran = stage.run(&["check"]).ok();
    let ran = ran.says("there is no queues.toml here, the built-in preset is used");
    let ran = ran.says("built-in preset holds: 6 pools, 11 queues, 21 task types");
    let row = ran.stdout.lines().find(|line| line.starts_with("pools.core.workers ")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((words[1], words[3]), ("line", "8"), "{row}");
    assert!(stage.names().is_empty(), "checking made something: {:?}", stage.names());
}

#[test]
fn a_file_that_is_here_is_checked_as_json() {
    let stage = Stage::new();
    stage.write("queues.toml", GOOD);
    let ran = stage.run(&["check", "--json"]).ok();
    assert!(!ran.stderr.contains("preset"), "{ran:?}");
    let checked = ran.json();
    assert_eq!(keys(&checked), ["file", "problems", "rows", "types_without_handler", "warnings"]);
    assert_eq!(checked["file"], "queues.toml");
    assert_eq!(checked["types_without_handler"], json!(["mail:send"]));
    let rows = checked["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["path"] == "pools.mail.workers").unwrap();
    assert_eq!(
        *row,
        json!({ "path": "pools.mail.workers", "value": "4", "origin": { "file": { "line": 3 } } })
    );
    assert!(rows.iter().any(|row| row["origin"] == "default"));
}

#[test]
fn types_without_a_handler_here_are_a_note() {
    let stage = Stage::new();
    let checked = stage.json(&["check"]);
    let silent = checked["types_without_handler"].as_array().unwrap();
    assert!(
        silent.contains(&json!("kb:clone")) && !silent.contains(&json!("document:process")),
        "{silent:?}"
    );
    stage.run(&["check"]).ok().says("kb:clone");
}

#[test]
fn what_overrides_the_file_is_shown_with_its_name() {
    let stage = Stage::new();
    stage.write("queues.toml", GOOD);
    let good = stage.run_in(&[("POOLWRIGHT_POOL_MAIL_WORKERS", "9")], &["check", "--json"]).ok().json();
    let row =
        good["rows"].as_array().unwrap().iter().find(|row| row["path"] == "pools.mail.workers").unwrap();
    assert_eq!(
        (&row["value"], &row["origin"]),
        (&json!("9"), &json!({ "env": "POOLWRIGHT_POOL_MAIL_WORKERS" }))
    );
    let bad = stage.run_in(&[("POOLWRIGHT_POOL_MAIL_WORKERS", "many")], &["check", "--json"]).ok();
    let bad = bad.says("warning: ").says("POOLWRIGHT_POOL_MAIL_WORKERS");
    assert_eq!(bad.json()["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn settings_of_the_ledger_count_once_there_is_one() {
    let stage = Stage::new();
    stage.write("queues.toml", GOOD);
    stage.enqueue("mail:send", "a");
    stage.store(async |stores| stores.ledger.set("mail.workers".into(), "7".into()).await.unwrap());
    let ran = stage.run(&["check"]).ok();
    let row = ran.stdout.lines().find(|line| line.starts_with("pools.mail.workers ")).unwrap();
    assert!(row.contains("setting mail.workers") && row.ends_with(" 7"), "{row}");
    assert_eq!(stage.json(&["pools"])[0]["concurrency"], 7);
    let apart = stage.run(&["check", "--ledger", "sqlite://other.db"]).ok();
    assert!(!apart.stdout.contains("setting mail.workers"));
    assert_eq!(stage.names(), [".poolwright", "queues.toml"]);
}

#[test]
fn mistakes_fail_the_check_and_are_all_told_with_their_cure() {
    let stage = Stage::new();
    stage.write("queues.toml", BAD);
    let ran = stage.run(&["check"]).failed();
    assert_eq!(ran.stdout, "");
    let ran = ran.says("unknown key `workrs`, did you mean `workers`?").says("queues.toml:3:1");
    assert!(!ran.stderr.contains('\u{1b}'), "colours where nobody looks: {ran:?}");
    let json = stage.run(&["check", "--json"]).failed().json();
    let problems = json["problems"].as_array().unwrap();
    assert!(problems.len() >= 2, "{problems:?}");
    assert_eq!((&problems[0]["line"], &problems[0]["column"]), (&json!(2), &json!(1)));
    assert_eq!(json["rows"], json!([]));
}

#[test]
fn with_a_mistaken_file_no_other_command_does_anything() {
    let stage = Stage::new();
    stage.write("queues.toml", BAD);
    for args in [&["queues"][..], &["enqueue", "mail:send", "--payload", "{}"], &["enqueue", "--from", "-"]] {
        stage.run(args).misused().says("did you mean `workers`?");
    }
    assert_eq!(stage.names(), ["queues.toml"]);
    assert!(!stage.path(STORE).exists());
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let stage = Stage::new();
    stage.run(&["check", "--config", "mine.toml"]).misused().says("cannot read mine.toml");
    stage.run_in(&[("POOLWRIGHT_CONFIG", "mine.toml")], &["check"]).misused().says("cannot read mine.toml");
    stage.write("mine.toml", GOOD);
    stage.run_in(&[("POOLWRIGHT_CONFIG", "mine.toml")], &["check"]).ok().says("mine.toml holds: 1 pools");
}

#[test]
fn the_schema_is_json_with_and_without_asking() {
    let stage = Stage::new();
    let schema = stage.run(&["schema"]).ok().json();
    assert_eq!(schema["title"], "queues.toml");
    assert!(schema["properties"]["pools"].is_object());
    assert_eq!(stage.json(&["schema"]), schema);
}

#[test]
fn a_variable_for_a_pool_that_is_not_there_is_warned_of() {
    let stage = Stage::new();
    let ran = stage.run_in(&[("POOLWRIGHT_POOL_COER_WORKERS", "3")], &["check"]).ok();
    ran.says("`POOLWRIGHT_POOL_COER_WORKERS` is set, and no pool obeys it, did you mean `POOLWRIGHT_POOL_CORE_WORKERS`?");
    let ran = stage.run_in(&[("POOLWRIGHT_POOL_CORE_WORKERS", "3")], &["check"]).ok();
    assert!(!ran.stderr.contains("no pool obeys it"), "{ran:?}");
}
