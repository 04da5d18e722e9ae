//! Small runs of the scenarios on Redis, as the command line starts them: every part is played, nothing is lost.

#![allow(clippy::unwrap_used, reason = "a test may fail by panic")]

use std::process::Command;

use serde_json::Value;

/// Runs the program and reads its answer.
fn bench(args: &[&str]) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_poolwright-bench"));
    let output = command.args(args).arg("--json").output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    answer.as_array().unwrap().clone()
}

fn number(outcome: &Value, key: &str) -> f64 {
    outcome[key].as_f64().unwrap_or_else(|| panic!("no {key} in {outcome}"))
}

#[test]
fn a_queue_is_filled_and_drained_by_us_and_by_bare_scripts() {
    for system in ["ours", "bare"] {
        let drained = bench(&["drain", "--tasks", "300", "--system", system]);
        assert!(number(&drained[0], "tasks_per_s") > 0.0);
    }
    assert_eq!(bench(&["enqueue", "--tasks", "200"]).len(), 3);
    assert_eq!(bench(&["enqueue-bare", "--tasks", "200"]).len(), 2);
}

#[test]
fn what_is_sent_at_a_rate_or_with_gaps_or_for_later_is_run_and_never_early() {
    let steady = bench(&["steady", "--rate", "100", "--seconds", "1"]);
    assert!(number(&steady[0], "p50_ms") >= 0.0);
    assert!(number(&bench(&["pickup", "--tasks", "3"])[0], "p99_ms") >= 0.0);
    let due = bench(&["due-lone", "--tasks", "1"]);
    assert_eq!(number(&due[0], "early"), 0.0);
}

#[test]
fn active_tasks_end_and_pending_ones_take_memory() {
    assert_eq!(bench(&["long", "--tasks", "20"]).len(), 4);
    assert!(number(&bench(&["memory", "--tasks", "1000"])[0], "redis_bytes_per_task") > 100.0);
}
