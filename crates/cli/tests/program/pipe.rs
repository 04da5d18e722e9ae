//! Readers that go away, and places that cannot be written.

use std::fs::OpenOptions;
use std::io::pipe;
use std::process::Stdio;

use crate::stage::{Ran, Stage, ran};

/// Runs with a stdout that nobody reads.
fn into_a_closed_pipe(stage: &Stage, args: &[&str]) -> Ran {
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    ran(stage.command(args).stdout(writer).stderr(Stdio::piped()).output().unwrap())
}

#[test]
fn a_closed_pipe_is_no_error() {
    let stage = Stage::new();
    stage.enqueue("document:process", "a");
    for args in [&["check"][..], &["schema"], &["queues"], &["queues", "--json"], &["--help"]] {
        let ran = into_a_closed_pipe(&stage, args).ok();
        assert!(!ran.stderr.contains("error") && !ran.stderr.contains("panicked"), "{args:?}: {ran:?}");
    }
}

#[test]
fn a_failure_stays_one_when_nobody_reads() {
    let stage = Stage::new();
    into_a_closed_pipe(&stage, &["queues"]).failed();
    into_a_closed_pipe(&stage, &["check", "--config", "none.toml"]).misused();
}

#[test]
fn tasks_are_enqueued_also_when_nobody_reads_their_ids() {
    let stage = Stage::new();
    let lines: String =
        (0..500).map(|n| format!("{{\"type\":\"document:process\",\"payload\":{n}}}\n")).collect();
    stage.write("tasks.jsonl", lines);
    into_a_closed_pipe(&stage, &["enqueue", "--from", "tasks.jsonl"]).ok().says("500 enqueued, 0 refused");
    assert_eq!(stage.json(&["queues"])[0]["pending"], 500);
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let stage = Stage::new();
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = stage.command(&["check"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    ran(output).failed().says("the result cannot be written: ");
}

#[test]
fn a_closed_stderr_stops_nothing() {
    let stage = Stage::new();
    let (reader, writer) = pipe().unwrap();
    drop(reader);
    let output = stage.command(&["check"]).stderr(writer).stdout(Stdio::piped()).output().unwrap();
    ran(output).ok().prints("pools.core.workers");
}

#[test]
fn no_colours_go_where_no_person_looks() {
    let stage = Stage::new();
    stage.enqueue("document:process", "a");
    stage.run(&["pause", "default", "--reason", "x"]).ok();
    for args in [&["queues"][..], &["check"], &["task", "default", "b"]] {
        let ran = stage.run(args);
        assert!(!ran.stdout.contains('\u{1b}') && !ran.stderr.contains('\u{1b}'), "{ran:?}");
    }
}
