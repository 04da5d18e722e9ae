//! What can be said of a value by itself: its key, its type, its range, its words.

use super::{BASE, check, check_after_base, help};

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
