//! `enqueue` of one task.

use std::time::Duration;

use poolwright::core::{State, Timestamp};
use serde_json::json;

use crate::stage::{STORE, Stage, keys};

#[test]
fn a_task_is_stored_and_its_place_is_printed() {
    let stage = Stage::new();
    let ran = stage.run(&["enqueue", "document:process", "--payload", r#"{"knowledge_id":"kn_1"}"#]).ok();
    let (place, state) = ran.stdout.trim_end().split_once(' ').unwrap();
    let (queue, id) = place.split_once('/').unwrap();
    assert_eq!((queue, state), ("default", "pending"));
    let task = stage.record("default", id).unwrap();
    assert_eq!((task.state, &task.payload[..]), (State::Pending, &br#"{"knowledge_id":"kn_1"}"#[..]));
    assert_eq!(task.max_retry, 3, "the rules of the type hold");
}

#[test]
fn the_json_names_the_task_as_other_commands_do() {
    let stage = Stage::new();
    let taken = stage.json(&["enqueue", "faq:import", "--payload", "{}", "--id", "a b"]);
    assert_eq!(keys(&taken), ["how", "id", "queue", "state", "type"]);
    let expected = json!({ "id": "a b", "queue": "maintenance", "type": "faq:import", "state": "pending", "how": "stored" });
    assert_eq!(taken, expected, "the queue is named as in the file, not by its stored name");
}

#[test]
fn every_option_reaches_the_task() {
    let stage = Stage::new();
    let options = "--id x --at 2099-12-31T23:59:59Z --unique-for 1h --retention 1d --header a=1 --header b= \
                   --max-retry 7 --timeout 90s --queue summary";
    let args =
        ["enqueue", "document:process", "--payload", "[1]"].into_iter().chain(options.split_whitespace());
    stage.run(&args.collect::<Vec<_>>()).ok().prints("summary/x scheduled\n");
    let task = stage.record("summary", "x").unwrap();
    assert_eq!(task.due, Some(Timestamp::from_secs(4_102_444_799)));
    assert_eq!((task.max_retry, task.timeout), (7, Duration::from_secs(90)));
    assert_eq!(task.retention, Duration::from_secs(86_400));
    let headers: Vec<_> = task.headers.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(headers, [("a", "1"), ("b", "")]);
    assert!(task.unique.is_some());
}

#[test]
fn a_delay_counts_from_now() {
    let stage = Stage::new();
    stage.run(&["enqueue", "document:process", "--payload", "1", "--id", "a", "--delay", "1h"]).ok();
    let task = stage.record("default", "a").unwrap();
    assert_eq!(
        (task.state, task.due),
        (State::Scheduled, Some(task.enqueued_at + Duration::from_secs(3_600)))
    );
    stage.run(&["enqueue", "memory:extract", "--payload", "1", "--delay", "0s"]).ok().prints(" pending\n");
}

#[test]
fn a_payload_is_read_from_stdin_without_its_last_line_end() {
    let stage = Stage::new();
    stage.run_on("{\"a\": 1.50}\n", &["enqueue", "document:process", "--payload", "-", "--id", "a"]).ok();
    assert_eq!(&stage.record("default", "a").unwrap().payload[..], b"{\"a\": 1.50}");
    let ran = stage.run_on(b"\xff", &["enqueue", "document:process", "--payload", "-"]);
    ran.misused().says("the payload is no JSON: invalid utf-8");
}

#[test]
fn what_is_refused_makes_no_store() {
    let stage = Stage::new();
    let refused = |args: &[&str], why: &str| {
        stage.run(&[&["enqueue"], args].concat()).misused().says(why);
    };
    refused(
        &["document:proces", "--payload", "{}"],
        "unknown task type `document:proces`, did you mean `document:process`?",
    );
    refused(
        &["document:process", "--payload", "{}", "--queue", "defalt"],
        "unknown queue `defalt`, did you mean `default`?",
    );
    refused(
        &["document:process", "--payload", "{nope"],
        "the payload is no JSON: key must be a string at line 1 column 2",
    );
    refused(&["document:process", "--payload", ""], "the payload is no JSON: EOF while parsing");
    refused(&["document:process"], "--payload <JSON>");
    refused(&["--payload", "{}"], "<TYPE>");
    refused(
        &["document:process", "--payload", "{}", "--delay", "90"],
        "the number 90 has no unit; write it like",
    );
    refused(&["document:process", "--payload", "{}", "--at", "2026-12-01T08:00:00"], "it lacks its offset");
    refused(&["document:process", "--payload", "{}", "--header", "a"], "expected KEY=VALUE");
    refused(
        &["document:process", "--payload", "{}", "--max-retry", "x"],
        "invalid value 'x' for '--max-retry <N>'",
    );
    let both = ["document:process", "--payload", "{}", "--delay", "1s", "--at", "2026-12-01T08:00:00Z"];
    refused(&both, "cannot be used with");
    assert!(stage.names().is_empty(), "{:?}", stage.names());
}

#[test]
fn what_the_rules_of_the_type_forbid_is_refused() {
    let stage = Stage::new();
    stage.write(
        "queues.toml",
        "version = 1\n[pools.p]\nworkers = 1\nqueues = { q = 1 }\n[tasks.t]\nqueue = \"q\"\npayload = \"8B\"\n\
         [tasks.u]\nqueue = \"q\"\nid = \"{n}\"\nfields = [\"n\"]\n",
    );
    stage
        .run(&["enqueue", "t", "--payload", "\"0123456\""])
        .misused()
        .says("has 9 bytes, and at most 8 are allowed");
    stage.run(&["enqueue", "u", "--payload", "{}"]).misused().says("its payload has no `n`");
    stage.run(&["enqueue", "t", "--payload", "1", "--unique-for", "1ms"]).misused().says("at least 1 s");
    stage.run(&["enqueue", "t", "--payload", "1", "--id", " "]).misused().says("must not be empty");
    stage.run(&["enqueue", "u", "--payload", r#"{"n":5}"#]).ok().prints("q/5 pending");
}

#[test]
fn an_id_that_is_taken_and_a_lock_that_is_held_are_failures() {
    let stage = Stage::new();
    stage.enqueue("document:process", "a");
    let again = stage.run(&["enqueue", "document:process", "--payload", "{}", "--id", "a"]).failed();
    again.says("task id a already exists in queue default (pending)");
    let unique = ["enqueue", "document:process", "--payload", "{}", "--unique-for", "1h"];
    stage.run(&unique).ok();
    stage.run(&unique).failed().says("an equal task is already enqueued in queue default");
}

#[test]
fn a_lock_of_no_length_lifts_the_lock_of_the_type_for_this_call() {
    let stage = Stage::new();
    stage.write(
        "queues.toml",
        "version = 1\n[pools.p]\nworkers = 1\nqueues = { q = 1 }\n[tasks.t]\nqueue = \"q\"\nunique_for = \"1h\"\n",
    );
    let enqueue = ["enqueue", "t", "--payload", "1"];
    stage.run(&enqueue).ok();
    stage.run(&enqueue).failed().says("an equal task is already enqueued in queue q");
    stage.run(&[&enqueue[..], &["--unique-for", "0s"]].concat()).ok();
    let line = r#"{"type":"t","payload":1,"unique-for":"0s"}"#;
    stage.run_on(line, &["enqueue", "--from", "-"]).ok();
    assert_eq!(stage.json(&["queues"])[0]["pending"], 3);
    stage.run(&enqueue).failed().says("an equal task is already enqueued in queue q");
}

#[test]
fn a_store_that_is_made_is_told_once_and_never_on_stdout() {
    let stage = Stage::new();
    let enqueue = ["enqueue", "document:process", "--payload", "{}", "--json"];
    let note = format!("note: made a new broker file {STORE}\n");
    let first = stage.run(&enqueue).ok().says(&note);
    assert_eq!(keys(&first.json()), ["how", "id", "queue", "state", "type"]);
    let second = stage.run(&enqueue).ok();
    assert!(!second.stderr.contains("made a new"), "{second:?}");
    let line = r#"{"type":"document:process","payload":1}"#;
    let other = ["enqueue", "--from", "-", "--broker", "sqlite:deep/other.db"];
    stage.run_on(line, &other).ok().says("note: made a new broker file deep/other.db\n");
    let looked = stage.run(&["queues", "--broker", "sqlite:none.db"]).failed();
    assert!(!looked.stderr.contains("made a new"), "{looked:?}");
}

#[test]
fn how_a_request_was_taken_is_said() {
    let stage = Stage::new();
    let finalize = ["enqueue", "wiki:finalize", "--payload", r#"{"knowledge_base_id":"kb_7"}"#];
    stage.run(&finalize).ok().prints("wiki/wiki-finalize-kb_7 scheduled\n");
    stage.run(&finalize).ok().prints("scheduled, one with this id waited already and will do\n");
    assert_eq!(stage.json(&finalize)["how"], "coalesced");
}

#[test]
fn another_store_is_named_by_option_or_variable() {
    let stage = Stage::new();
    let enqueue = ["enqueue", "document:process", "--payload", "{}"];
    stage.run(&[&enqueue[..], &["--broker", "sqlite://deep/er/tasks.db"]].concat()).ok();
    stage.run_in(&[("POOLWRIGHT_BROKER_URL", "sqlite:other.db")], &enqueue).ok();
    assert!(stage.path("deep/er/tasks.db").exists() && stage.path("other.db").exists());
    assert!(!stage.path(STORE).exists());
}

#[test]
fn a_url_that_is_none_of_a_store_is_misuse() {
    let stage = Stage::new();
    let refused = |url: &str, why: &str| {
        let ran = stage.run(&["enqueue", "document:process", "--payload", "{}", "--broker", url]);
        ran.misused().says(why);
    };
    refused("tasks.db", "did you mean `sqlite://tasks.db`?");
    refused("postgres://localhost", "comes with a later release");
    refused("sqlite://t.db?sync=off", "unknown parameter `sync`");
    refused("memory:", "ends with this program; name a file");
    assert!(stage.names().is_empty());
}

#[test]
fn a_store_that_cannot_be_made_or_opened_is_a_failure_and_nothing_is_changed() {
    let stage = Stage::new();
    stage.write("notes.txt", "not a database, and longer than the header of one");
    let failed = |url: &str, why: &str| {
        let ran = stage.run(&["enqueue", "document:process", "--payload", "{}", "--broker", url]);
        ran.failed().says(why);
    };
    failed("sqlite://notes.txt/tasks.db", "cannot open notes.txt/tasks.db");
    failed("sqlite://notes.txt", "is not a SQLite database; it was left as it is");
    failed("sqlite://.", "is a directory; name a file in it");
    // Nobody, not even root, makes a directory there.
    failed("sqlite:///proc/poolwright/tasks.db", "cannot create the directory /proc/poolwright");
    assert_eq!(stage.names(), ["notes.txt"]);
    let kept = std::fs::read_to_string(stage.path("notes.txt")).unwrap();
    assert!(kept.starts_with("not a database"));
}
