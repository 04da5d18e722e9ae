//! What a request and the rules of its type come to.

use poolwright_core::{NameError, OnConflict, Scope, Subject, Tenant};

use super::*;

const NOW: Timestamp = Timestamp::from_secs(1_900_000_000);
const MINUTE: Duration = Duration::from_secs(60);

fn topology() -> Topology {
    Topology::builder()
        .pool("core", 2, [("default", 1), ("urgent", 3)])
        .lines("[queues.urgent]\nstored = \"fast\"")
        .lines("[task_defaults]\ntenant = \"tenant_id\"\nsubject = { knowledge = \"knowledge_id\" }")
        .lines("scopes = { knowledge_base = \"kb_id\" }")
        .task("plain", "default")
        .task_with("small", "default", "payload = \"16B\"")
        .task_with(
            "ruled",
            "urgent",
            "max_retry = 3\ntimeout = \"2m\"\nretention = \"1h\"\ndelay = \"30s\"\ndeadline = \"1d\"",
        )
        .task_with("locked", "default", "unique_for = \"10m\"")
        .task_with("named", "default", "id = \"n-{kb_id}\"\non_conflict = \"run_again\"")
        .build()
        .unwrap()
}

fn with(task_type: &str, payload: &str, options: Options) -> Result<NewTask, Error> {
    let payload = Bytes::copy_from_slice(payload.as_bytes());
    build(&topology(), NOW, &Chance::seeded(1), task_type, payload, options)
}

fn plain(task_type: &str, payload: &str) -> Result<NewTask, Error> {
    with(task_type, payload, Options::default())
}

#[test]
fn the_rules_of_the_type_fill_what_the_caller_did_not_say() {
    let task = plain("ruled", "{}").unwrap();
    assert_eq!((task.key.queue.as_str(), task.max_retry), ("fast", 3));
    assert_eq!((task.timeout, task.retention), (2 * MINUTE, 60 * MINUTE));
    assert_eq!(task.when, When::After(Duration::from_secs(30)));
    assert_eq!(task.deadline, Some(NOW + Duration::from_secs(86_400)));
    assert_eq!((task.unique, task.on_conflict), (None, OnConflict::Reject));
}

#[test]
fn what_the_caller_said_wins() {
    let options = Options {
        when: Some(When::At(NOW + MINUTE)),
        id: Some(TaskId::new("mine")),
        retention: Some(Duration::ZERO),
        deadline: Some(NOW + 2 * MINUTE),
        max_retry: Some(0),
        timeout: Some(Duration::ZERO),
        queue: Some("default".into()),
        on_conflict: Some(OnConflict::ReplaceFinished),
        ..Options::default()
    };
    let task = with("ruled", "{}", options).unwrap();
    assert_eq!((task.key.queue.as_str(), task.key.id.as_str()), ("default", "mine"));
    assert_eq!((task.max_retry, task.timeout, task.retention), (0, Duration::ZERO, Duration::ZERO));
    assert_eq!((task.when, task.deadline), (When::At(NOW + MINUTE), Some(NOW + 2 * MINUTE)));
    assert_eq!(task.on_conflict, OnConflict::ReplaceFinished);
}

#[test]
fn a_delay_of_zero_takes_the_types_delay_away() {
    let options = Options { when: Some(When::After(Duration::ZERO)), ..Options::default() };
    assert_eq!(with("ruled", "{}", options).unwrap().when, When::Now);
    assert_eq!(plain("plain", "{}").unwrap().when, When::Now);
}

#[test]
fn a_queue_is_named_as_the_file_or_as_the_store_calls_it() {
    for name in ["urgent", "fast"] {
        let options = Options { queue: Some(name.into()), ..Options::default() };
        assert_eq!(with("plain", "{}", options).unwrap().key.queue, "fast");
    }
}

#[test]
fn the_payload_says_what_a_task_is_about_and_the_caller_adds() {
    let payload = r#"{"tenant_id":7,"knowledge_id":"kn_1","kb_id":"kb_1"}"#;
    let options = Options {
        subjects: vec![Subject::new("knowledge", "kn_1"), Subject::new("page", "p")],
        scopes: vec![Scope::new("site", "s")],
        ..Options::default()
    };
    let task = with("plain", payload, options).unwrap();
    assert_eq!(task.subjects, [Subject::new("knowledge", "kn_1"), Subject::new("page", "p")]);
    assert_eq!(task.scopes, [Scope::new("knowledge_base", "kb_1"), Scope::new("site", "s")]);
    assert_eq!(task.tenant, Some(Tenant("7".into())));
    let options = Options { tenant: Some(Tenant("8".into())), ..Options::default() };
    assert_eq!(with("plain", payload, options).unwrap().tenant, Some(Tenant("8".into())));
}

#[test]
fn a_payload_that_is_no_json_is_about_nothing() {
    let task = plain("plain", "\u{1}binary").unwrap();
    assert!(task.subjects.is_empty() && task.scopes.is_empty() && task.tenant.is_none());
    assert_eq!(task.payload, "\u{1}binary");
}

#[test]
fn the_id_follows_from_the_payload_where_the_type_says_so() {
    let task = plain("named", r#"{"kb_id":"kb_1"}"#).unwrap();
    assert_eq!((task.key.id.as_str(), task.on_conflict), ("n-kb_1", OnConflict::RunAgain));
    for payload in ["{}", r#"{"kb_id":""}"#, "no json", ""] {
        let error = plain("named", payload).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the id of `named` is made as `n-{kb_id}`, and its payload has no `kb_id`",
            "{payload}"
        );
    }
    let options = Options { id: Some(TaskId::new("mine")), ..Options::default() };
    assert_eq!(with("named", "{}", options).unwrap().key.id, "mine");
}

#[test]
fn an_id_made_of_the_payload_that_no_store_can_keep_is_refused() {
    let payload = format!(r#"{{"kb_id":"{}"}}"#, "x".repeat(300));
    assert_eq!(
        plain("named", &payload),
        Err(Error::Name(NameError::TooLong { kind: "task id", bytes: 302 }))
    );
}

#[test]
fn fresh_ids_differ() {
    let (topology, chance) = (topology(), Chance::seeded(1));
    let id = || {
        let task = build(&topology, NOW, &chance, "plain", Bytes::new(), Options::default());
        task.unwrap().key.id
    };
    assert_ne!(id(), id());
}

#[test]
fn the_unique_key_is_the_type_and_the_md5_of_the_payload() {
    let lock = |payload: &str| plain("locked", payload).unwrap().unique.unwrap();
    assert_eq!(&*lock("{}").key, "locked:99914b932bd37a50b983c5e7c90ae93b");
    assert_eq!(&*lock("").key, "locked:");
    assert_eq!(lock("{}").lasts, 10 * MINUTE);
}

#[test]
fn the_callers_unique_key_stands_behind_the_type() {
    let options = Options { unique_key: Some("daily".into()), ..Options::default() };
    assert_eq!(&*with("locked", "{}", options.clone()).unwrap().unique.unwrap().key, "locked:daily");
    assert_eq!(with("plain", "{}", options), Err(Error::UniqueWithoutTime { key: "daily".into() }));
}

#[test]
fn a_unique_lock_is_taken_away_by_zero_and_refused_below_a_second() {
    let lasting = |lasts| Options { unique_for: Some(lasts), ..Options::default() };
    assert_eq!(with("locked", "{}", lasting(Duration::ZERO)).unwrap().unique, None);
    assert_eq!(with("plain", "{}", lasting(UNIQUE_MIN)).unwrap().unique.unwrap().lasts, UNIQUE_MIN);
    let short = Duration::from_millis(999);
    assert_eq!(with("plain", "{}", lasting(short)), Err(Error::UniqueTooShort { lasts: short }));
}

#[test]
fn an_unknown_type_or_queue_is_refused_with_what_was_probably_meant() {
    let error = plain("plan", "{}").unwrap_err();
    assert_eq!(error.to_string(), "unknown task type `plan`, did you mean `plain`?");
    let options = Options { queue: Some("urgnt".into()), ..Options::default() };
    let error = with("plain", "{}", options).unwrap_err();
    assert_eq!(error.to_string(), "unknown queue `urgnt`, did you mean `urgent`?");
}

#[test]
fn a_type_that_can_be_no_name_is_refused_with_the_reason() {
    assert_eq!(plain(" ", "{}"), Err(Error::Name(NameError::Empty { kind: "task type" })));
    let long = "x".repeat(256);
    assert_eq!(plain(&long, "{}"), Err(Error::Name(NameError::TooLong { kind: "task type", bytes: 256 })));
}

#[test]
fn a_payload_above_the_types_limit_is_refused() {
    assert!(plain("small", &"x".repeat(16)).is_ok());
    let error = plain("small", &"x".repeat(17)).unwrap_err();
    assert_eq!(error.to_string(), "the payload of `small` has 17 bytes, and at most 16 are allowed");
    let mega = "x".repeat(1024 * 1024);
    assert!(plain("plain", &mega).is_ok());
    assert!(matches!(plain("plain", &format!("{mega}x")), Err(Error::PayloadTooLarge { .. })));
}

#[test]
fn a_deadline_before_the_first_try_is_refused() {
    let until = |deadline| Options { deadline: Some(deadline), ..Options::default() };
    for late in [NOW, NOW - MINUTE] {
        assert_eq!(with("plain", "{}", until(late)), Err(Error::DeadlinePassed { deadline: late, due: NOW }));
    }
    assert!(with("plain", "{}", until(NOW + MINUTE)).is_ok());
    let delayed = Options { when: Some(When::After(MINUTE)), ..until(NOW + MINUTE) };
    assert!(matches!(with("plain", "{}", delayed), Err(Error::DeadlinePassed { .. })));
}
