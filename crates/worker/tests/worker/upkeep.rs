//! The loops: due tasks, dead workers, retention, and dead letters by every road.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use poolwright_broker::Inspect;
use poolwright_conformance::builders;
use poolwright_core::{BoxError, Class, Clock, DeadLetter, Policy, State, Timestamp};
use poolwright_handler::{TaskCall, TaskService};
use poolwright_worker::{Options, Router};
use tower::service_fn;

use crate::faulty::Fault;
use crate::rig::*;

#[tokio::test]
async fn a_task_of_a_dead_worker_is_taken_over_and_counts_as_a_crash_not_as_a_failure() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "ok").max_retry(0).retention(60).build()]).await;
        assert_eq!(rig.claim_and_die(1).await.len(), 1);
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        rig.store.until_calls("take_over", 2).await;
        assert_eq!(running.status().counts.crashed_taken_over, 0, "its lease has not expired");
        rig.clock.advance(options().lease);
        let status = running.until(|status| status.counts.completed == 1).await;
        assert_eq!((status.counts.crashed_taken_over, status.counts.retried), (1, 0));
        let task = rig.get("a").await.unwrap();
        assert_eq!((task.state, task.crashes, task.retried), (State::Completed, 1, 0));
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_task_whose_worker_died_is_gone_and_no_crash() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "ok").build()]).await;
        rig.claim_and_die(1).await;
        rig.store.request_cancel(vec![builders::key(builders::QUEUE, "a")]).await.unwrap();
        rig.clock.advance(options().lease);
        let rules = rules(Policy { max_crashes: 0, ..Policy::default() });
        let running = rig.server(&[main_pool(1)]).rules(rules).start().unwrap();
        let status = running.until(|status| status.counts.discarded == 1).await;
        assert_eq!((status.counts.archived, rig.state("a").await), (0, None));
    })
    .await;
}

#[tokio::test]
async fn a_task_that_keeps_killing_its_workers_is_archived_with_a_dead_letter() {
    safely(async {
        let rig = Rig::new();
        let sink = Arc::new(Sink::default());
        rig.enqueue([task("a", "ok").build()]).await;
        rig.claim_and_die(1).await;
        rig.clock.advance(options().lease);
        let rules = rules(Policy { max_crashes: 0, ..Policy::default() });
        let running = rig.server(&[main_pool(1)]).rules(rules).sink(sink.clone()).start().unwrap();
        running.until(|status| status.counts.letters_recorded >= 1).await;
        assert_eq!(rig.state("a").await, Some(State::Archived));
        assert_eq!(sink.letters.lock().unwrap()[0].class, Class::Crashed);
        assert!(rig.play.starts().is_empty());
    })
    .await;
}

#[tokio::test]
async fn after_an_outage_take_over_holds_back_until_leases_could_be_extended() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "wait").retention(60).build()]).await;
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        rig.store.set_away(true);
        running.until(|status| status.store_is_away).await;
        // By the store's clock its lease is long over when the store comes back.
        rig.clock.advance(options().lease * 10);
        rig.store.set_away(false);
        running.until(|status| !status.store_is_away).await;
        let looks = rig.store.calls("take_over");
        rig.store.until_calls("take_over", looks + 2).await;
        rig.play.drop_curtain();
        let status = running.until(|status| status.counts.completed == 1).await;
        assert_eq!((status.counts.crashed_taken_over, status.counts.lease_lost), (0, 0));
        assert_eq!((rig.play.starts_of("a"), rig.get("a").await.unwrap().crashes), (1, 0));
    })
    .await;
}

#[tokio::test]
async fn a_take_over_that_was_stuck_while_leases_ran_out_takes_nothing() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "wait").build()]).await;
        // Nobody renews and nobody gives up before the stuck request goes on.
        let lease = Duration::from_secs(300);
        let server = rig.server(&[main_pool(1)]).clock(Arc::new(rig.clock.clone()));
        let running = server.options(Options { lease, ..options() }).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        rig.store.fail_next("take_over", Fault::Stuck);
        rig.store.until_stuck().await;
        rig.clock.advance(lease * 2);
        let looks = rig.store.calls("extend");
        rig.store.loosen();
        // The next look finds that its own leases are old, and renews them first.
        rig.store.until_calls("extend", looks + 1).await;
        rig.play.drop_curtain();
        let status = running.until(|status| status.counts.completed == 1).await;
        assert_eq!((status.counts.crashed_taken_over, status.counts.lease_lost), (0, 0));
        assert_eq!(rig.play.starts_of("a"), 1);
    })
    .await;
}

/// A clock that is set back by five hours when `is_back` becomes true.
#[derive(Debug, Default)]
struct SetBack {
    is_back: AtomicBool,
}

impl Clock for SetBack {
    fn now(&self) -> Timestamp {
        let hours = if self.is_back.load(Ordering::SeqCst) { 0 } else { 5 };
        Timestamp::from_secs(1_000_000) + Duration::from_secs(hours * 3_600)
    }
}

#[tokio::test]
async fn when_the_clock_is_set_back_the_living_extend_before_anything_is_taken_over() {
    safely(async {
        let clock = Arc::new(SetBack::default());
        let rig = Rig::on(clock.clone());
        rig.enqueue([task("a", "wait").build()]).await;
        // So long that nothing but the look for expired leases asks for an extension.
        let options = Options { lease: Duration::from_secs(300), ..options() };
        let server = rig.server(&[main_pool(1)]).clock(clock.clone()).options(options);
        let running = server.start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        rig.store.until_calls("take_over", 1).await;
        let (looks, extends) = (rig.store.calls("take_over"), rig.store.calls("extend"));
        clock.is_back.store(true, Ordering::SeqCst);
        rig.store.until_calls("extend", extends + 1).await;
        assert_eq!(rig.store.calls("take_over"), looks);
        rig.play.drop_curtain();
        let status = running.until(|status| status.counts.completed == 1).await;
        assert_eq!((status.counts.crashed_taken_over, status.counts.lease_lost), (0, 0));
    })
    .await;
}

#[tokio::test]
async fn a_due_task_is_promoted_and_run() {
    safely(async {
        let rig = Rig::new();
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        rig.enqueue([task("a", "ok").after(90).build()]).await;
        let looks = rig.store.calls("promote_due");
        rig.store.until_calls("promote_due", looks + 2).await;
        assert!(rig.play.starts().is_empty());
        rig.clock.advance(Duration::from_secs(90));
        running.until(|status| status.counts.completed == 1).await;
    })
    .await;
}

#[tokio::test]
async fn the_next_due_time_is_waited_for_and_not_polled() {
    safely(async {
        // A store with the true clock, and a worker that would look only once in an hour.
        let rig = Rig::on(Arc::new(poolwright_core::clock::SystemClock));
        let hour = Duration::from_secs(3_600);
        let options = Options { promote_at_most: hour, lease: hour, ..options() };
        let running = rig.server(&[main_pool(1)]).options(options).start().unwrap();
        let soon = poolwright_core::When::After(Duration::from_millis(120));
        rig.enqueue([task("late", "ok").after(3_600).build(), task("soon", "ok").when(soon).build()]).await;
        running.until(|status| status.counts.completed == 1).await;
        assert!(rig.store.calls("promote_due") <= 6, "{} looks", rig.store.calls("promote_due"));
    })
    .await;
}

#[tokio::test]
async fn kept_tasks_go_when_their_retention_has_passed() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "ok").retention(60).build()]).await;
        let options = Options { sweep_every: Duration::from_millis(20), ..options() };
        let running = rig.server(&[main_pool(1)]).options(options).start().unwrap();
        running.until(|status| status.counts.completed == 1).await;
        assert_eq!(rig.state("a").await, Some(State::Completed));
        rig.clock.advance(Duration::from_secs(60));
        rig.until_task("a", |task| task.is_none()).await;
    })
    .await;
}

/// Tasks that end badly by the roads that this crate knows.
fn doomed() -> Vec<poolwright_core::NewTask> {
    let short = Duration::from_millis(30);
    vec![
        task("exhausted", "error").max_retry(1).build(),
        task("panics", "panic").max_retry(0).build(),
        task("permanent", "permanent").build(),
        task("times_out", "deaf").timeout(short).max_retry(0).build(),
    ]
}

const DOOMED: [&str; 4] = ["exhausted", "panics", "permanent", "times_out"];

#[tokio::test]
async fn every_road_to_the_archive_gives_one_dead_letter_and_confirms_it() {
    safely(async {
        let rig = Rig::new();
        let sink = Arc::new(Sink::default());
        rig.enqueue(doomed()).await;
        rig.enqueue([task("by_hand", "ok").after(3_600).build()]).await;
        let running = rig.server(&[main_pool(3)]).sink(sink.clone()).start().unwrap();
        let by_hand = builders::key(builders::QUEUE, "by_hand");
        rig.store.archive(by_hand, "not needed".into()).await.unwrap();
        let all: Vec<_> = DOOMED.iter().copied().chain(["by_hand"]).collect();
        running.until(|status| status.counts.letters_recorded >= 5 && sink.ids().len() == 5).await;
        let mut expected: Vec<_> = all.iter().map(ToString::to_string).collect();
        expected.sort();
        assert_eq!(sink.ids(), expected);
        let class = |id: &str| {
            let letters = sink.letters.lock().unwrap();
            letters.iter().find(|letter| letter.task.id == *id).map(|letter| letter.class)
        };
        let classes = all.iter().map(|id| class(id).unwrap()).collect::<Vec<_>>();
        use Class::{Operator, Panicked, Permanent, TimedOut, Transient};
        assert_eq!(classes, [Transient, Panicked, Permanent, TimedOut, Operator]);
        let queues = builders::queues(&[builders::QUEUE]);
        rig.store.until(async |store| store.unrecorded(queues.clone(), 9).await.unwrap().is_empty()).await;
    })
    .await;
}

#[tokio::test]
async fn a_sink_that_is_away_changes_no_tasks_fate_and_gets_its_letters_later() {
    for trouble in [SinkTrouble::Fails, SinkTrouble::Panics] {
        safely(async {
            let rig = Rig::new();
            let sink = Arc::new(Sink::default());
            *sink.trouble.lock().unwrap() = Some(trouble);
            rig.enqueue(doomed()).await;
            let running = rig.server(&[main_pool(3)]).sink(sink.clone()).start().unwrap();
            let status = running.until(|s| s.counts.archived == 4 && s.counts.sink_failed >= 4).await;
            assert_eq!((status.counts.letters_recorded, sink.ids().len()), (0, 0));
            for id in DOOMED {
                assert_eq!(rig.state(id).await, Some(State::Archived), "{id}");
            }
            *sink.trouble.lock().unwrap() = None;
            running.until(|_| sink.ids().len() == 4).await;
        })
        .await;
    }
}

#[tokio::test]
async fn letters_that_an_earlier_process_missed_are_found_in_the_archive() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(doomed()).await;
        let first = rig.server(&[main_pool(3)]).start().unwrap();
        first.until(|status| status.counts.archived == 4).await;
        first.stop_now();
        first.wait().await;
        let sink = Arc::new(Sink::default());
        let second = rig.server(&[main_pool(3)]).sink(sink.clone()).start().unwrap();
        second.until(|status| status.counts.letters_recorded == 4).await;
        assert_eq!(sink.ids(), DOOMED);
    })
    .await;
}

#[tokio::test]
async fn the_letter_that_a_layer_left_is_the_one_that_is_sent() {
    safely(async {
        let rig = Rig::new();
        let sink = Arc::new(Sink::default());
        let mut router = Router::new();
        router.route(
            poolwright_core::TypeName::new(TYPE).unwrap(),
            TaskService::new(service_fn(async |call: TaskCall| {
                let cx = call.into_context();
                let letter = DeadLetter::of(cx.task(), Class::Permanent, "seen by the layer", cx.now());
                cx.leave_dead_letter(letter);
                // Only what the store accepted as final gives a letter: the first failure does not.
                Err::<poolwright_handler::Output, BoxError>("seen by the worker".into())
            })),
        );
        rig.enqueue([task("a", "ok").max_retry(1).build()]).await;
        let running = rig.server_with(&[main_pool(1)], router).sink(sink.clone()).start().unwrap();
        running.until(|status| status.counts.letters_recorded == 1).await;
        let letters = sink.letters.lock().unwrap();
        assert_eq!((letters.len(), &*letters[0].error, letters[0].attempts), (1, "seen by the layer", 2));
    })
    .await;
}
