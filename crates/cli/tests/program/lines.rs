//! `enqueue --from`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use poolwright::core::State;
use serde_json::{Value, json};

use crate::stage::{STORE, Stage};

fn pending(stage: &Stage, queue: &str) -> u64 {
    let queues = stage.json(&["queues"]);
    let queues = queues.as_array().unwrap();
    queues.iter().find(|row| row["name"] == queue).unwrap()["pending"].as_u64().unwrap()
}

#[test]
fn each_line_is_a_task_and_their_order_is_kept() {
    let stage = Stage::new();
    let lines: String = (0..250)
        .map(|n| format!("{{\"type\":\"document:process\",\"payload\":{{\"n\":{n}}},\"id\":\"task-{n}\"}}\n"))
        .collect();
    stage.write("tasks.jsonl", lines);
    let ran = stage.run(&["enqueue", "--from", "tasks.jsonl"]).ok().says("250 enqueued, 0 refused");
    let expected: String = (0..250).map(|n| format!("default/task-{n} pending\n")).collect();
    assert_eq!(ran.stdout, expected);
    assert_eq!(pending(&stage, "default"), 250);
}

#[test]
fn options_and_payload_arrive_as_they_stand_in_the_line() {
    let stage = Stage::new();
    let line = r#"{"payload": {"z":1, "a":123456789012345678901234567890} , "type":"document:process", "id":"a",
        "max_retry":9,"unique-for":"1h","header":{"k":"v"},"delay":"1h","queue":"summary"}"#;
    let ran = stage.run_on(line.replace('\n', " "), &["--json", "enqueue", "--from", "-"]).ok();
    let expected = json!([{
        "line": 1, "id": "a", "queue": "summary", "type": "document:process", "state": "scheduled", "how": "stored"
    }]);
    assert_eq!(ran.json(), expected);
    let task = stage.record("summary", "a").unwrap();
    assert_eq!(&task.payload[..], br#"{"z":1, "a":123456789012345678901234567890}"#);
    assert_eq!((task.max_retry, task.headers["k"].as_str(), task.unique.is_some()), (9, "v", true));
}

/// Ten lines, of which the 2nd, 3rd, 5th, 6th, 8th and 9th are wrong, and the 4th is blank.
const MIXED: &[u8] = b"{\"type\":\"document:process\",\"payload\":1,\"id\":\"a\"}
{\"type\":\"document:process\",\"paylod\":{}}
{\"type\":\"document:proces\",\"payload\":{}}

not json
{\"type\":\"document:process\",\"payload\":{},\"id\":\"a\"}
{\"type\":\"document:process\",\"payload\":2,\"id\":\"b\"}
\xff\xfe
{\"type\":\"document:process\",\"payload\":{},\"delay\":90}
{\"type\":\"document:process\",\"payload\":3,\"id\":\"c\"}";

#[test]
fn a_bad_line_is_told_by_its_number_and_stops_no_other() {
    let stage = Stage::new();
    stage.write("tasks.jsonl", MIXED);
    let ran = stage.run(&["enqueue", "--from", "tasks.jsonl"]).failed();
    assert_eq!(ran.stdout, "default/a pending\ndefault/b pending\ndefault/c pending\n");
    let said: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("warning: ")).collect();
    let expected = [
        "line 2 was not enqueued: unknown key `paylod`, did you mean `payload`?",
        "line 3 was not enqueued: unknown task type `document:proces`, did you mean `document:process`?",
        "line 5 was not enqueued: expected ident at column 2",
        "line 6 was not enqueued: task id a already exists in queue default (pending)",
        "line 8 was not enqueued: the line is no UTF-8: ",
        "line 9 was not enqueued: `delay` is a text such as \"90s\", and this is 90",
    ];
    assert_eq!(said.len(), expected.len(), "{said:#?}");
    for (said, expected) in said.iter().zip(expected) {
        assert!(said.contains(expected), "expected `{expected}`, got `{said}`");
    }
    let ran = ran.says("3 enqueued, 6 refused");
    assert!(!ran.stderr.contains("error:"), "{ran:?}");
}

#[test]
fn as_json_every_line_has_one_outcome() {
    let stage = Stage::new();
    let ran = stage.run_on(MIXED, &["enqueue", "--json", "--from", "-"]).failed();
    let outcomes = ran.json();
    let outcomes = outcomes.as_array().unwrap();
    let lines: Vec<u64> = outcomes.iter().map(|outcome| outcome["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [1, 2, 3, 5, 6, 7, 8, 9, 10]);
    let has_error = |outcome: &&Value| outcome["error"].is_string();
    assert_eq!(outcomes.iter().filter(has_error).count(), 6);
    assert!(outcomes.iter().all(|outcome| has_error(&outcome) != outcome["id"].is_string()));
}

#[test]
fn nothing_to_enqueue_is_an_empty_list() {
    let stage = Stage::new();
    let ran = stage.run_on("\n  \n", &["enqueue", "--json", "--from", "-"]).ok();
    assert_eq!(ran.json(), json!([]));
    stage.run_on("", &["enqueue", "--from", "-"]).ok().says("0 enqueued, 0 refused");
}

#[test]
fn a_line_of_a_slow_pipe_does_not_wait_for_the_next() {
    let stage = Stage::new();
    let mut command = stage.command(&["enqueue", "--from", "-"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for id in ["a", "b"] {
        writeln!(input, r#"{{"type":"document:process","payload":{{}},"id":"{id}"}}"#).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, format!("default/{id} pending\n"));
        assert_eq!(stage.record("default", id).unwrap().state, State::Pending);
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_store_that_fails_stops_the_reading_and_says_where() {
    let stage = Stage::new();
    let line = |n: usize| {
        format!("{{\"type\":\"document:process\",\"payload\":\"{}\",\"id\":\"{n}\"}}\n", "x".repeat(5_000))
    };
    stage.write("tasks.jsonl", (0..1_000).map(line).collect::<String>());
    let small = format!("sqlite://{STORE}?file_bytes_max=1000000");
    let ran = stage.run(&["enqueue", "--from", "tasks.jsonl", "--broker", &small]).failed();
    let stored = ran.stdout.lines().count();
    assert!(stored < 1_000, "the limit was not met");
    let ran = ran.says("the store failed at line ").says("no room for").says("no later line was read");
    assert_eq!(pending(&stage, "default"), stored as u64, "{ran:?}");
}

#[test]
fn a_file_excludes_what_is_said_of_one_task() {
    let stage = Stage::new();
    stage.run(&["enqueue", "--from", "none.jsonl"]).misused().says("none.jsonl cannot be read");
    for args in [&["document:process"][..], &["--payload", "{}"], &["--delay", "1s"], &["--header", "a=b"]] {
        let ran = stage.run(&[&["enqueue", "--from", "-"], args].concat());
        ran.misused().says("cannot be used with");
    }
    assert!(stage.names().is_empty());
}

#[test]
fn what_a_line_says_cannot_move_the_cursor_of_who_reads_its_refusal() {
    let stage = Stage::new();
    let line = r#"{"type":"document:process","payload":1,"queue":"\u001b[2Jdefault"}"#;
    let ran = stage.run_on(line, &["enqueue", "--from", "-"]).failed().says("unknown queue");
    assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");
}
