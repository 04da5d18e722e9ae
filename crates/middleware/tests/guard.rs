//! Timeouts, requests to stop and panics arrive as ordinary errors.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod support;

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use poolwright_core::{Class, TaskError, TaskRecord};
use poolwright_handler::{Context, TaskService};
use poolwright_middleware::GuardLayer;
use support::{START, failure, handler, record, run};
use tokio::time::timeout;
use tower::Layer;

fn guarded(inner: TaskService) -> TaskService {
    TaskService::new(GuardLayer::default().layer(inner))
}

fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Tells when the future that owns it is gone.
struct Gone(Arc<AtomicBool>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_handler_gives_passes_unchanged() {
    let cx = Context::builder(record()).build();
    run(guarded(handler(|_| async { Ok(()) })), &cx).await.unwrap();
    let own = handler(|_| async { Err(TaskError::snooze(secs(9)).into()) });
    assert_eq!(failure(run(guarded(own), &cx).await), (Class::Snoozed, "snoozed for 9s".into()));
    assert_eq!(cx.stop_reason(), None);
}

#[tokio::test(start_paused = true)]
async fn a_handler_past_its_time_is_asked_to_stop_and_then_dropped() {
    let cx = Context::builder(record()).build();
    let gone = Arc::new(AtomicBool::new(false));
    let held = gone.clone();
    let stuck = handler(move |_| {
        let gone = Gone(held.clone());
        async move {
            let _gone = gone;
            pending().await
        }
    });
    let mut attempt = Box::pin(run(guarded(stuck), &cx));
    assert!(timeout(secs(29), &mut attempt).await.is_err());
    assert_eq!(cx.stop_reason(), None);
    assert!(timeout(secs(5), &mut attempt).await.is_err());
    assert_eq!(cx.stop_reason(), Some(Class::TimedOut));
    let result = timeout(secs(2), &mut attempt).await.expect("the grace is over");
    let text = "its timeout of 30s was over, and it did not return within 5s";
    assert_eq!(failure(result), (Class::TimedOut, text.into()));
    assert!(gone.load(Ordering::SeqCst), "nothing of the handler is left when its end is told");
}

#[tokio::test(start_paused = true)]
async fn time_that_has_passed_already_counts() {
    let clock = poolwright_core::clock::ManualClock::at(START + secs(20));
    let cx = Context::builder(record()).clock(clock).build();
    let mut attempt = Box::pin(run(guarded(handler(|_| pending())), &cx));
    assert!(timeout(secs(14), &mut attempt).await.is_err());
    let (class, text) = failure(timeout(secs(2), &mut attempt).await.expect("10 s and the grace"));
    assert_eq!((class, text.contains("its timeout of 30s was over")), (Class::TimedOut, true));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_before_the_timeout_is_named() {
    let until = Some(START + secs(10));
    let task = TaskRecord { deadline: until, ..record() };
    let cx = Context::builder(task).build();
    let (class, text) = failure(run(guarded(handler(|_| pending())), &cx).await);
    assert_eq!(class, Class::TimedOut);
    assert!(text.starts_with(&format!("its deadline {} had passed", START + secs(10))), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_task_without_timeout_runs_as_long_as_it_likes() {
    let cx = Context::builder(TaskRecord { timeout: Duration::ZERO, ..record() }).build();
    let mut attempt = Box::pin(run(guarded(handler(|_| pending())), &cx));
    assert!(timeout(secs(86_400 * 365), &mut attempt).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn work_that_is_done_within_the_grace_counts_as_done() {
    let finishes = || {
        handler(|cx: Context| async move {
            cx.cancelled().await;
            Ok(())
        })
    };
    let timed_out = Context::builder(record()).build();
    run(guarded(finishes()), &timed_out).await.unwrap();
    assert_eq!(timed_out.stop_reason(), Some(Class::TimedOut));

    let cancelled = Context::builder(record()).build();
    let mut attempt = Box::pin(run(guarded(finishes()), &cancelled));
    assert!(timeout(secs(1), &mut attempt).await.is_err());
    cancelled.stop(Class::Cancelled);
    attempt.await.unwrap();
}

/// What comes of a handler that answers the stop with an error of this class.
async fn answer_to_stop(reason: Option<Class>, class: Class) -> (Class, String) {
    let cx = Context::builder(record()).build();
    let fails = handler(move |cx: Context| async move {
        cx.cancelled().await;
        Err(TaskError::new(class, "own words").into())
    });
    let mut attempt = Box::pin(run(guarded(fails), &cx));
    assert!(timeout(secs(1), &mut attempt).await.is_err());
    match reason {
        Some(Class::TimedOut) => {}
        Some(reason) => cx.stop(reason),
        None => cx.cancel_token().cancel(),
    }
    failure(attempt.await)
}

#[tokio::test(start_paused = true)]
async fn an_error_that_may_come_of_the_stop_gives_way_to_its_reason() {
    for class in [Class::Transient, Class::Panicked] {
        let text = "its timeout of 30s was over: own words";
        assert_eq!(answer_to_stop(Some(Class::TimedOut), class).await, (Class::TimedOut, text.into()));
        let text = "its lease was lost: own words";
        assert_eq!(answer_to_stop(Some(Class::Crashed), class).await, (Class::Crashed, text.into()));
        let text = "it was asked to stop: own words";
        assert_eq!(answer_to_stop(None, class).await, (Class::Cancelled, text.into()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_knows_better_stands() {
    for class in [Class::Permanent, Class::LockConflict, Class::Revoked, Class::NeedsOperator] {
        let own = (class, "own words".to_owned());
        assert_eq!(answer_to_stop(Some(Class::TimedOut), class).await, own);
        assert_eq!(answer_to_stop(None, class).await, own);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_brings_back_a_task_that_was_cancelled() {
    for class in [Class::Transient, Class::LockConflict, Class::NeedsOperator, Class::Permanent] {
        let cancelled = (Class::Cancelled, "it was cancelled: own words".to_owned());
        assert_eq!(answer_to_stop(Some(Class::Cancelled), class).await, cancelled);
    }
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_ends_a_stopped_attempt_with_its_reason() {
    let cx = Context::builder(record()).build();
    let stopped = handler(|cx: Context| async move {
        cx.stop(Class::Cancelled);
        cx.checkpoint()?;
        Ok(())
    });
    let text = "stopped at a checkpoint: cancelled";
    assert_eq!(failure(run(guarded(stopped), &cx).await), (Class::Cancelled, text.into()));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_handler_that_does_not_listen_is_dropped_after_its_grace() {
    let cx = Context::builder(record()).build();
    let mut attempt = Box::pin(run(guarded(handler(|_| pending())), &cx));
    assert!(timeout(secs(1), &mut attempt).await.is_err());
    cx.stop(Class::Cancelled);
    assert!(timeout(secs(4), &mut attempt).await.is_err());
    let result = timeout(secs(2), &mut attempt).await.expect("the grace is over");
    let text = "it was cancelled, and it did not return within 5s";
    assert_eq!(failure(result), (Class::Cancelled, text.into()));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_is_over_before_it_begins_does_not_begin() {
    let never = || guarded(handler(|_| async { panic!("it must not begin") }));
    let late = Context::builder(record()).runs_until(Some(START)).build();
    let text = "its time was over before it began";
    assert_eq!(failure(run(never(), &late).await), (Class::TimedOut, text.into()));
    let stopped = Context::builder(record()).build();
    stopped.stop(Class::Revoked);
    let text = "it was asked to stop (revoked) before it began";
    assert_eq!(failure(run(never(), &stopped).await), (Class::Revoked, text.into()));
}

#[tokio::test]
async fn a_handler_that_never_waits_can_be_stopped() {
    let cx = Context::builder(record()).build();
    let (began, has_begun) = tokio::sync::oneshot::channel();
    let began = Arc::new(std::sync::Mutex::new(Some(began)));
    let busy = handler(move |_| {
        let began = began.lock().unwrap().take().expect("it runs once");
        async move {
            began.send(()).expect("the test waits");
            loop {
                // Uses up the budget of every poll, as a loop over a channel that is always full does.
                tokio::task::coop::consume_budget().await;
            }
        }
    });
    let service = TaskService::new(GuardLayer::new(Duration::ZERO).layer(busy));
    let attempt = tokio::spawn({
        let cx = cx.clone();
        async move { run(service, &cx).await }
    });
    has_begun.await.unwrap();
    cx.stop(Class::Cancelled);
    let text = "it was cancelled, and it did not return within 0ns";
    assert_eq!(failure(attempt.await.unwrap()), (Class::Cancelled, text.into()));
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_the_first_poll_uses_up_does_not_hide_the_timeout() {
    let cx = Context::builder(record()).build();
    let greedy = handler(|_| async {
        while tokio::task::coop::has_budget_remaining() {
            tokio::task::coop::consume_budget().await;
        }
        pending().await
    });
    let text = "its timeout of 30s was over, and it did not return within 5s";
    // On a task of its own, for the test's own future has no budget that could be used up.
    let attempt = tokio::spawn(async move { run(guarded(greedy), &cx).await });
    assert_eq!(failure(attempt.await.unwrap()), (Class::TimedOut, text.into()));
}

#[tokio::test(start_paused = true)]
async fn time_that_passes_before_the_handler_first_waits_counts() {
    let clock = poolwright_core::clock::ManualClock::at(START);
    let cx = Context::builder(record()).clock(clock.clone()).build();
    let slow_to_wait = handler(move |cx: Context| {
        let clock = clock.clone();
        async move {
            clock.advance(secs(31));
            cx.cancelled().await;
            Err(TaskError::transient("own words").into())
        }
    });
    let mut attempt = Box::pin(run(guarded(slow_to_wait), &cx));
    let result = timeout(secs(1), &mut attempt).await.expect("its time was over when it began to wait");
    assert_eq!(failure(result), (Class::TimedOut, "its timeout of 30s was over: own words".into()));
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_handler_first_waits_is_found_when_it_does() {
    for reason in [Some(Class::Revoked), None] {
        let cx = Context::builder(record()).build();
        let stops_itself = handler(move |cx: Context| async move {
            match reason {
                Some(reason) => cx.stop(reason),
                None => cx.cancel_token().cancel(),
            }
            pending().await
        });
        let mut attempt = Box::pin(run(guarded(stops_itself), &cx));
        assert!(timeout(secs(4), &mut attempt).await.is_err(), "it has its grace");
        let result = timeout(secs(2), &mut attempt).await.expect("the grace is over");
        assert_eq!(failure(result).0, reason.unwrap_or(Class::Cancelled));
    }
}

#[tokio::test]
async fn a_panic_is_an_error_that_names_its_place() {
    poolwright_middleware::panic::remember_places();
    let cx = Context::builder(record()).build();
    let at_once = TaskService::new(tower::service_fn(|_| -> std::future::Ready<_> { panic!("in the call") }));
    let (class, text) = failure(run(guarded(at_once), &cx).await);
    assert!(class == Class::Panicked && text.ends_with(": in the call"), "{text}");
    assert!(text.starts_with("panicked at ") && text.contains("tests/guard.rs:"), "{text}");
    let later = handler(|_| async {
        tokio::task::yield_now().await;
        let words = ["a"; 3];
        let at = words.len();
        panic!("no word {at}")
    });
    let (class, text) = failure(run(guarded(later), &cx).await);
    assert!(class == Class::Panicked && text.ends_with(": no word 3"), "{text}");
    let odd = handler(|_| async { std::panic::panic_any(5_u64) });
    let (class, text) = failure(run(guarded(odd), &cx).await);
    assert!(class == Class::Panicked && text.ends_with(": with a value that is no text"), "{text}");
}

#[tokio::test]
async fn a_panic_while_the_future_is_dropped_does_not_get_out() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("while dropping");
        }
    }
    let cx = Context::builder(record()).build();
    let service = GuardLayer::new(Duration::ZERO).layer(handler(|cx: Context| {
        let bomb = Bomb;
        async move {
            let _bomb = bomb;
            cx.stop(Class::Cancelled);
            pending().await
        }
    }));
    assert_eq!(failure(run(service, &cx).await).0, Class::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_grace_gives_way_to_the_reason() {
    let cx = Context::builder(record()).build();
    let breaks = handler(|cx: Context| async move {
        cx.cancelled().await;
        panic!("the channel is closed")
    });
    let (class, text) = failure(run(guarded(breaks), &cx).await);
    assert_eq!(class, Class::TimedOut);
    assert!(text.starts_with("its timeout of 30s was over: panicked"), "{text}");
}
