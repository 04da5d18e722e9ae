//! Every mistake is told, at once, at its place and with its cure.

#![allow(clippy::unwrap_used, reason = "what a test cannot unwrap has failed it")]

use poolwright_registry::{Error, Topology};

/// Four lines that need nothing else; what a case adds begins at line 5.
const BASE: &str = "version = 1\n[pools.core]\nworkers = 8\nqueues = { default = 1, mail = 2 }\n";

/// All problems of a text, as `line:column: message`.
fn problems(text: &str) -> Vec<String> {
    match Topology::parse("queues.toml", text) {
        Ok(_) => Vec::new(),
        Err(error) => error.problems().iter().map(ToString::to_string).collect(),
    }
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(problems(text), expected, "\n{text}");
}

/// The same, for what follows the base.
#[track_caller]
fn check_after_base(text: &str, expected: &[&str]) {
    check(&format!("{BASE}{text}"), expected);
}

/// The help of the only problem.
fn help(text: &str) -> String {
    let error = Topology::parse("queues.toml", &format!("{BASE}{text}")).unwrap_err();
    assert_eq!(error.problems().len(), 1, "{error}");
    error.problems()[0].help.clone().unwrap_or_default()
}

#[test]
fn the_base_has_none() {
    check(BASE, &[]);
    check(&format!("\u{feff}{}", BASE.replace('\n', "\r\n")), &[]);
}

#[test]
fn a_file_says_its_version_and_has_a_pool() {
    check(
        "",
        &["1:1: missing `version` at the top of the file", "1:1: missing `pools` at the top of the file"],
    );
    check("version = 1\n[pools]\n", &["2:2: there is no pool"]);
    check("version = 2\nwhatever = 3\n", &["1:11: unknown version `2`, this release reads version 1"]);
    check("version = -1\n", &["1:11: unknown version `-1`, this release reads version 1"]);
    let text = BASE.replace("version = 1", "version = \"1\"");
    check(&text, &["1:11: expected the version 1 for `version`, found the text `1`"]);
    check(&BASE.replace("version = 1\n", ""), &["1:1: missing `version` at the top of the file"]);
}

#[test]
fn unknown_keys_are_told_everywhere_with_what_was_meant() {
    check_after_base(
        "[limits]\npaylaod = \"1MiB\"",
        &["6:1: unknown key `paylaod`, did you mean `payload`?"],
    );
    check_after_base("[runtime]\nleese = \"9s\"", &["6:1: unknown key `leese`, did you mean `lease`?"]);
    check_after_base(
        "[pools.b]\nworker = 1\nborrows = { mail = 1 }",
        &["5:1: missing `workers` in `[pools.b]`", "6:1: unknown key `worker`, did you mean `workers`?"],
    );
    check_after_base("[queues.mail]\nwieght = 3", &["6:1: unknown key `wieght`, did you mean `weight`?"]);
    check_after_base("[queues.mail]\nweight = 3", &["6:1: unknown key `weight` in `[queues.mail]`"]);
    check_after_base(
        "[retry.x]\nkind = \"asynq\"\nbase = \"1s\"",
        &["7:1: unknown key `base` in `[retry.x]`"],
    );
    check_after_base("[task_defaults]\nqueue = \"mail\"", &["6:1: unknown key `queue` in `[task_defaults]`"]);
    check_after_base(
        "[tasks.\"a:b\"]\nqueue = \"mail\"\nmax_retrys = 1",
        &["7:1: unknown key `max_retrys`, did you mean `max_retry`?"],
    );
    check_after_base(
        "[housekeeping]\nstale_after = { off = \"x\" }",
        &[
            "6:15: missing `of` in `[housekeeping.stale_after]`",
            "6:17: unknown key `off`, did you mean `of`?",
        ],
    );
    check_after_base("[\"q\\u001b[31m\"]", &["5:2: unknown key `q\\u{1b}[31m` at the top of the file"]);
    assert_eq!(
        help("[queues.mail]\nwieght = 3"),
        "a queue's weight stands where its pool lists it: `queues = { default = 3 }`"
    );
    assert_eq!(help("[task_defaults]\nqueue = \"mail\""), "`queue` is a key of `[tasks.\"TYPE\"]`");
    assert!(help("[limits]\nsize = 3").starts_with("known keys: `payload`"));
}

#[test]
fn a_queue_has_exactly_one_home_and_only_what_is_owned_is_borrowed() {
    check_after_base(
        "[pools.b]\nworkers = 1\nqueues = { mail = 1 }",
        &["7:12: queue `mail` has two home pools, `core` and `b`"],
    );
    check_after_base("[queues.lonely]", &["5:9: queue `lonely` has no home pool"]);
    check_after_base(
        "[pools.b]\nworkers = 1\nborrows = { mial = 1 }",
        &["7:13: pool `b` borrows queue `mial`, which no pool owns, did you mean `mail`?"],
    );
    check_after_base(
        "[pools.b]\nworkers = 1\nqueues = { x = 1 }\nborrows = { x = 1, mail = 1 }",
        &["8:13: pool `b` both owns and borrows queue `x`"],
    );
    check_after_base("[pools.b]\nworkers = 1", &["5:1: pool `b` has no queues"]);
    check_after_base("[pools.b]\nworkers = 1\nqueues = {}\nborrows = {}", &["5:1: pool `b` has no queues"]);
    check_after_base(
        "[pools.b]\nworkers = 1\nqueues = { x = 1 }\nborrow = \"always\"",
        &["8:1: `borrow` says when pool `b` borrows, but it borrows nothing"],
    );
    assert!(help("[queues.mial]").contains("a pool owns `mail`; is that the same queue?"));
    // Only one problem for a queue that is described, borrowed and used, but not owned.
    check_after_base(
        "[queues.x]\n[pools.b]\nworkers = 1\nborrows = { x = 1 }\n[tasks.t]\nqueue = \"x\"",
        &["5:9: queue `x` has no home pool"],
    );
}

#[test]
fn workers_weights_and_threads_are_within_reason() {
    let workers = |n: &str| format!("version = 1\n[pools.core]\nworkers = {n}\nqueues = {{ default = 1 }}\n");
    for n in ["0", "-1", "10001", "99999999999999999999"] {
        check(
            &workers(n),
            &[&format!("3:11: expected a number of workers from 1 to 10000 for `workers`, found `{n}`")],
        );
    }
    check(
        &workers("8.0"),
        &["3:11: expected a number of workers from 1 to 10000 for `workers`, found `8.0`"],
    );
    check(&workers("0x10"), &[]);
    check(
        &BASE.replace("mail = 2", "mail = 0"),
        &["4:32: expected a weight from 1 to 1000 for `mail`, found `0`"],
    );
    check(
        &BASE.replace("mail = 2", "mail = 1001"),
        &["4:32: expected a weight from 1 to 1000 for `mail`, found `1001`"],
    );
    check_after_base(
        "threads = 0",
        &["5:11: expected a number of threads from 1 to 512 for `threads`, found `0`"],
    );
}

#[test]
fn stored_names_are_one_to_one() {
    check_after_base(
        "[queues.mail]\nstored = \"default\"",
        &["6:10: queues `default` and `mail` have one stored name, `default`"],
    );
    check_after_base(
        "[queues.default]\nstored = \"mail\"",
        &["6:10: queues `mail` and `default` have one stored name, `mail`"],
    );
    check_after_base(
        "[queues.default]\nstored = \"mail\"\n[queues.mail]\nstored = \"post\"",
        &["6:10: queue `default` is stored as `mail`, which is the name of another queue"],
    );
    check_after_base("[queues.default]\nstored = \"low\"", &[]);
}

#[test]
fn two_pools_never_obey_one_variable() {
    check_after_base(
        "[pools.a-b]\nworkers = 1\nborrows = { mail = 1 }\n[pools.a_b]\nworkers = 1\nborrows = { mail = 1 }",
        &["8:8: pools `a-b` and `a_b` would both obey `POOLWRIGHT_POOL_A_B_WORKERS`"],
    );
}

#[test]
fn a_type_has_a_queue_that_exists() {
    check_after_base("[tasks.\"a:b\"]", &["5:1: missing `queue` in `[tasks.\"a:b\"]`"]);
    check_after_base(
        "[tasks.\"a:b\"]\nqueue = \"mial\"",
        &["6:9: unknown queue `mial`, did you mean `mail`?"],
    );
    check_after_base("[tasks.\"a:b\"]\nqueue = \"\"", &["6:9: `queue` names no queue, it is empty"]);
    check_after_base(
        "[queues.mail]\nstored = \"low\"\n[tasks.\"a:b\"]\nqueue = \"low\"",
        &["8:9: unknown queue `low`; queue `mail` is stored under that name"],
    );
}

#[test]
fn policies_and_classes_are_known_ones() {
    check_after_base(
        "[tasks.t]\nqueue = \"mail\"\nretry = \"asinq\"",
        &["7:9: unknown retry policy `asinq`, did you mean `asynq`?"],
    );
    check_after_base("[task_defaults]\nretry = \"mine\"", &["6:9: unknown retry policy `mine`"]);
    check_after_base(
        "[task_defaults]\nretry = \"mine\"\n[tasks.t]\nqueue = \"mail\"\n[tasks.u]\nqueue = \"mail\"",
        &["6:9: unknown retry policy `mine`"],
    );
    check_after_base(
        "[task_defaults]\non_error = { transient = \"mine\", transiet = \"asynq\" }",
        &[
            "6:26: unknown retry policy `mine`",
            "6:34: unknown error class `transiet`, did you mean `transient`?",
        ],
    );
    for (class, why) in [
        ("permanent", "such a task is archived at once"),
        ("undecodable", "such a task is archived at once"),
        ("snoozed", "the handler itself says for how long"),
        ("revoked", "such a task is gone"),
        ("cancelled", "`on_cancel` says what becomes of it"),
        ("needs_operator", "its queue is paused until a person resumes it"),
        ("operator", "it is never retried"),
    ] {
        check_after_base(
            &format!("[task_defaults]\non_error = {{ {class} = \"asynq\" }}"),
            &[&format!("6:14: error class `{class}` takes no retry policy: {why}")],
        );
    }
}

#[test]
fn retry_policies_have_numbers_that_make_sense() {
    let retry = |lines: &str| format!("[retry.x]\n{lines}");
    check_after_base(&retry("base = \"1s\""), &["5:1: missing `kind` in `[retry.x]`"]);
    check_after_base(
        &retry("kind = \"fixd\""),
        &["6:8: unknown word `fixd` for `kind`, did you mean `fixed`?"],
    );
    check_after_base(&retry("kind = \"fixed\""), &["5:1: missing `delay` in `[retry.x]`"]);
    check_after_base(
        &retry("kind = \"fixed\"\ndelay = \"0s\""),
        &["7:9: expected a duration from 1ms to 365d for `delay`, found `0s`"],
    );
    check_after_base(
        &retry("kind = \"exponential\"\nbase = \"2h\"\nfactor = 0.5\njitter = 1.5"),
        &[
            "7:8: `max` (1h) is below the first delay, `base` (2h)",
            "8:10: expected a number from 1 to 100 for `factor`, found `0.5`",
            "9:10: expected a number from 0 to 1 for `jitter`, found `1.5`",
        ],
    );
    check_after_base(
        &retry("kind = \"exponential\"\nbase = \"1s\"\nfactor = nan\njitter = -inf\nmax = \"2h\""),
        &[
            "8:10: expected a number from 1 to 100 for `factor`, found `nan`",
            "9:10: expected a number from 0 to 1 for `jitter`, found `-inf`",
        ],
    );
    check_after_base(&retry("kind = \"exponential\"\nbase = \"1s\"\nfactor = 3"), &[]);
    check_after_base(
        &retry("kind = \"linear\"\nstep = \"5s\"\nmax = \"4s\""),
        &["8:7: `max` (4s) is below the first delay, `step` (5s)"],
    );
    check_after_base(
        &retry("kind = \"steps\"\ndelays = []"),
        &[
            "7:10: expected a list of 1 to 100 durations such as `[\"30s\", \"2m\"]` for `delays`, found an empty list",
        ],
    );
    check_after_base(
        &retry("kind = \"steps\"\ndelays = [\"5s\", \"5s\", 5, \"0s\"]"),
        &[
            "7:23: expected a list of 1 to 100 durations such as `[\"30s\", \"2m\"]` for `delays`, found `5`",
            "7:26: expected a duration from 1ms to 365d for `delays`, found `0s`",
        ],
    );
    check_after_base(
        "[retry.asynq]\nkind = \"fixed\"\ndelay = \"5s\"",
        &["5:8: `asynq` is the built-in policy and cannot be another"],
    );
}

#[test]
fn words_are_those_of_their_key() {
    check_after_base(
        "[queue_defaults]\nproducers = \"everybody\"",
        &["6:13: unknown word `everybody` for `producers`"],
    );
    check_after_base(
        "[task_defaults]\non_cancel = \"discrad\"\non_conflict = \"rejct\"\n\
         on_exhausted = \"fail\"\ncancel = [\"scopes\", \"subject\", \"subject\"]",
        &[
            "6:13: unknown word `discrad` for `on_cancel`, did you mean `discard`?",
            "7:15: unknown word `rejct` for `on_conflict`, did you mean `reject`?",
            "8:16: unknown word `fail` for `on_exhausted`",
            "9:11: unknown word `scopes` for `cancel`, did you mean `scope`?",
            "9:32: `subject` stands twice in `cancel`",
        ],
    );
    check_after_base(
        "borrows = { x = 1 }\nborrow = \"never\"\n[pools.b]\nworkers = 1\nqueues = { x = 1 }",
        &["6:10: unknown word `never` for `borrow`"],
    );
    assert!(help("[queue_defaults]\nproducers = \"all\"").contains("`poolwright`: Only Poolwright clients"));
}

#[test]
fn durations_and_sizes_are_written_with_units() {
    check_after_base(
        "[task_defaults]\ntimeout = 90\ndelay = \"90\"\nretention = \"1.5h\"\ndeadline = \"0s\"\n\
         payload = \"1M\"\nunique_for = \"10ms\"",
        &[
            "6:11: expected a duration such as `\"90s\"` for `timeout`, found `90`",
            "7:9: `90` is no duration: the number 90 has no unit",
            "8:13: `1.5h` is no duration: unknown unit `.`, expected w, d, h, m, s or ms",
            "9:12: expected a duration from 1s to 3650d for `deadline`, found `0s`",
            "10:11: `1M` is no size: unknown unit `M`, expected B, KiB, MiB, GiB, KB, MB or GB",
            "11:14: expected a duration from 1s to 3650d, or 0s (no lock) for `unique_for`, found `10ms`",
        ],
    );
    check_after_base("[limits]\npayload = \"0B\"", &["6:11: `payload` must be at least `1B`, found `0B`"]);
    check_after_base("[limits]\npayload = \"1GiB\"", &["6:11: `1GiB` is no size: more than 512MiB"]);
    check_after_base(
        "[runtime]\nstop_grace = \"10m\"",
        &["5:1: `max_stall` (10m) must be longer than `stop_grace` (10m): a handler stalls only after that"],
    );
}

#[test]
fn paths_are_payload_paths_of_their_place() {
    check_after_base(
        "[task_defaults]\ntenant = \"a[]\"\nsubject = { doc = \"a#count\", \"a/b\" = \"a\" }\n\
         scopes = { kb = [\"a\", \"a\", 3] }\nshows = [\"a[]\", \"b.id\", \"c.id\", \"d..e\"]\n\
         fields = \"a|b\"\n[tasks.t]\nqueue = \"mail\"",
        &[
            "6:10: `a[]` is no payload path here: `[]` may only stand in `subject` and `scopes`",
            "7:19: `a#count` is no payload path here: `#` may only stand in `shows`",
            "7:30: a subject kind name must not contain `/`, found `a/b`",
            "8:23: `a` stands twice in `kb`",
            "8:28: expected a payload path or a list of them for `kb`, found `3`",
            "9:10: `a[]` is no payload path here: `[]` may only stand in `subject` and `scopes`",
            "9:25: two fields would be shown as `id`",
            "9:33: `d..e` is no payload path here: a part is empty",
            "10:10: `a|b` is no payload path here: `|` may only stand in `shows` and `tenant`",
        ],
    );
}

#[test]
fn an_id_is_made_of_declared_fields() {
    let task = |id: &str| {
        format!("[tasks.t]\nqueue = \"mail\"\nshows = [\"task_id\", \"list#count\"]\nid = \"{id}\"")
    };
    check_after_base(&task("{task_id}"), &[]);
    check_after_base(
        &task("{task_idd}-x"),
        &["8:6: the id template names `task_idd`, which is no declared field, did you mean `task_id`?"],
    );
    check_after_base(&task("{list}"), &["8:6: the id template names `list`, which is no declared field"]);
    check_after_base(
        &task("{task_id"),
        &["8:6: `{task_id` is no id template: `{` opens a field that nothing closes"],
    );
    check_after_base(&task("{instance}\"\nfields = \"instance"), &[]);
    assert_eq!(help(&task("{x}")), "declare it with `fields = [\"x\"]`; declared are `task_id`");
}

#[test]
fn rules_that_contradict_each_other_are_refused() {
    let task = |rules: &str| format!("[tasks.t]\nqueue = \"mail\"\n{rules}");
    check_after_base(
        &task("protected = true\ncancel = [\"subject\"]\nsubject = { doc = \"id\" }"),
        &["8:10: `t` is protected, so no cancel reaches it"],
    );
    check_after_base(&task("protected = true\ncancel = []"), &[]);
    check_after_base(
        &task("cancel = [\"scope\"]"),
        &["7:10: no such cancel can reach `t`, which has no `scopes`"],
    );
    check_after_base(
        &task("on_exhausted = \"fail_subject\""),
        &["7:16: `fail_subject` needs a subject, and `t` has none"],
    );
    check_after_base(
        &task("delay = \"1m\"\ndeadline = \"1m\""),
        &["8:12: the deadline (1m) passes before the first try, which is delayed by 1m"],
    );
}

#[test]
fn a_stale_threshold_outlasts_its_type() {
    let stale = |stale: &str, timeout: &str| {
        format!(
            "[tasks.t]\nqueue = \"mail\"\ntimeout = \"{timeout}\"\n[housekeeping]\n\
             stale_after = {{ {stale} }}"
        )
    };
    check_after_base(&stale("of = \"t\"", "2h"), &[]);
    check_after_base(
        &stale("of = \"t\", plus = \"0s\"", "2h"),
        &["9:34: the threshold (2h) does not outlast the timeout of `t` (2h)"],
    );
    check_after_base(
        &stale("of = \"t\", plus = \"0s\", at_least = \"1h\"", "2h"),
        &["9:34: the threshold (2h) does not outlast the timeout of `t` (2h)"],
    );
    check_after_base(&stale("of = \"t\", plus = \"0s\", at_least = \"3h\"", "2h"), &[]);
    check_after_base(
        &stale("of = \"t\"", "0s"),
        &["9:22: no threshold outlasts `t`, whose timeout has no limit"],
    );
    check_after_base(&stale("of = \"tt\"", "2h"), &["9:22: unknown task type `tt`, did you mean `t`?"]);
    check_after_base(
        "[housekeeping]\nstale_after = \"2h\"",
        &["6:15: expected a table for `stale_after`, found the text `2h`"],
    );
}

#[test]
fn a_schedule_is_a_cron_text() {
    check_after_base(
        "[housekeeping]\nschedule = \"0 25 * * *\"",
        &[
            "6:12: `0 25 * * *` is no cron text: the hour field is `25`, expected 0 to 23, as `a`, `a-b`, `a,b` or `*/n`",
        ],
    );
    check_after_base(
        "[housekeeping]\nschedule = \"* * *\"",
        &["6:12: `* * *` is no cron text: expected five fields, or six with seconds first, found 3"],
    );
    check_after_base("[housekeeping]\nschedule = \"@every 5m\"", &[]);
}

#[test]
fn names_are_names() {
    let long = "x".repeat(256);
    check_after_base(
        &format!("[pools.\"\"]\nworkers = 1\nborrows = {{ mail = 1 }}\n[pools.{long}]\nworkers = 0"),
        &[
            "5:8: a pool name must not be empty",
            "8:8: a pool name has at most 255 bytes, this one has 256",
            "9:11: expected a number of workers from 1 to 10000 for `workers`, found `0`",
        ],
    );
    check_after_base(
        "[tasks.\" \"]\nqueue = \"mail\"\n[tasks.\"a\\nb\"]\nqueue = \"mail\"",
        &[
            "5:8: a task type must not be empty",
            "7:8: a task type must not contain control characters, this one has '\\n'",
        ],
    );
    check_after_base(
        "env = \"A-B\"\nsetting = \"\"\nlabel = \"\\u0007\"",
        &[
            "5:7: `A-B` is no name of an environment variable",
            "6:11: the setting under `setting` must not be empty",
            "7:9: `label` must not contain control characters, this one has '\\u{7}'",
        ],
    );
    check_after_base("[queues.mail]\nstored = \"\"", &["6:10: a queue name must not be empty"]);
}

#[test]
fn values_have_the_type_of_their_key() {
    check("version = 1\npools = 3\n", &["2:9: expected a table of pool names for `pools`, found `3`"]);
    check("version = 1\npools = { core = 3 }\n", &["2:18: expected a table for `core`, found `3`"]);
    check(
        "version = 1\n[[pools]]\nworkers = 3\n",
        &["2:1: expected a table of pool names for `pools`, found a list of 1"],
    );
    check(
        &BASE.replace("workers = 8", "workers = \"8\""),
        &["3:11: expected a number of workers from 1 to 10000 for `workers`, found the text `8`"],
    );
    check_after_base(
        "[housekeeping]\nenabled = 1\nschedule = 2026-11-30",
        &[
            "6:11: expected `true` or `false` for `enabled`, found `1`",
            "7:12: expected a cron text for `schedule`, found the date `2026-11-30`",
        ],
    );
    check_after_base(
        "[tasks.t]\nqueue = [\"mail\"]",
        &["6:9: expected the name of a queue (a text) for `queue`, found a list of 1"],
    );
    // A pool whose queues cannot be read owns nobody knows what: nothing is said about who has no home.
    check(
        "version = 1\n[pools.core]\nworkers = 8\nqueues = [\"mail\"]\n[queues.mail]\n[tasks.t]\n\
         queue = \"mail\"\n",
        &["4:10: expected a table of queue names for `queues`, found a list of 1"],
    );
    assert_eq!(help("[housekeeping]\nenabled = \"true\""), "write it without quotes: `true`");
}

#[test]
fn mistakes_of_syntax_and_of_sense_are_told_together() {
    check(
        "version = 1\n[pools.core]\nworkers = 8x\nlable = \"x\"\nqueues = { default = 1\n\
         [tasks.t]\nqueue = \"mail\"\ntimeout = \"5\"\n",
        &[
            "3:11: `8x` is no value; text stands in quotes",
            "4:1: unknown key `lable`, did you mean `label`?",
            "6:1: missing key for inline table element, expected `,`",
            "8:11: `5` is no duration: the number 5 has no unit",
        ],
    );
    check_after_base(
        "[pools.core]\nworkers = 9\n",
        &["5:8: `core` stands twice in its table", "6:1: `workers` stands twice in its table"],
    );
}

#[test]
fn a_file_that_is_no_text_or_not_there_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("queues.toml");
    assert!(matches!(Topology::load(&path), Err(Error::Read { .. })));
    std::fs::write(&path, b"version = 1\n\xff\xfe\n").unwrap();
    let error = Topology::load(&path).unwrap_err();
    assert_eq!(error.problems()[0].to_string(), "2:1: this is no UTF-8 text");
    std::fs::write(&path, vec![b'#'; 1024 * 1024 + 1]).unwrap();
    assert!(Topology::load(&path).unwrap_err().to_string().contains("larger than 1 MiB"));
    std::fs::write(&path, BASE).unwrap();
    assert_eq!(Topology::load(&path).unwrap().0.pools().len(), 1);
}
