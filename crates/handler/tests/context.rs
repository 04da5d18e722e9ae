//! What a running attempt can ask and tell.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use poolwright_core::clock::ManualClock;
use poolwright_core::{Class, NewTask, PoolName, QueueName, TaskId, TaskRecord, Timestamp, TypeName};
use poolwright_handler::testing::{self, Recorder};
use poolwright_handler::{Context, TaskCall, background};

const START: Timestamp = Timestamp::from_secs(1_000);

fn record() -> TaskRecord {
    let mut task = NewTask::new(
        QueueName::new("default").unwrap(),
        TaskId::new("a").unwrap(),
        TypeName::new("x:y").unwrap(),
        &b"{}"[..],
    );
    task.timeout = Duration::from_secs(30);
    testing::claimed(task, START)
}

#[test]
fn a_clone_is_one_pointer_to_the_same_attempt() {
    let cx = Context::builder(record()).build();
    let call = TaskCall::new(cx.clone());
    assert_eq!(size_of::<Context>(), size_of::<usize>());
    assert_eq!(size_of::<TaskCall>(), size_of::<usize>());
    cx.extend(5_u8);
    assert_eq!(call.context().extension::<u8>(), Some(5));
    assert!(std::ptr::eq(cx.task(), call.context().task()));
}

#[test]
fn an_extension_is_found_by_type_and_replaced_by_the_next() {
    let cx = Context::builder(record()).build();
    assert_eq!(cx.extension::<u8>(), None);
    cx.extend(5_u8);
    cx.extend("word");
    cx.extend(6_u8);
    assert_eq!((cx.extension::<u8>(), cx.extension::<&str>()), (Some(6), Some("word")));
}

#[test]
fn the_end_of_all_is_the_end_of_each_whether_its_token_was_asked_for_or_not() {
    let stop = tokio_util::sync::CancellationToken::new();
    let [asked, unasked] = [(); 2].map(|()| Context::builder(record()).cancel_token(stop.clone()).build());
    let token = asked.cancel_token().clone();
    assert_eq!((asked.stop_reason(), unasked.stop_reason()), (None, None));
    stop.cancel();
    assert!(token.is_cancelled() && unasked.cancel_token().is_cancelled());
    let cancelled = Some(Class::Cancelled);
    assert_eq!((asked.stop_reason(), unasked.stop_reason()), (cancelled, cancelled));
    assert_eq!(unasked.given_reason(), None);
}

#[test]
fn the_end_of_one_attempt_is_not_the_end_of_all() {
    let stop = tokio_util::sync::CancellationToken::new();
    let cx = Context::builder(record()).cancel_token(stop.clone()).build();
    cx.stop(Class::TimedOut);
    assert!(cx.cancel_token().is_cancelled() && !stop.is_cancelled());
}

#[test]
fn the_first_reason_to_stop_stays_and_ends_the_attempt_at_a_checkpoint() {
    let cx = Context::builder(record()).build();
    assert_eq!(cx.stop_reason(), None);
    assert!(cx.checkpoint().is_ok());
    cx.stop(Class::TimedOut);
    cx.stop(Class::Cancelled);
    assert_eq!(cx.stop_reason(), Some(Class::TimedOut));
    assert!(cx.cancel_token().is_cancelled());
    let error = cx.checkpoint().unwrap_err();
    assert_eq!(error.class(), Class::TimedOut);
    assert_eq!(error.to_string(), "stopped at a checkpoint: timed_out");
}

#[test]
fn a_token_fired_without_a_reason_means_cancelled() {
    let token = tokio_util::sync::CancellationToken::new();
    let cx = Context::builder(record()).cancel_token(token.clone()).build();
    token.cancel();
    assert_eq!((cx.stop_reason(), cx.given_reason()), (Some(Class::Cancelled), None));
    assert_eq!(cx.checkpoint().unwrap_err().class(), Class::Cancelled);
}

#[tokio::test]
async fn cancelled_resolves_when_the_attempt_is_stopped() {
    let cx = Context::builder(record()).build();
    let waiting = tokio::spawn({
        let cx = cx.clone();
        async move {
            cx.cancelled().await;
            cx.stop_reason()
        }
    });
    cx.stop(Class::Cancelled);
    assert_eq!(waiting.await.unwrap(), Some(Class::Cancelled));
}

#[test]
fn time_left_shrinks_with_the_clock_and_its_end_is_a_checkpoint() {
    let clock = ManualClock::at(START);
    let cx = Context::builder(record()).clock(clock.clone()).build();
    assert_eq!(cx.time_left(), Some(Duration::from_secs(30)));
    clock.advance(Duration::from_secs(29));
    assert_eq!(cx.time_left(), Some(Duration::from_secs(1)));
    assert!(cx.checkpoint().is_ok());
    clock.advance(Duration::from_secs(2));
    assert_eq!(cx.time_left(), Some(Duration::ZERO));
    assert_eq!(cx.checkpoint().unwrap_err().class(), Class::TimedOut);
}

#[test]
fn a_context_made_by_hand_ends_with_the_tasks_own_timeout_or_deadline() {
    let until = |task: TaskRecord| Context::builder(task).build().runs_until();
    assert_eq!(until(record()), Some(START + Duration::from_secs(30)));
    let early = Some(START + Duration::from_secs(10));
    assert_eq!(until(TaskRecord { deadline: early, ..record() }), early);
    assert_eq!(until(TaskRecord { timeout: Duration::ZERO, ..record() }), None);
}

#[test]
fn the_last_attempt_knows_that_it_is() {
    let at = |retried| Context::builder(TaskRecord { retried, max_retry: 3, ..record() }).build();
    assert!(!at(2).is_last_attempt());
    assert!(at(3).is_last_attempt());
    assert_eq!((at(3).retried(), at(3).max_retry()), (3, 3));
}

#[tokio::test]
async fn what_it_tells_reaches_the_report() {
    let recorder = Recorder::default();
    let cx = Context::builder(record()).pool(PoolName::new("core").unwrap()).report(recorder.clone()).build();
    cx.progress(0.5, "parsed").await;
    cx.progress(7.0, "more than all").await;
    cx.progress(f64::NAN, "no number").await;
    cx.store_result(&["a"]).await.unwrap();
    let told = recorder.progress();
    assert_eq!(told[0], (0.5, "parsed".to_owned()));
    assert_eq!((told[1].0, told[2].0), (1.0, 0.0));
    assert_eq!(recorder.result().as_deref(), Some(&b"[\"a\"]"[..]));
    assert_eq!(cx.pool().as_str(), "core");
}

#[tokio::test]
async fn work_spawned_through_the_context_carries_the_background_mark() {
    let cx = Context::builder(record()).build();
    assert!(!cx.is_background());
    assert!(cx.spawn(async { background::is_background() }).await.unwrap());
    assert!(background::enter(|| cx.is_background()));
    assert!(!background::is_background());
}

#[test]
fn the_debug_text_of_a_context_holds_no_payload() {
    let secret = TaskRecord { payload: b"secret"[..].into(), ..record() };
    let cx = Context::builder(secret).build();
    assert!(!format!("{cx:?} {:?}", TaskCall::new(cx.clone())).contains("secret"));
}
