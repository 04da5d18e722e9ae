//! Whether the parts fit together: homes, references, rules that contradict each other.

use super::{BASE, check, check_after_base, help};

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
