//! Stores that go away, lose replies, refuse and hang: nothing is lost, and nothing runs twice while its worker lives.

use std::time::Duration;

use poolwright_broker::{Inspect, TakeOver, Upkeep};
use poolwright_conformance::builders;
use poolwright_core::{Class, State, Timestamp};
use poolwright_worker::Options;

use crate::faulty::Fault;
use crate::rig::*;

#[tokio::test]
async fn results_of_attempts_that_end_while_the_store_is_away_are_kept_and_settled() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("w", 8, "wait")).await;
        let running = rig.server(&[main_pool(4)]).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 4).await;
        rig.store.set_away(true);
        running.until(|status| status.store_is_away).await;
        rig.play.drop_curtain();
        rig.play.until(|play| play.on_stage("main") == 0).await;
        let tries = rig.store.calls("settle");
        rig.store.until_calls("settle", tries + 3).await;
        let status = running.status();
        assert_eq!(
            (status.counts.completed, status.busy()),
            (0, 4),
            "their permits are kept with the results"
        );
        rig.store.set_away(false);
        let status = running.until(|status| status.counts.completed == 8 && !status.store_is_away).await;
        assert_eq!((rig.play.starts().len(), status.counts.lease_lost), (8, 0), "each ran once");
    })
    .await;
}

#[tokio::test]
async fn a_worker_starts_while_the_store_is_away() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "ok").build()]).await;
        rig.store.set_away(true);
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        rig.store.until_calls("claim", 3).await;
        rig.store.set_away(false);
        running.until(|status| status.counts.completed == 1).await;
    })
    .await;
}

#[tokio::test]
async fn a_claim_whose_reply_was_lost_is_asked_again_and_its_tasks_run_once() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("t", 3, "ok")).await;
        rig.store.fail_next("claim", Fault::LoseReply);
        rig.store.fail_next("claim", Fault::LoseReply);
        let running = rig.server(&[main_pool(3)]).start().unwrap();
        running.until(|status| status.counts.completed == 3).await;
        assert_eq!(rig.play.starts().len(), 3);
        let claims = rig.store.claims();
        assert_eq!(claims[..3].iter().map(|claim| claim.resent).collect::<Vec<_>>(), [false, true, true]);
        assert!(claims[..3].iter().all(|claim| claim.id == claims[0].id));
        assert!(claims[3..].iter().all(|claim| claim.id != claims[0].id && !claim.resent));
    })
    .await;
}

#[tokio::test]
async fn a_settlement_whose_reply_was_lost_is_sent_again_and_counts_once() {
    safely(async {
        let rig = Rig::new();
        rig.store.fail_next("settle", Fault::LoseReply);
        // One whose record is gone after the first try, one whose record still shows it.
        rig.enqueue([task("gone", "wait").build(), task("kept", "wait").retention(60).build()]).await;
        let running = rig.server(&[main_pool(2)]).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 2).await;
        rig.play.drop_curtain();
        let status = running.until(|status| status.counts.completed == 2 && status.busy() == 0).await;
        assert_eq!(status.counts.lease_lost, 0);
        assert_eq!((rig.state("gone").await, rig.state("kept").await), (None, Some(State::Completed)));
        let stats = rig.store.queue_stats(vec![builders::queue(builders::QUEUE)]).await.unwrap();
        assert_eq!(stats[0].processed, 2);
    })
    .await;
}

#[tokio::test]
async fn a_lost_reply_about_a_task_that_failed_for_good_still_gives_its_dead_letter() {
    safely(async {
        let rig = Rig::new();
        let sink = std::sync::Arc::new(Sink::default());
        rig.store.fail_next("settle", Fault::LoseReply);
        rig.enqueue([task("a", "permanent").build()]).await;
        let running = rig.server(&[main_pool(1)]).sink(sink.clone()).start().unwrap();
        running.until(|status| status.counts.letters_recorded >= 1 && status.counts.archived == 1).await;
        assert_eq!(sink.ids(), ["a"]);
    })
    .await;
}

#[tokio::test]
async fn a_store_that_never_answers_is_asked_again() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "ok").build()]).await;
        rig.store.fail_next("claim", Fault::Hang);
        rig.store.fail_next("settle", Fault::Hang);
        let options = Options { call_timeout: Duration::from_millis(50), ..options() };
        let running = rig.server(&[main_pool(1)]).options(options).start().unwrap();
        running.until(|status| status.counts.completed == 1).await;
        assert_eq!(rig.play.starts_of("a"), 1);
    })
    .await;
}

#[tokio::test]
async fn a_refusal_about_one_settlement_does_not_hold_up_the_others() {
    safely(async {
        let rig = Rig::new();
        // The batch is refused, then the first of it alone; the others pass, and so does the first in the end.
        rig.store.fail_next("settle", Fault::Refuse);
        rig.store.fail_next("settle", Fault::Refuse);
        rig.enqueue(many("w", 3, "block")).await;
        let options =
            Options { backoff_min: Duration::from_secs(3_600), backoff_max: Duration::MAX, ..options() };
        let running = rig.server(&[main_pool(3)]).options(options).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 3).await;
        rig.play.drop_curtain();
        let status = running.until(|status| status.counts.completed >= 1).await;
        assert!(status.counts.lease_lost == 0 && status.busy() <= 2);
        running.stop_now();
        running.wait().await;
    })
    .await;
}

#[tokio::test]
async fn a_settlement_that_a_part_of_the_store_did_not_answer_for_is_sent_again() {
    safely(async {
        let rig = Rig::new();
        rig.store.fail_next("settle", Fault::NoOutcomes);
        rig.enqueue([task("a", "ok").build()]).await;
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        let status = running.until(|status| status.busy() == 0 && status.counts.completed == 1).await;
        assert_eq!((status.counts.claimed, status.counts.lease_lost), (1, 0));
        assert_eq!(rig.store.settlements_of("a"), 2);
    })
    .await;
}

#[tokio::test]
async fn a_loop_that_breaks_stops_the_worker_and_is_named() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "wait").build()]).await;
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        rig.store.fail_next("beat", Fault::Panic);
        let report = running.wait().await;
        assert!(report.failed.as_deref().unwrap().starts_with("loop beat failed: "), "{:?}", report.failed);
        assert_eq!((report.unsettled, report.status.counts.released), (0, 1));
        assert_eq!(rig.state("a").await, Some(State::Pending));
    })
    .await;
}

#[tokio::test]
async fn an_attempt_that_loses_its_lease_is_stopped_and_its_result_dropped() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "wait").build()]).await;
        // This worker must not take over by itself what the test lets expire.
        let options = Options { reclaim_every: Duration::from_secs(3_600), ..options() };
        let running = rig.server(&[main_pool(1)]).options(options.clone()).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        rig.clock.advance(options.lease * 2);
        let request = TakeOver {
            queues: builders::queues(&[builders::QUEUE]),
            limit: 9,
            lease: Duration::from_secs(60),
            not_after: Timestamp::MAX,
        };
        let taken = rig.store.take_over(request).await.unwrap();
        // The keeper may have been faster; then nothing is lost, and nothing is to be seen.
        if taken.is_empty() {
            return;
        }
        let status = running.until(|status| status.counts.lease_lost == 1).await;
        assert_eq!(rig.play.reason("a"), Some(Some(Class::Crashed)));
        assert_eq!((status.counts.completed, status.counts.retried), (0, 0));
        assert_eq!(rig.store.settlements_of("a"), 0);
        running.until(|status| status.busy() == 0).await;
        assert_eq!(rig.get("a").await.unwrap().token, taken[0].token);
    })
    .await;
}

#[tokio::test]
async fn a_late_settlement_after_a_take_over_is_refused_and_counted() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "block").build()]).await;
        let options = Options { reclaim_every: Duration::from_secs(3_600), ..options() };
        let running = rig.server(&[main_pool(1)]).options(options.clone()).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        // Nobody can extend from here on, and somebody else takes over behind the worker's back.
        rig.store.set_away(true);
        rig.clock.advance(options.lease * 2);
        let queues = builders::queues(&[builders::QUEUE]);
        let request =
            TakeOver { queues, limit: 9, lease: Duration::from_secs(60), not_after: Timestamp::MAX };
        let taken = rig.store.behind(async |store| store.take_over(request.clone()).await.unwrap()).await;
        assert_eq!(taken.len(), 1);
        rig.play.drop_curtain();
        rig.store.until(async |_| rig.store.settlements_of("a") >= 1).await;
        rig.store.set_away(false);
        // The worker is free a moment before its loss is counted.
        let status = running.until(|status| status.busy() == 0 && status.counts.lease_lost == 1).await;
        assert_eq!(status.counts.completed, 0);
        assert_eq!(rig.get("a").await.unwrap().token, taken[0].token);
    })
    .await;
}
