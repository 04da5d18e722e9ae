//! A dead letter is left exactly when the judge would end the task.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::time::Duration;

use poolwright_core::text::{CUT_MARK, ERROR_BYTES_MAX};
use poolwright_core::{
    BoxError, Class, DeadLetter, OnCancel, Policy, Subject, TaskError, TaskRecord, Timestamp,
};
use poolwright_handler::Context;
use poolwright_middleware::DeadLetterLayer;
use support::{START, handler, last_attempt, record, run};
use tower::Layer;

/// Fails with this error and gives the letter that was left, having checked that the error passed unchanged.
async fn letter(
    task: TaskRecord,
    policy: Policy,
    error: impl Fn() -> BoxError + Clone + Send + Sync + 'static,
) -> Option<DeadLetter> {
    let cx = Context::builder(task).policy(policy).build();
    let same = error().to_string();
    let service = DeadLetterLayer.layer(handler(move |_| {
        let error = error();
        async { Err(error) }
    }));
    assert_eq!(run(service, &cx).await.unwrap_err().to_string(), same);
    cx.take_dead_letter()
}

fn of(class: Class) -> impl Fn() -> BoxError + Clone + Send + Sync + 'static {
    move || TaskError::new(class, "no").into()
}

#[tokio::test]
async fn success_leaves_none() {
    let cx = Context::builder(last_attempt()).build();
    run(DeadLetterLayer.layer(handler(|_| async { Ok(()) })), &cx).await.unwrap();
    assert_eq!(cx.take_dead_letter(), None);
}

#[tokio::test]
async fn an_ordinary_failure_leaves_one_in_the_last_attempt_only() {
    assert_eq!(letter(record(), Policy::default(), || "boom".into()).await, None);
    let last = letter(last_attempt(), Policy::default(), || "boom".into()).await.expect("it is final");
    assert_eq!((last.class, &*last.error, last.attempts), (Class::Transient, "boom", 4));
}

#[tokio::test]
async fn the_class_decides_whatever_attempts_are_left() {
    for class in [Class::Permanent, Class::Undecodable] {
        let left = letter(record(), Policy::default(), of(class)).await.expect("it is final");
        assert_eq!(left.class, class);
    }
    for class in [Class::Snoozed, Class::LockConflict, Class::Revoked, Class::NeedsOperator, Class::Cancelled]
    {
        assert_eq!(letter(last_attempt(), Policy::default(), of(class)).await, None, "{class}");
    }
    let archives = Policy { on_cancel: OnCancel::Archive, ..Policy::default() };
    assert!(letter(record(), archives, of(Class::Cancelled)).await.is_some());
}

#[tokio::test]
async fn a_retry_past_the_deadline_is_final() {
    let soon = TaskRecord { deadline: Some(START + Duration::from_secs(1)), ..record() };
    assert!(letter(soon, Policy::default(), || "boom".into()).await.is_some());
}

#[tokio::test]
async fn it_holds_the_task_as_it_was_and_the_whole_chain_of_the_error() {
    let task = TaskRecord {
        payload: b"\xff\x00\xfe"[..].into(),
        subjects: vec![Subject::new("knowledge", "kn_42")],
        headers: [("origin".to_owned(), "import".to_owned())].into(),
        ..last_attempt()
    };
    let error = || TaskError::new(Class::TimedOut, "its time was over").caused_by("disk asleep").into();
    let left = letter(task.clone(), Policy::default(), error).await.expect("it is final");
    assert_eq!(left, DeadLetter::of(&task, Class::TimedOut, "its time was over: disk asleep", START));
    assert_eq!((&left.payload, left.failed_at), (&task.payload, START));
    assert_ne!(left.failed_at, Timestamp::EPOCH);
}

#[tokio::test]
async fn a_long_text_is_cut_between_characters() {
    let error = || TaskError::permanent("é".repeat(ERROR_BYTES_MAX)).into();
    let left = letter(record(), Policy::default(), error).await.expect("it is final");
    assert!(left.error.len() <= ERROR_BYTES_MAX && left.error.ends_with(CUT_MARK));
    assert!(left.error.trim_end_matches(CUT_MARK).chars().all(|c| c == 'é'));
}
