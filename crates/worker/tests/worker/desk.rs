//! The desk: calls that settle and claim at once, two of them under way, refused, lost, late, or never answered.

use std::time::Duration;

use poolwright_broker::{Held, Inspect};
use poolwright_conformance::builders;
use poolwright_core::{Settlement, State};
use poolwright_worker::{Options, Phase};

use crate::faulty::Fault;
use crate::rig::*;

/// No pause between tries ever ends: what waits for one hangs.
fn without_second_tries() -> Options {
    let forever = Duration::from_secs(3_600);
    Options { backoff_min: forever, backoff_max: forever, ..options() }
}

/// Waits until the worker's other loops have gone round some times: whoever calls without need has done so by then.
async fn other_loops_go_round(rig: &Rig) {
    let beats = rig.store.calls("beat");
    rig.store.until_calls("beat", beats + 4).await;
}

/// Calls that hand tasks out and take them back; an exchange is one of each.
fn calls(rig: &Rig) -> (usize, usize) {
    (rig.store.calls("claim"), rig.store.calls("settle"))
}

#[tokio::test]
async fn results_and_a_claim_go_in_one_call_and_whatever_is_lost_of_it_is_asked_again() {
    for fault in [Fault::LoseReply, Fault::HalfDone, Fault::Away, Fault::NoOutcomes, Fault::LoseOutcomes] {
        safely(async {
            let rig = Rig::new();
            rig.enqueue((0..6).map(|at| task(&format!("t{at}"), "ok").retention(60).build())).await;
            rig.store.fail_next("exchange", fault);
            rig.store.fail_next("exchange", fault);
            let running = rig.server(&[main_pool(2)]).start().unwrap();
            let status = running.until(|status| status.counts.completed == 6).await;
            assert_eq!((status.counts.claimed, status.counts.lease_lost), (6, 0), "{fault:?}");
            assert_eq!((rig.play.starts().len(), rig.play.peak("main") <= 2), (6, true), "{fault:?}");
            let stats = rig.store.queue_stats(vec![builders::queue(builders::QUEUE)]).await.unwrap();
            assert_eq!((stats[0].processed, stats[0].completed), (6, 6), "{fault:?}");
            let claims = rig.store.claims();
            let resent = claims.iter().filter(|claim| claim.resent);
            assert!(
                resent.clone().all(|again| claims.iter().any(|first| first.id == again.id && !first.resent)),
                "a claim is asked again under its own id: {fault:?}"
            );
            let is_lost = !matches!(fault, Fault::NoOutcomes | Fault::LoseOutcomes);
            assert_eq!(resent.count() > 0, is_lost, "{fault:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn an_exchange_that_is_refused_is_said_in_two_calls() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("t", 3, "ok")).await;
        rig.store.fail_next("exchange", Fault::Refuse);
        let running = rig.server(&[main_pool(1)]).options(without_second_tries()).start().unwrap();
        let status = running.until(|status| status.counts.completed == 3).await;
        assert_eq!((status.counts.lease_lost, rig.play.starts().len()), (0, 3));
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_owes_a_result_is_busy_once_and_never_runs_two_handlers() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "ok").build(), task("b", "gate").build(), task("c", "ok").build()]).await;
        // The result of the first is refused for ever; the second comes by the very call that should have stored it.
        rig.store.fail_next("exchange", Fault::RefuseOne);
        rig.store.curse("a");
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        rig.play.until(|play| play.starts_of("b") == 1).await;
        rig.store.until(async |_| rig.store.settlements_of("a") >= 4).await;
        assert_eq!((running.status().busy(), rig.play.on_stage("main")), (1, 1));
        rig.play.let_go(&["b"]);
        running.until(|status| status.counts.completed == 1).await;
        other_loops_go_round(&rig).await;
        assert_eq!(rig.play.starts_of("c"), 0, "who owes one result gets no third task");
        rig.store.lift_curses();
        let status = running.until(|status| status.counts.completed == 3).await;
        assert_eq!((status.counts.lease_lost, rig.play.peak("main")), (0, 1));
    })
    .await;
}

#[tokio::test]
async fn nothing_waits_with_a_settlement_that_is_refused_for_ever() {
    safely(async {
        let rig = Rig::new();
        rig.store.curse("bad");
        rig.enqueue([task("bad", "ok").build()]).await;
        rig.enqueue(many("t", 50, "ok")).await;
        let running = rig.server(&[main_pool(3)]).options(without_second_tries()).start().unwrap();
        running.until(|status| status.counts.completed == 50).await;
        // A worker with nothing to do but that: newcomers are taken at once all the same.
        for at in 0..5 {
            rig.enqueue([task(&format!("late{at}"), "ok").build()]).await;
            running.until(|status| status.counts.completed == 51 + at).await;
        }
        let tries = rig.store.settlements_of("bad");
        assert!(
            tries <= 4,
            "{tries} tries without a pause: with the claim, with two others, with one, alone"
        );
        assert_eq!(running.status().busy(), 1, "its lease and its worker are kept");
        running.stop_now();
        let report = running.wait().await;
        assert_eq!((report.unsettled, rig.state("bad").await), (1, Some(State::Active)));
    })
    .await;
}

#[tokio::test]
async fn settlements_that_are_refused_for_long_are_stored_when_they_are_taken_again() {
    safely(async {
        let rig = Rig::new();
        for id in ["t1", "t7", "t8"] {
            rig.store.curse(id);
        }
        rig.enqueue(many("t", 200, "ok")).await;
        let running = rig.server(&[main_pool(8)]).start().unwrap();
        running.until(|status| status.counts.completed == 197).await;
        let tries = rig.store.settlements_of("t7");
        rig.store.until(async |_| rig.store.settlements_of("t7") >= tries + 6).await;
        rig.store.lift_curses();
        let status = running.until(|status| status.counts.completed == 200).await;
        assert_eq!((status.counts.lease_lost, rig.play.starts().len()), (0, 200));
        assert!(rig.play.peak("main") <= 8);
    })
    .await;
}

#[tokio::test]
async fn settlements_that_are_sent_in_parts_do_not_each_wait_for_a_store_that_has_gone_away() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("g", 40, "gate")).await;
        let options = Options { call_timeout: Duration::from_millis(200), ..options() };
        let running = rig.server(&[main_pool(41)]).options(options).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 40).await;
        // Some results come while a call is under way, too few for a second one.
        rig.store.fail_next("settle", Fault::Late);
        rig.play.let_go(&["g0"]);
        rig.store.until_stuck().await;
        rig.play.let_go(&["g1", "g2", "g3", "g4", "g5", "g6"]);
        rig.play.until(|play| play.on_stage("main") == 33).await;
        // They are refused together, and then nobody answers any more.
        rig.store.fail_next("settle", Fault::Refuse);
        (0..40).for_each(|_| rig.store.fail_next("settle", Fault::Hang));
        let tries = rig.store.calls("settle");
        rig.store.loosen();
        rig.store.until_calls("settle", tries + 5).await;
        let parts = rig.store.batches()[tries..].iter().filter(|size| **size < 4).count();
        assert!(parts <= 2, "{parts} of five calls were for a part");
        rig.store.forget_faults();
        rig.play.drop_curtain();
        running.until(|status| status.counts.completed == 40).await;
    })
    .await;
}

#[tokio::test]
async fn one_bad_settlement_among_many_is_found_in_few_calls() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("g", 200, "gate")).await;
        let running = rig.server(&[main_pool(201)]).options(without_second_tries()).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 200).await;
        rig.store.fail_next("settle", Fault::Late);
        rig.play.let_go(&["g0"]);
        rig.store.until_stuck().await;
        rig.store.curse("g17");
        let ids: Vec<_> = (1..41).map(|at| format!("g{at}")).collect();
        rig.play.let_go(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        rig.play.until(|play| play.on_stage("main") == 159).await;
        let before = rig.store.calls("settle");
        rig.store.loosen();
        running.until(|status| status.counts.completed == 40).await;
        let calls = rig.store.calls("settle") - before;
        assert!(calls <= 20, "{calls} calls for 40 settlements");
        running.stop_now();
        running.wait().await;
    })
    .await;
}

#[tokio::test]
async fn a_claim_that_is_answered_late_does_not_put_its_pool_to_sleep() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("g", 8, "gate")).await;
        let running = rig.server(&[main_pool(8)]).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 8).await;
        // The first call finds the queue empty, and its answer is late.
        rig.store.fail_next("exchange", Fault::Late);
        rig.play.let_go(&["g0"]);
        rig.store.until_stuck().await;
        // The second one finds more than it asked for.
        rig.enqueue(many("x", 10, "gate")).await;
        rig.play.let_go(&["g1", "g2"]);
        rig.play.until(|play| play.starts().len() > 8).await;
        rig.store.loosen();
        rig.play.until(|play| play.on_stage("main") == 8).await;
        rig.play.drop_curtain();
        let status = running.until(|status| status.counts.completed == 18).await;
        assert_eq!((status.counts.lease_lost, rig.play.peak("main")), (0, 8));
    })
    .await;
}

#[tokio::test]
async fn a_claim_that_is_repeated_and_brings_a_part_does_not_put_its_pool_to_sleep() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("g", 10, "gate")).await;
        rig.store.fail_next("claim", Fault::LoseReply);
        rig.store.fail_next("claim", Fault::Stuck);
        let running = rig.server(&[main_pool(4)]).start().unwrap();
        rig.store.until_stuck().await;
        // Four are claimed and nobody knows. Before the claim is repeated, an operator ends one of them.
        let held = Held::of(&rig.get("g0").await.unwrap()).unwrap();
        let done = Settlement::Complete { retain_for: Duration::ZERO, result: None };
        rig.store.behind(async |store| store.settle(vec![(held, done)]).await.unwrap()).await;
        rig.store.loosen();
        rig.play.until(|play| play.on_stage("main") == 4).await;
        rig.play.drop_curtain();
        running.until(|status| status.counts.completed == 9).await;
    })
    .await;
}

#[tokio::test]
async fn of_two_calls_under_way_either_may_fail() {
    for faults in
        [[Fault::Late, Fault::LoseReply], [Fault::Stuck, Fault::Away], [Fault::LoseReply, Fault::Late]]
    {
        safely(async {
            let rig = Rig::new();
            rig.enqueue(many("g", 8, "gate")).await;
            let running = rig.server(&[main_pool(8)]).start().unwrap();
            rig.play.until(|play| play.on_stage("main") == 8).await;
            rig.enqueue(many("x", 20, "gate")).await;
            let lost = faults.iter().filter(|fault| !matches!(fault, Fault::Late | Fault::Stuck)).count();
            faults.into_iter().for_each(|fault| rig.store.fail_next("exchange", fault));
            rig.play.let_go(&["g0"]);
            rig.store.until_calls("exchange", 1).await;
            rig.play.let_go(&["g1", "g2", "g3"]);
            rig.store.until_stuck().await;
            rig.store.until_calls("exchange", 2).await;
            rig.store.loosen();
            rig.play.drop_curtain();
            let status = running.until(|status| status.counts.completed == 28).await;
            assert_eq!((status.counts.claimed, status.counts.lease_lost, lost), (28, 0, 1), "{faults:?}");
            assert_eq!((rig.play.starts().len(), rig.play.peak("main")), (28, 8), "{faults:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_stop_with_two_calls_under_way_gives_back_what_they_bring() {
    for fault in [Fault::Stuck, Fault::Late] {
        safely(async {
            let rig = Rig::new();
            rig.enqueue(many("g", 8, "gate")).await;
            let patient = Options { grace: Duration::from_secs(60), ..options() };
            let running = rig.server(&[main_pool(8)]).options(patient).start().unwrap();
            rig.play.until(|play| play.on_stage("main") == 8).await;
            rig.enqueue(many("x", 20, "gate")).await;
            rig.store.fail_next("exchange", fault);
            rig.store.fail_next("exchange", fault);
            rig.play.let_go(&["g0"]);
            rig.store.until_stuck().await;
            rig.play.let_go(&["g1", "g2", "g3"]);
            rig.store.until_stuck_calls(2).await;
            running.stop();
            running.until(|status| status.phase == Phase::Draining).await;
            rig.store.loosen();
            rig.play.let_go(&["g4", "g5", "g6", "g7"]);
            let report = running.wait().await;
            assert_eq!((report.unsettled, report.failed), (0, None));
            let counts = report.status.counts;
            assert_eq!((counts.completed, counts.claimed - counts.released), (8, 8), "{fault:?}");
            assert!(counts.released > 0 && rig.play.starts().len() == 8, "{fault:?}");
            let stats = rig.store.queue_stats(vec![builders::queue(builders::QUEUE)]).await.unwrap();
            assert_eq!((stats[0].pending, stats[0].active), (20, 0), "{fault:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn a_stop_while_the_reply_to_an_exchange_is_lost_gives_back_what_it_brought() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("g", 2, "gate")).await;
        let slow = Options {
            backoff_min: Duration::from_millis(200),
            backoff_max: Duration::from_millis(200),
            grace: Duration::from_secs(60),
            ..options()
        };
        let running = rig.server(&[main_pool(2)]).options(slow).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 2).await;
        rig.enqueue(many("x", 2, "gate")).await;
        rig.store.fail_next("exchange", Fault::LoseReply);
        rig.play.let_go(&["g0"]);
        rig.store.until_calls("exchange", 1).await;
        running.stop();
        rig.play.let_go(&["g1"]);
        let report = running.wait().await;
        assert_eq!((report.unsettled, report.failed), (0, None));
        let counts = report.status.counts;
        assert_eq!((counts.completed, counts.released, counts.lease_lost), (2, 1, 0));
        assert_eq!((rig.state("x0").await, rig.play.starts().len()), (Some(State::Pending), 2));
    })
    .await;
}

#[tokio::test]
async fn a_stop_ends_although_no_call_under_way_is_ever_answered() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("g", 8, "gate")).await;
        let short = Options { flush: Duration::from_millis(50), ..options() };
        let running = rig.server(&[main_pool(8)]).options(short).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 8).await;
        (0..2).for_each(|_| rig.store.fail_next("exchange", Fault::Hang));
        rig.enqueue(many("x", 8, "gate")).await;
        rig.play.let_go(&["g0"]);
        rig.store.until_calls("exchange", 1).await;
        rig.play.let_go(&["g1", "g2", "g3"]);
        rig.store.until_calls("exchange", 2).await;
        running.stop();
        let report = running.wait().await;
        assert_eq!(
            (report.unsettled, report.failed),
            (8, None),
            "they are taken over when their leases expire"
        );
    })
    .await;
}

#[tokio::test]
async fn a_stop_stores_the_last_results_beside_a_call_that_is_never_answered() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("g", 8, "gate")).await;
        let forever = Duration::from_secs(3_600);
        let patient =
            Options { call_timeout: forever, grace: forever, hurry: Duration::from_millis(50), ..options() };
        let running = rig.server(&[main_pool(8)]).options(patient).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 8).await;
        rig.store.fail_next("exchange", Fault::Hang);
        rig.play.let_go(&["g0"]);
        rig.store.until_calls("exchange", 1).await;
        // One result is too few for a second call, until the worker stops.
        rig.play.let_go(&["g1"]);
        rig.play.until(|play| play.on_stage("main") == 6).await;
        running.stop();
        running.until(|status| status.counts.completed == 1).await;
        for (at, id) in ["g2", "g3", "g4"].into_iter().enumerate() {
            rig.play.let_go(&[id]);
            running.until(|status| status.counts.completed == 2 + at as u64).await;
        }
        running.stop_now();
        let report = running.wait().await;
        assert_eq!((report.unsettled, report.failed), (1, None));
        assert_eq!((report.status.counts.completed, report.status.counts.released), (4, 3));
    })
    .await;
}

#[tokio::test]
async fn a_store_that_is_away_is_asked_no_more_before_a_pause() {
    safely(async {
        let rig = Rig::new();
        rig.store.set_away(true);
        let running = rig.server(&[main_pool(4)]).options(without_second_tries()).start().unwrap();
        rig.store.until_calls("claim", 1).await;
        // Rings are no reason, either.
        rig.store.behind(async |store| store.enqueue(many("t", 3, "ok")).await.unwrap()).await;
        other_loops_go_round(&rig).await;
        assert_eq!(calls(&rig), (1, 0));
        // Nor is a stop, with a claim that was perhaps done.
        running.stop();
        running.until(|status| status.phase >= Phase::Draining).await;
        running.wait().await;
        assert_eq!(calls(&rig), (1, 0));
    })
    .await;
}

#[tokio::test]
async fn a_store_that_goes_away_with_results_is_asked_no_more_before_a_pause() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("g", 8, "gate")).await;
        let running = rig.server(&[main_pool(8)]).options(without_second_tries()).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 8).await;
        rig.store.set_away(true);
        let (claims, settles) = calls(&rig);
        rig.play.let_go(&["g0"]);
        rig.store.until_calls("settle", settles + 1).await;
        rig.play.drop_curtain();
        rig.play.until(|play| play.on_stage("main") == 0).await;
        other_loops_go_round(&rig).await;
        // A second call may have been under way already.
        let (claims, settles) = (calls(&rig).0 - claims, calls(&rig).1 - settles);
        assert!(claims <= 2 && (1..=2).contains(&settles), "{claims} claims, {settles} settlements");
        assert_eq!(running.status().busy(), 8);
    })
    .await;
}

#[tokio::test]
async fn a_store_that_refuses_claims_is_asked_no_more_before_a_pause() {
    safely(async {
        let rig = Rig::new();
        (0..9).for_each(|_| rig.store.fail_next("claim", Fault::Refuse));
        rig.enqueue(many("t", 3, "ok")).await;
        let running = rig.server(&[main_pool(4)]).options(without_second_tries()).start().unwrap();
        rig.store.until_calls("claim", 1).await;
        rig.enqueue(many("u", 3, "ok")).await;
        other_loops_go_round(&rig).await;
        assert_eq!(calls(&rig), (1, 0));
        running.stop();
        let report = running.wait().await;
        assert_eq!(
            (report.unsettled, report.failed, calls(&rig)),
            (0, None, (1, 0)),
            "it was not done: it is dropped"
        );
    })
    .await;
}

#[tokio::test]
async fn paused_and_empty_queues_are_asked_once_and_again_when_they_ring() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("t", 3, "ok")).await;
        rig.store.pause(builders::queue(builders::QUEUE), "the test".into()).await.unwrap();
        let running = rig.server(&[main_pool(4)]).start().unwrap();
        rig.store.until_calls("claim", 1).await;
        other_loops_go_round(&rig).await;
        let asked = calls(&rig).0;
        assert!(asked <= 2, "{asked} claims: one, and one for a ring that came with it");
        other_loops_go_round(&rig).await;
        assert_eq!(calls(&rig), (asked, 0));
        rig.store.resume(builders::queue(builders::QUEUE)).await.unwrap();
        running.until(|status| status.counts.completed == 3).await;
        other_loops_go_round(&rig).await;
        let asked = calls(&rig);
        other_loops_go_round(&rig).await;
        assert_eq!(calls(&rig), asked, "the queue is empty now");
    })
    .await;
}

#[tokio::test]
async fn tasks_of_a_group_that_never_got_a_thread_are_given_back() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("b", "block").build()]).await;
        let one_thread = poolwright_worker::PoolConfig { threads: Some(1), ..main_pool(8) };
        let running = rig.server(&[one_thread]).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        rig.enqueue(many("t", 5, "ok")).await;
        running.until(|status| status.counts.claimed == 6).await;
        running.stop_now();
        let report = running.wait().await;
        assert_eq!((report.unsettled, report.failed), (0, None));
        assert_eq!((report.status.counts.released, rig.play.starts().len()), (6, 1));
        let stats = rig.store.queue_stats(vec![builders::queue(builders::QUEUE)]).await.unwrap();
        assert_eq!((stats[0].pending, stats[0].active), (6, 0));
    })
    .await;
}
