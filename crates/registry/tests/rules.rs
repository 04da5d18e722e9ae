//! What the rules of a type find in a payload.

#![allow(clippy::unwrap_used, reason = "what a test cannot unwrap has failed it")]

use poolwright_core::{Class, OnCancel, OnConflict, RetryPolicy, Scope, Subject, Tenant};
use poolwright_registry::{Error, OnExhausted, TaskRules, Topology};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

fn topology(defaults: &str, rules: &str) -> Topology {
    Topology::simple([("mail", 1)])
        .lines(&format!("[task_defaults]\n{defaults}"))
        .task_with("t", "mail", rules)
        .lines(
            "[retry.fast]\nkind = \"fixed\"\ndelay = \"1s\"\n[retry.slow]\nkind = \"fixed\"\ndelay = \"9s\"",
        )
        .build()
        .unwrap()
}

fn rules(defaults: &str, rules: &str) -> Arc<TaskRules> {
    topology(defaults, rules).task_type("t").unwrap().clone()
}

const KEYS: &str = r#"
tenant  = "tenant_id"
subject = { knowledge = "knowledge_id" }
scopes  = { knowledge_base = ["knowledge_base_id", "kb_id"], data_source = "data_source_id" }
shows   = ["tenant_id", "knowledge_base_id|kb_id", "knowledge_id", "knowledge_ids#count", "enqueued_at|created_at#time"]
"#;

#[test]
fn subjects_and_scopes_are_found_by_the_defaults_and_the_types_own_paths() {
    let rules = rules(
        KEYS,
        "subject = { knowledge = \"knowledge_ids[]\" }\nscopes = { knowledge_base = [\"source_id\"] }",
    );
    let payload = json!({
        "knowledge_id": "a", "knowledge_ids": ["b", "a", "", 7], "source_id": "kb_2", "kb_id": "kb_1",
        "data_source_id": "ds",
    });
    let subject = |id| Subject::new("knowledge", id);
    assert_eq!(rules.subjects(&payload), [subject("a"), subject("b"), subject("7")]);
    assert_eq!(
        rules.scopes(&payload),
        [
            Scope::new("knowledge_base", "kb_1"),
            Scope::new("knowledge_base", "kb_2"),
            Scope::new("data_source", "ds")
        ]
    );
}

#[test]
fn a_payload_that_is_no_object_has_nothing() {
    let rules = rules(KEYS, "");
    for payload in
        [json!(null), json!("text"), json!([1, 2]), json!({}), json!({ "knowledge_id": { "x": 1 } })]
    {
        assert!(rules.subjects(&payload).is_empty() && rules.scopes(&payload).is_empty());
        assert!(rules.tenant(&payload).is_none() && rules.shown(&payload).is_empty());
    }
}

#[test]
fn zero_and_empty_tenants_are_nobody() {
    let rules = rules(KEYS, "");
    let tenant = |value| rules.tenant(&json!({ "tenant_id": value }));
    assert_eq!(tenant(json!(10_001)), Some(Tenant("10001".into())));
    assert_eq!(tenant(json!("acme")), Some(Tenant("acme".into())));
    for nobody in [json!(0), json!("0"), json!(""), json!(null), json!(true)] {
        assert_eq!(tenant(nobody), None);
    }
    assert!(rules.shown(&json!({ "tenant_id": 0 })).is_empty());
}

#[test]
fn an_operator_sees_the_listed_fields_only() {
    let rules = rules(KEYS, "shows = [\"trace.id\"]");
    let payload = json!({
        "tenant_id": 1, "kb_id": "kb_1", "knowledge_id": "", "knowledge_ids": ["a", "b"], "content": "secret",
        "created_at": 1_709_210_096_007_i64, "trace": { "id": "t1", "token": "secret" },
    });
    assert_eq!(
        serde_json::to_value(rules.shown(&payload)).unwrap(),
        json!({
            "tenant_id": 1, "knowledge_base_id": "kb_1", "knowledge_count": 2,
            "enqueued_at": "2024-02-29T12:34:56.007Z", "id": "t1",
        })
    );
    let names: Vec<String> = rules.shown_names().collect();
    assert_eq!(
        names,
        ["tenant_id", "knowledge_base_id", "knowledge_id", "knowledge_count", "enqueued_at", "id"]
    );
}

#[test]
fn an_id_needs_all_its_fields() {
    let rules = rules(KEYS, "id = \"{knowledge_id}:{instance}\"\nfields = [\"instance\"]");
    let id = |payload| rules.id(&payload);
    assert_eq!(id(json!({ "knowledge_id": "a", "instance": 7 })).unwrap().unwrap(), "a:7");
    let error = id(json!({ "knowledge_id": "a" })).unwrap_err();
    assert!(matches!(&error, Error::MissingField { field, .. } if field == "instance"));
    assert_eq!(
        error.to_string(),
        "the payload of a `t` has no usable `instance`, which its id template `{knowledge_id}:{instance}` needs"
    );
    assert!(matches!(id(json!({ "knowledge_id": "a\nb", "instance": 1 })), Err(Error::InvalidId { .. })));
    assert!(matches!(
        id(json!({ "knowledge_id": "x".repeat(300), "instance": 1 })),
        Err(Error::InvalidId { .. })
    ));
    assert_eq!(rules.id_template(), Some("{knowledge_id}:{instance}"));
}

#[test]
fn a_type_without_a_template_gives_no_id_and_one_without_paths_reads_no_payload() {
    let rules = rules("", "");
    assert!(!rules.reads_payload());
    assert_eq!(rules.id(&json!({})).unwrap(), None);
    assert!(topology(KEYS, "").task_type("t").unwrap().reads_payload());
}

#[test]
fn a_types_values_replace_the_defaults_and_its_tables_add_to_them() {
    let defaults = "max_retry = 1\ntimeout = \"1m\"\nretry = \"slow\"\ncancel = []\n\
     payload = \"2KiB\"\nunique_for = \"1h\"\n\
                    on_error = { timed_out = \"slow\", panicked = \"slow\" }";
    let own = rules(
        defaults,
        "max_retry = 2\ntimeout = \"0s\"\nretry = \"fast\"\non_error = { panicked = \"fast\" }\n\
         on_cancel = \"archive\"\n\
         on_conflict = \"run_again\"\npayload = \"1KiB\"\nunique_for = \"0s\"\nmax_crashes = 0\n\
          max_deferrals = 5\ndelay = \"2s\"\n\
         deadline = \"1h\"\nretention = \"1d\"\nlabel = \"T\"\ndescription = \"d\"",
    );
    let (fast, slow) = (fixed(1), fixed(9));
    assert_eq!((own.max_retry, own.timeout.value), (2, Duration::ZERO));
    assert_eq!(own.policy.retry, fast);
    assert_eq!(own.policy.on_error.get(&Class::TimedOut), Some(&slow));
    assert_eq!(own.policy.on_error.get(&Class::Panicked), Some(&fast));
    assert_eq!((own.policy.on_cancel, own.on_conflict), (OnCancel::Archive, OnConflict::RunAgain));
    assert_eq!((own.payload_bytes_max, own.unique_for), (1_024, None));
    assert_eq!((own.policy.max_crashes, own.policy.max_deferrals), (0, 5));
    assert_eq!((own.delay, own.deadline), (Duration::from_secs(2), Some(Duration::from_secs(3_600))));
    assert_eq!(
        (own.retention, &*own.label, own.description.as_deref()),
        (Duration::from_secs(86_400), "T", Some("d"))
    );

    let inherited = rules(defaults, "");
    assert_eq!((inherited.max_retry, inherited.payload_bytes_max), (1, 2_048));
    assert_eq!((&inherited.policy.retry, inherited.unique_for), (&slow, Some(Duration::from_secs(3_600))));
    assert!(!inherited.cancel.subject && !inherited.cancel.scope);
    assert_eq!(&*inherited.label, "t");
}

fn fixed(secs: u64) -> RetryPolicy {
    RetryPolicy::Fixed { delay: Duration::from_secs(secs) }
}

#[test]
fn without_defaults_a_type_behaves_as_asynqs() {
    let rules = rules("", "");
    let new = poolwright_core::NewTask::new(
        rules.queue.stored.clone(),
        poolwright_core::TaskId::new("x").unwrap(),
        rules.name.clone(),
        "",
    );
    assert_eq!((rules.max_retry, rules.timeout.value), (new.max_retry, new.timeout));
    assert_eq!((rules.retention, rules.on_conflict), (new.retention, new.on_conflict));
    assert_eq!(rules.policy, poolwright_core::Policy::default());
    assert_eq!(rules.payload_bytes_max, poolwright_core::task::PAYLOAD_BYTES_MAX);
    assert_eq!(rules.on_exhausted, OnExhausted::Nothing);
    assert!(rules.cancel.subject && rules.cancel.scope && !rules.protected);
}

#[test]
fn a_name_that_is_not_there_is_answered_with_the_nearest() {
    let topology = Topology::simple([("mail", 1)]).task("mail:send", "mail").build().unwrap();
    let said = |error: Error| error.to_string();
    assert_eq!(
        said(topology.require_type("mail:sned").unwrap_err()),
        "unknown task type `mail:sned`, did you mean `mail:send`?"
    );
    assert_eq!(
        said(topology.require_queue("mial").unwrap_err()),
        "unknown queue `mial`, did you mean `mail`?"
    );
    assert_eq!(said(topology.require_pool("other").unwrap_err()), "unknown pool `other`");
    assert_eq!(topology.require_pool("mail").unwrap().name, "mail");
}

#[test]
fn a_topology_made_in_code_goes_through_the_same_checks() {
    let error = Topology::builder()
        .pool("a \"b\"", 0, [("x", 1)])
        .elastic("c", 1, [("y", 1)])
        .task("t", "z")
        .build()
        .unwrap_err();
    let messages: Vec<_> = error.problems().iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "expected a number of workers from 1 to 10000 for `workers`, found `0`",
            "pool `c` borrows queue `y`, which no pool owns, did you mean `x`?",
            "unknown queue `z`, did you mean `x`?",
        ]
    );
}
