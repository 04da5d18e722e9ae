//! Stops: graceful, at once, with a store that is away. No attempt is used, nothing is lost.

use std::time::Duration;

use poolwright_broker::Inspect;
use poolwright_conformance::builders;
use poolwright_core::State;
use poolwright_worker::{Error, Options, Phase, PoolConfig, Problem, Report, Router, Server};

use crate::faulty::Fault;
use crate::rig::*;

fn assert_clean(report: &Report) {
    assert_eq!((report.unsettled, report.failed.as_deref()), (0, None));
    assert_eq!(report.status.phase, Phase::Ended);
}

#[tokio::test]
async fn a_graceful_stop_lets_what_runs_end_within_the_grace() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("w", 3, "wait")).await;
        let options = Options { grace: Duration::from_secs(60), ..options() };
        let running = rig.server(&[main_pool(2)]).options(options).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 2).await;
        running.stop();
        running.until(|status| status.phase == Phase::Draining).await;
        rig.play.drop_curtain();
        let report = running.wait().await;
        assert_clean(&report);
        assert_eq!((report.status.counts.completed, report.status.counts.released), (2, 0));
        assert_eq!(rig.state("w2").await, Some(State::Pending), "nothing was claimed after the stop");
        assert!(rig.store.servers().await.unwrap().is_empty(), "no server record stays behind");
    })
    .await;
}

#[tokio::test]
async fn what_does_not_end_within_the_grace_is_given_back_in_its_old_order_and_uses_no_attempt() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([
            task("obeys", "wait").max_retry(0).build(),
            task("deaf", "deaf").max_retry(0).build(),
            task("next", "ok").build(),
        ])
        .await;
        let running = rig.server(&[main_pool(2)]).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 2).await;
        running.stop();
        let report = running.wait().await;
        assert_clean(&report);
        assert_eq!(report.status.counts.released, 2);
        for id in ["obeys", "deaf"] {
            let task = rig.get(id).await.unwrap();
            assert_eq!((task.state, task.retried, task.crashes), (State::Pending, 0, 0), "{id}");
        }
        let order: Vec<_> = rig.claim_and_die(3).await.iter().map(|task| task.key.id.to_string()).collect();
        assert_eq!(order, ["obeys", "deaf", "next"]);
    })
    .await;
}

#[tokio::test]
async fn a_second_stop_ends_at_once() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "wait").build(), task("b", "deaf").build(), task("c", "block").build()]).await;
        let forever = Duration::from_secs(3_600);
        let patient = Options { grace: forever, stop_grace: forever, flush: forever, ..options() };
        let running = rig.server(&[main_pool(3)]).options(patient).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 3).await;
        running.stop();
        running.until(|status| status.phase == Phase::Draining).await;
        running.stop_now();
        let report = running.wait().await;
        assert_clean(&report);
        assert_eq!((report.status.counts.released, report.stuck), (3, 1));
        for id in ["a", "b", "c"] {
            assert_eq!(rig.state(id).await, Some(State::Pending), "{id}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_stop_keeps_offering_results_to_a_store_that_comes_back() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "wait").retention(60).build()]).await;
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        rig.store.set_away(true);
        rig.play.drop_curtain();
        let tries = rig.store.calls("settle");
        rig.store.until_calls("settle", tries + 1).await;
        running.stop();
        running.until(|status| status.phase == Phase::Stopping).await;
        rig.store.set_away(false);
        let report = running.wait().await;
        assert_clean(&report);
        assert_eq!(rig.state("a").await, Some(State::Completed));
    })
    .await;
}

#[tokio::test]
async fn a_stop_while_the_store_stays_away_says_what_was_not_stored() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "wait").build()]).await;
        let options = Options { flush: Duration::from_millis(50), ..options() };
        let running = rig.server(&[main_pool(1)]).options(options).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        rig.store.set_away(true);
        running.stop();
        let report = running.wait().await;
        assert_eq!((report.unsettled, report.failed), (1, None));
        rig.store.set_away(false);
        assert_eq!(rig.state("a").await, Some(State::Active), "it is taken over when its lease expires");
    })
    .await;
}

#[tokio::test]
async fn tasks_of_a_claim_that_was_under_way_at_the_stop_are_given_back() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("t", 2, "ok")).await;
        rig.store.fail_next("claim", Fault::LoseReply);
        // The reply is lost, and the stop comes before the worker asks again.
        let slow = Options {
            backoff_min: Duration::from_millis(200),
            backoff_max: Duration::from_millis(200),
            grace: Duration::from_secs(60),
            ..options()
        };
        let running = rig.server(&[main_pool(2)]).options(slow).start().unwrap();
        rig.store.until_calls("claim", 1).await;
        running.stop();
        let report = running.wait().await;
        assert_clean(&report);
        assert_eq!((report.status.counts.released, rig.play.starts().len()), (2, 0));
        assert_eq!(rig.state("t0").await, Some(State::Pending));
    })
    .await;
}

#[tokio::test]
async fn dropping_the_handle_stops_the_worker_in_the_background() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "wait").build()]).await;
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        drop(running);
        rig.until_task("a", |task| task.is_some_and(|task| task.state == State::Pending)).await;
        rig.store.until_calls("retire", 1).await;
    })
    .await;
}

#[tokio::test]
async fn a_stopping_worker_says_so_in_its_heartbeat() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "deaf").build()]).await;
        let options = Options { grace: Duration::from_secs(60), ..options() };
        let running = rig.server(&[main_pool(1)]).options(options).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        rig.store
            .until(async |store| {
                let servers = store.servers().await.unwrap();
                servers.iter().any(|server| {
                    let pool = &server.pools[0];
                    !server.stopping && (pool.workers, pool.busy) == (1, 1) && server.tasks[0].key.id == *"a"
                })
            })
            .await;
        running.stop();
        rig.store
            .until(async |store| store.servers().await.unwrap().iter().any(|server| server.stopping))
            .await;
        running.stop_now();
        assert_clean(&running.wait().await);
    })
    .await;
}

#[tokio::test]
async fn a_description_with_mistakes_starts_nothing_and_names_them_all() {
    let rig = Rig::new();
    let broken = PoolConfig { threads: Some(0), ..main_pool(0) };
    let options = Options { lease: Duration::ZERO, ..options() };
    let builder = Server::builder(rig.store.clone()).pools([broken, main_pool(1)]).options(options);
    let Err(Error::Refused { problems }) = builder.start() else { panic!("it started") };
    let pool = name("main");
    assert_eq!(
        problems,
        [
            Problem::PoolTwice { pool: pool.clone() },
            Problem::Zero { pool: pool.clone(), what: "workers" },
            Problem::Zero { pool, what: "threads" },
            Problem::BadOption { option: "lease", rule: "must be longer than zero" },
            Problem::NoServices,
        ]
    );
    assert_eq!(rig.store.calls("claim"), 0);
    // What a builder built before it was refused can be dropped here, inside of a runtime.
    drop(rig.server_with(&[main_pool(1)], Router::new()));
}

#[tokio::test]
async fn a_released_task_is_taken_by_the_next_worker() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "wait").build()]).await;
        let first = rig.server(&[main_pool(1)]).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        first.stop_now();
        assert_clean(&first.wait().await);
        rig.play.drop_curtain();
        let second = rig.server(&[main_pool(1)]).start().unwrap();
        second.until(|status| status.counts.completed == 1).await;
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_is_stopped_again_and_again_loses_nothing_and_does_nothing_twice() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("t", 3_000, "ok")).await;
        for round in 1..=10 {
            let running = rig.server(&[main_pool(20)]).start().unwrap();
            rig.play.until(|play| play.starts().len() >= round * 100).await;
            if round % 2 == 0 {
                running.stop_now()
            } else {
                running.stop()
            }
            assert_clean(&running.wait().await);
        }
        let last = rig.server(&[main_pool(20)]).start().unwrap();
        let queue = builders::queue(builders::QUEUE);
        rig.store
            .until(async |store| {
                let stats = store.queue_stats(vec![queue.clone()]).await.unwrap();
                stats[0].size() == 0 && stats[0].processed == 3_000
            })
            .await;
        last.stop();
        assert_clean(&last.wait().await);
        let stats = rig.store.queue_stats(vec![queue.clone()]).await.unwrap();
        assert_eq!((stats[0].processed, stats[0].failed), (3_000, 0));
    })
    .await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_signal_stops_gracefully_and_a_second_one_at_once() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "deaf").build()]).await;
        let forever = Duration::from_secs(3_600);
        let patient = Options { grace: forever, stop_grace: forever, ..options() };
        let running = rig.server(&[main_pool(1)]).options(patient).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        let send = |signal: &str| {
            let kill = format!("kill {signal} {}", std::process::id());
            assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        };
        // The first poll of `until_signal` begins to listen, before anything is sent.
        let (report, ()) = tokio::join!(biased; running.until_signal(), async {
            send("-TERM");
            let status = running.until(|status| status.phase >= Phase::Draining).await;
            assert_eq!((status.phase, status.counts.released), (Phase::Draining, 0));
            send("-INT");
        });
        let report = report.unwrap();
        assert_clean(&report);
        assert_eq!(report.status.counts.released, 1);
    })
    .await;
}
