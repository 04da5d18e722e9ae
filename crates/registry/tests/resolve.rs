//! Who has the last word on a value, and what happens to an override that is no good.

#![allow(clippy::unwrap_used, reason = "what a test cannot unwrap has failed it")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use poolwright_registry::{Loader, Origin, Topology, Warning, report};

const FILE: &str = r#"version = 1
[pools.core-1]
workers = 8
setting = "core.workers"
env = "CORE_WORKERS"
queues = { default = 1 }
[tasks.t]
queue = "default"
timeout = "2h"
timeout_setting = "t.timeout"
timeout_env = "T_TIMEOUT"
[housekeeping]
enabled_setting = "sweep"
enabled_env = "SWEEP"
stale_after = { of = "t", plus = "10m" }
"#;

fn load(settings: &[(&str, &str)], env: &[(&str, &str)]) -> (Topology, Vec<Warning>) {
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let (settings, env) = (map(settings), map(env));
    Loader::new().settings(&settings).env(&|name| env.get(name).cloned()).parse("queues.toml", FILE).unwrap()
}

fn workers(settings: &[(&str, &str)], env: &[(&str, &str)]) -> (usize, Origin, Vec<String>) {
    let (topology, warnings) = load(settings, env);
    let workers = topology.pool("core-1").unwrap().workers.clone();
    (workers.value, workers.origin, warnings.iter().map(ToString::to_string).collect())
}

const OURS: &str = "POOLWRIGHT_POOL_CORE_1_WORKERS";

#[test]
fn settings_beat_our_variable_which_beats_the_declared_one_which_beats_the_file() {
    let setting = [("core.workers", "5")];
    let both = [(OURS, "6"), ("CORE_WORKERS", "7")];
    assert_eq!(workers(&setting, &both), (5, Origin::Settings("core.workers".into()), vec![]));
    assert_eq!(workers(&[], &both), (6, Origin::Env(OURS.into()), vec![]));
    assert_eq!(workers(&[], &both[1..]), (7, Origin::Env("CORE_WORKERS".into()), vec![]));
    assert_eq!(workers(&[], &[]), (8, Origin::File { line: 3 }, vec![]));
}

#[test]
fn a_bad_override_falls_back_to_the_file_and_not_to_the_next_source() {
    for bad in ["many", "0", "-1", "10001", "1.5", "99999999999999999999", "\"x\""] {
        let (value, origin, warnings) = workers(&[("core.workers", bad)], &[(OURS, "6")]);
        assert_eq!((value, origin), (8, Origin::File { line: 3 }), "{bad}");
        let shown = bad.trim_matches('"');
        assert_eq!(
            warnings,
            [format!(
                "setting core.workers is `{shown}`, expected a number of workers from 1 to 10000; \
                 `pools.core-1.workers` stays 8 (line 3 of queues.toml)"
            )]
        );
    }
    let (value, _, warnings) = workers(&[], &[(OURS, "six"), ("CORE_WORKERS", "7")]);
    assert_eq!(value, 8);
    assert!(warnings[0].starts_with("variable POOLWRIGHT_POOL_CORE_1_WORKERS is `six`"), "{warnings:?}");
}

#[test]
fn blank_overrides_say_nothing_and_quoted_numbers_are_numbers() {
    assert_eq!(workers(&[("core.workers", " ")], &[(OURS, "")]), (8, Origin::File { line: 3 }, vec![]));
    assert_eq!(workers(&[("core.workers", "\"12\"")], &[]).0, 12);
    assert_eq!(workers(&[], &[(OURS, " 9\n")]).0, 9);
}

#[test]
fn a_variable_for_a_pool_that_does_not_exist_is_warned_of() {
    let file = FILE.replace("\"CORE_WORKERS\"", "\"POOLWRIGHT_POOL_ALL_WORKERS\"");
    let warned = |names: &[&str], value: &str| -> Vec<String> {
        let list = || names.iter().map(|name| (*name).to_owned()).collect();
        let env = |name: &str| names.contains(&name).then(|| value.to_owned());
        let loader = Loader::new().env(&env).env_names(&list);
        let (_, warnings) = loader.parse("queues.toml", &file).unwrap();
        warnings.iter().map(ToString::to_string).collect()
    };
    let near = "POOLWRIGHT_POOL_CROE_1_WORKERS";
    let far = "POOLWRIGHT_POOL_MAIL_WORKERS";
    assert_eq!(
        warned(&[near, far], "6"),
        [
            format!("variable `{near}` is set, and no pool obeys it, did you mean `{OURS}`?"),
            format!("variable `{far}` is set, and no pool obeys it"),
        ]
    );
    // A pool's own, a declared one, and what has another form.
    let obeyed = [OURS, "POOLWRIGHT_POOL_ALL_WORKERS"];
    assert_eq!(warned(&obeyed, "6"), [""; 0]);
    assert_eq!(warned(&["POOLWRIGHT_POOL_WORKERS", "POOLWRIGHT_POOLS", "MAIL_WORKERS"], "6"), [""; 0]);
    // What is blank says nothing.
    assert_eq!(warned(&[near], " "), [""; 0]);
}

#[test]
fn another_environment_forgets_the_names_of_the_first() {
    let name = "POOLWRIGHT_POOL_MAIL_WORKERS";
    let names = || vec![name.to_owned()];
    let all = |_: &str| Some("6".to_owned());
    let loader = Loader::new().env_names(&names).env(&all);
    let (_, warnings) = loader.parse("queues.toml", FILE).unwrap();
    assert!(!warnings.iter().any(|warning| warning.message.contains(name)), "{warnings:?}");
}

#[test]
fn a_timeout_in_force_moves_the_stale_threshold() {
    let stale = |env: &[(&str, &str)]| {
        let (topology, warnings) = load(&[], env);
        let timeout = topology.task_type("t").unwrap().timeout.clone();
        (timeout.value, timeout.origin, topology.housekeeping().stale.as_ref().unwrap().after, warnings.len())
    };
    let hours = |n: u64| Duration::from_secs(n * 3_600);
    let ten = Duration::from_secs(600);
    assert_eq!(stale(&[]), (hours(2), Origin::File { line: 9 }, hours(2) + ten, 0));
    let env = Origin::Env("T_TIMEOUT".into());
    assert_eq!(stale(&[("T_TIMEOUT", "5h0m0s")]), (hours(5), env, hours(5) + ten, 0));
    // Only the file may lift the limit; a threshold could not outlast it.
    assert_eq!(stale(&[("T_TIMEOUT", "0s")]), (hours(2), Origin::File { line: 9 }, hours(2) + ten, 1));
    assert_eq!(
        load(&[("t.timeout", "3h")], &[("T_TIMEOUT", "5h")]).0.task_type("t").unwrap().timeout.as_secs(),
        10_800
    );
}

#[test]
fn housekeeping_is_switched_by_the_usual_words() {
    for (word, enabled) in
        [("0", false), ("False", false), ("OFF", false), ("no", false), ("1", true), ("yes", true)]
    {
        let (topology, warnings) = load(&[], &[("SWEEP", word)]);
        assert_eq!((*topology.housekeeping().enabled, warnings.len()), (enabled, 0), "{word}");
    }
    let (topology, warnings) = load(&[("sweep", "perhaps")], &[]);
    assert!(*topology.housekeeping().enabled);
    assert_eq!(
        warnings[0].message,
        "setting sweep is `perhaps`, expected true or false (also 1, on, yes, 0, off, no); \
         `housekeeping.enabled` stays true (default)"
    );
}

#[test]
fn the_report_names_the_source_that_won() {
    let (topology, _) = load(&[], &[(OURS, "6"), ("SWEEP", "off")]);
    let rows: Vec<_> = report(&topology)
        .iter()
        .filter(|row| matches!(row.origin, Origin::Env(_)))
        .map(|row| (row.path.as_str(), row.value.as_str(), row.origin.to_string()))
        .collect();
    assert_eq!(
        rows,
        [
            ("pools.core-1.workers", "6", format!("variable {OURS}")),
            ("housekeeping.enabled", "false", "variable SWEEP".to_owned()),
        ]
    );
    assert_eq!(
        serde_json::to_value(report(&topology).last()).unwrap(),
        serde_json::json!({
            "path": "housekeeping.stale_after", "value": "2h10m", "origin": { "file": { "line": 15 } },
        })
    );
}

/// A file that says something about every key; a key that no check reads would be missing from its report.
const EVERYTHING: &str = r#"version = 1
[limits]
payload = "2MiB"
[runtime]
lease = "20s"
heartbeat = "2s"
grace = "1m"
stop_grace = "3s"
max_stall = "1h"
[pools.core]
label = "Core"
workers = 8
setting = "core.workers"
env = "CORE"
threads = 2
queues = { a = 1 }
[pools.shared]
workers = 1
borrows = { a = 2 }
borrow = "when_home_is_full"
[queue_defaults]
producers = "poolwright"
archive_max = 5
archive_for = "1d"
[queues.a]
label = "A"
description = "a queue"
stored = "low"
[retry.grow]
kind = "exponential"
base = "1s"
factor = 3
jitter = 0.5
max = "1m"
[retry.line]
kind = "linear"
step = "1s"
max = "1m"
[retry.stairs]
kind = "steps"
delays = ["1s"]
[retry.same]
kind = "fixed"
delay = "1s"
[task_defaults]
cancel = ["scope"]
[tasks.t]
queue = "a"
label = "T"
description = "a type"
id = "{f}"
timeout_setting = "t.timeout"
timeout_env = "T"
protected = true
max_retry = 1
timeout = "1m"
deadline = "1h"
delay = "1s"
retention = "1h"
unique_for = "1h"
payload = "1KiB"
retry = "same"
on_error = { crashed = "line" }
on_cancel = "retry"
on_conflict = "replace_finished"
on_exhausted = "fail_subject"
max_crashes = 1
max_deferrals = 1
tenant = "tenant"
subject = { s = "s" }
scopes = { c = "c" }
shows = ["s"]
fields = ["f"]
[housekeeping]
enabled = false
enabled_setting = "sweep"
enabled_env = "SWEEP"
schedule = "@hourly"
stale_after = { of = "t", plus = "1m", at_least = "1h" }
"#;

#[test]
fn every_key_of_the_file_reaches_the_report() {
    let (topology, _) = Topology::parse("queues.toml", EVERYTHING).unwrap();
    let reported: BTreeSet<String> = report(&topology)
        .iter()
        .filter(|row| matches!(row.origin, Origin::File { .. }))
        .map(|row| row.path.clone())
        .collect();
    let mut keys = Vec::new();
    leaves(&poolwright_registry::schema(), "", &mut keys);
    for key in keys {
        let pattern: Vec<&str> = key.split('.').collect();
        let fits = |path: &str| {
            let parts: Vec<&str> = path.split('.').collect();
            parts.len() == pattern.len()
                && parts.iter().zip(&pattern).all(|(part, key)| *key == "*" || part == key)
        };
        assert!(reported.iter().any(|path| fits(path)), "no row for {key}: {reported:#?}");
    }
}

/// The keys that hold values, with `*` for names of one's own; defaults show up where they are taken.
fn leaves(schema: &serde_json::Value, path: &str, keys: &mut Vec<String>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for variant in schema["oneOf"].as_array().into_iter().flatten() {
        leaves(variant, path, keys);
    }
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let map_of_tables = inner["additionalProperties"]["type"] == "object"
            || inner["additionalProperties"]["oneOf"][0]["type"] == "object";
        if name.ends_with("_defaults") || name == "version" {
            continue;
        } else if map_of_tables {
            leaves(&inner["additionalProperties"], &format!("{}.*", below(name)), keys);
        } else if inner["properties"].is_object() {
            leaves(inner, &below(name), keys);
        } else {
            keys.push(below(name));
        }
    }
}
