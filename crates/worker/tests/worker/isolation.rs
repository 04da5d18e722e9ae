//! Pools are walls: what happens in one is not felt in another, and no pool runs more than it has workers.

use std::time::Duration;

use poolwright_broker::{Inspect, Upkeep};
use poolwright_conformance::builders;
use poolwright_worker::{Borrow, PoolConfig};

use crate::rig::*;

#[tokio::test]
async fn a_pool_whose_handlers_block_their_threads_delays_no_other_pool() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many_in("slow", 50, "block")).await;
        let running = rig.server(&[pool("slow", 4, &[("slow", 1)]), main_pool(2)]).start().unwrap();
        rig.play.until(|play| play.on_stage("slow") == 4).await;
        rig.enqueue(many("fast", 20, "ok")).await;
        running.until(|status| status.counts.completed == 20).await;
        assert_eq!(rig.play.on_stage("slow"), 4, "the others still block");
        rig.play.drop_curtain();
        running.until(|status| status.counts.completed == 70).await;
        assert_eq!(rig.play.peak("slow"), 4);
    })
    .await;
}

#[tokio::test]
async fn every_worker_of_a_pool_can_block_a_thread_and_the_last_one_still_starts() {
    safely(async {
        let rig = Rig::new();
        let running = rig.server(&[main_pool(6)]).start().unwrap();
        rig.enqueue(many("b", 5, "block")).await;
        rig.play.until(|play| play.on_stage("main") == 5).await;
        rig.enqueue([task("a", "ok").build()]).await;
        running.until(|status| status.counts.completed == 1).await;
    })
    .await;
}

#[tokio::test]
async fn no_more_handlers_than_workers_run_even_when_timed_out_ones_block_their_threads() {
    safely(async {
        let rig = Rig::new();
        let limit = Duration::from_millis(30);
        let blockers = (0..6).map(|at| task(&format!("b{at}"), "block").timeout(limit).max_retry(0).build());
        rig.enqueue(blockers).await;
        let options = poolwright_worker::Options { max_stall: Duration::from_millis(250), ..options() };
        let running = rig.server(&[main_pool(2)]).options(options).start().unwrap();
        // Two are given up and archived, and their workers are lost as long as their threads are.
        let status = running.until(|status| status.counts.archived == 2).await;
        assert_eq!((status.pools[0].busy, status.pools[0].stalled, status.counts.stalled), (2, 2, 2));
        assert_eq!(rig.play.starts().len(), 2);
        rig.play.drop_curtain();
        let status = running.until(|status| status.counts.archived + status.counts.completed == 6).await;
        assert!(rig.play.peak("main") <= 2);
        assert_eq!(status.pools[0].workers, 2);
        running.until(|status| status.pools[0].busy == 0 && status.pools[0].stalled == 0).await;
    })
    .await;
}

#[tokio::test]
async fn a_worker_that_was_given_up_and_comes_back_is_not_free_before_its_task_is_settled() {
    safely(async {
        let rig = Rig::new();
        let limit = Duration::from_millis(30);
        rig.enqueue([task("a", "block").timeout(limit).max_retry(0).build()]).await;
        let options = poolwright_worker::Options { max_stall: Duration::from_millis(250), ..options() };
        let running = rig.server(&[main_pool(1)]).options(options).start().unwrap();
        rig.play.until(|play| play.on_stage("main") == 1).await;
        rig.store.set_away(true);
        rig.store.until(async |_| rig.store.settlements_of("a") >= 1).await;
        rig.play.drop_curtain();
        let status = running.until(|status| status.pools[0].stalled == 0).await;
        assert_eq!((status.pools[0].busy, status.counts.archived), (1, 0));
        rig.store.set_away(false);
        running.until(|status| status.pools[0].busy == 0 && status.counts.archived == 1).await;
        rig.enqueue([task("b", "ok").build()]).await;
        running.until(|status| status.counts.completed == 1).await;
    })
    .await;
}

#[tokio::test]
async fn an_elastic_pool_that_always_borrows_takes_what_its_home_has_no_worker_for() {
    safely(async {
        let rig = Rig::new();
        let shared = elastic("shared", 3, Borrow::Always, &[(builders::QUEUE, "main")]);
        let running = rig.server(&[shared, main_pool(2)]).start().unwrap();
        rig.enqueue(many("w", 10, "wait")).await;
        rig.play.until(|play| play.on_stage("main") == 2 && play.on_stage("shared") == 3).await;
        rig.play.drop_curtain();
        running.until(|status| status.counts.completed == 10).await;
        assert_eq!((rig.play.peak("main"), rig.play.peak("shared")), (2, 3));
    })
    .await;
}

#[tokio::test]
async fn a_home_with_free_workers_comes_before_the_pool_that_borrows() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("w", 2, "wait")).await;
        let shared = elastic("shared", 3, Borrow::Always, &[(builders::QUEUE, "main")]);
        let running = rig.server(&[shared, main_pool(2)]).start().unwrap();
        running.until(|status| status.counts.claimed == 2).await;
        rig.play.until(|play| play.on_stage("main") == 2).await;
    })
    .await;
}

#[tokio::test]
async fn a_pool_that_borrows_when_home_is_full_waits_for_that_and_looks_again_when_it_is() {
    safely(async {
        let rig = Rig::new();
        let shared = elastic("shared", 3, Borrow::WhenHomeIsFull, &[(builders::QUEUE, "main")]);
        let running = rig.server(&[shared, main_pool(2)]).start().unwrap();
        rig.enqueue([task("a", "wait").build()]).await;
        rig.play.until(|play| play.on_stage("main") == 1).await;
        let asked = |pool: &str| rig.store.claims().iter().any(|c| c.demands.iter().any(|d| d.pool == *pool));
        assert!(asked("main") && !asked("shared"), "the home has a free worker");
        rig.enqueue(many("w", 2, "wait")).await;
        rig.play.until(|play| play.on_stage("main") == 2 && play.on_stage("shared") == 1).await;
        rig.play.drop_curtain();
        running.until(|status| status.counts.completed == 3).await;
    })
    .await;
}

#[tokio::test]
async fn a_home_that_runs_elsewhere_is_judged_by_its_heartbeats() {
    safely(async {
        let rig = Rig::new();
        let beat = |busy| poolwright_broker::ServerBeat {
            id: poolwright_broker::ServerId("elsewhere:1:a".into()),
            host: "elsewhere".into(),
            pid: 1,
            started_at: rig.store_now(),
            beat_at: rig.store_now(),
            stopping: false,
            pools: vec![poolwright_broker::PoolBeat {
                pool: name("main"),
                workers: 2,
                busy,
                stalled: 0,
                queues: Vec::new(),
            }],
            tasks: Vec::new(),
        };
        let lasts = Duration::from_secs(60);
        rig.store.beat(beat(1), lasts).await.unwrap();
        let shared = elastic("shared", 1, Borrow::WhenHomeIsFull, &[(builders::QUEUE, "main")]);
        let own = pool("own", 1, &[("own", 1)]);
        let running = rig.server(&[shared, own]).start().unwrap();
        rig.store.until_calls("servers", 2).await;
        rig.enqueue([task("a", "ok").build()]).await;
        rig.enqueue(many_in("own", 1, "ok")).await;
        running.until(|status| status.counts.completed == 1).await;
        assert_eq!(rig.play.starts_of("a"), 0, "a worker of its home is free");
        rig.store.beat(beat(2), lasts).await.unwrap();
        running.until(|status| status.counts.completed == 2).await;
    })
    .await;
}

#[tokio::test]
async fn a_home_that_nobody_knows_lends() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue([task("a", "ok").build()]).await;
        let shared = elastic("shared", 1, Borrow::WhenHomeIsFull, &[(builders::QUEUE, "main")]);
        let running = rig.server(&[shared]).start().unwrap();
        running.until(|status| status.counts.completed == 1).await;
    })
    .await;
}

#[tokio::test]
async fn queues_are_drawn_by_weight() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many_in("heavy", 6_000, "ok")).await;
        rig.enqueue(many_in("light", 6_000, "ok")).await;
        let both = pool("main", 20, &[("heavy", 3), ("light", 1)]);
        let running = rig.server(&[PoolConfig { threads: Some(2), ..both }]).start().unwrap();
        rig.play.until(|play| play.starts().len() >= 4_000).await;
        running.stop_now();
        let starts = rig.play.starts();
        let heavy = starts[..4_000].iter().filter(|start| start.queue == "heavy").count();
        assert!((2_880..=3_120).contains(&heavy), "{heavy} of 4000 from the queue with weight 3 of 4");
        running.wait().await;
    })
    .await;
}

#[tokio::test]
async fn an_idle_worker_claims_once_and_then_waits_for_its_watch() {
    safely(async {
        let rig = Rig::new();
        let running = rig.server(&[main_pool(2), pool("other", 2, &[("other", 1)])]).start().unwrap();
        // A heartbeat is a sign that time passes; claims are none.
        rig.store.until_calls("beat", 5).await;
        assert_eq!(rig.store.calls("claim"), 1, "all pools in one call, and none after it");
        rig.enqueue([task("a", "ok").build()]).await;
        running.until(|status| status.counts.completed == 1).await;
        let claims = rig.store.claims();
        assert!(claims[1..].iter().all(|claim| claim.demands.iter().all(|demand| demand.pool == "main")));
    })
    .await;
}

#[tokio::test]
async fn a_paused_queue_is_left_alone_until_it_is_resumed() {
    safely(async {
        let rig = Rig::new();
        rig.store.pause(builders::queue(builders::QUEUE), "later".into()).await.unwrap();
        rig.enqueue([task("a", "ok").build()]).await;
        let running = rig.server(&[main_pool(1)]).start().unwrap();
        rig.store.until_calls("beat", 3).await;
        assert!(rig.play.starts().is_empty());
        rig.store.resume(builders::queue(builders::QUEUE)).await.unwrap();
        running.until(|status| status.counts.completed == 1).await;
    })
    .await;
}
