//! Stores that fail at random, thousands of tasks: nothing is lost, nothing runs twice, nobody does more than they can.
//!
//! The faults are drawn from seeds. What meets what is left to the threads, so that a run is not the same twice.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_broker::{Held, Inspect};
use poolwright_conformance::builders;
use poolwright_core::Settlement;
use poolwright_worker::{Running, Status};

use crate::rig::*;

/// Nobody ever has more tasks than workers.
fn assert_within_bounds(status: &Status) {
    for pool in &status.pools {
        assert!(
            pool.busy <= pool.workers,
            "{} of {} workers of {} are busy",
            pool.busy,
            pool.workers,
            pool.name
        );
    }
}

async fn until_settled(running: &Running, count: u64) {
    running
        .until(|status| {
            assert_within_bounds(status);
            let counts = &status.counts;
            counts.completed + counts.archived >= count
        })
        .await;
}

/// What was said of an attempt is said again in the same words.
fn assert_judged_once(settlements: Vec<(Held, Settlement)>) {
    let mut first: BTreeMap<_, Settlement> = BTreeMap::new();
    for (held, settlement) in settlements {
        let said = first.entry((held.key.to_string(), held.token)).or_insert_with(|| settlement.clone());
        assert_eq!(*said, settlement, "{}", held.key);
    }
}

/// Runs so many tasks on pools of these sizes, through a store of which such a share of the calls fails.
async fn play(seed: u64, workers: &[u32], count: usize, share: f64) {
    let rig = Rig::new();
    let names: Vec<_> = (0..workers.len()).map(|at| format!("p{at}")).collect();
    let pools: Vec<_> =
        names.iter().zip(workers).map(|(name, workers)| pool(name, *workers, &[(name, 1)])).collect();
    for name in &names {
        rig.enqueue(many_in(name, count - count / 10, "ok")).await;
        let failing = (0..count / 10).map(|at| task(&format!("f{at}"), "permanent").queue(name).build());
        rig.enqueue(failing).await;
    }
    rig.store.fail_by_chance(seed, share);
    let running = rig.server(&pools).start().unwrap();
    let all = count * workers.len();
    until_settled(&running, all as u64).await;
    running.stop();
    let report = running.wait().await;
    assert_eq!((report.unsettled, report.stuck, report.failed), (0, 0, None), "seed {seed}");
    let counts = report.status.counts;
    let failed = (count / 10 * workers.len()) as u64;
    let expected = (all as u64, all as u64 - failed, failed, 0, 0);
    let found = (counts.claimed, counts.completed, counts.archived, counts.released, counts.lease_lost);
    assert_eq!(found, expected, "seed {seed}");
    let starts = rig.play.starts();
    let tasks: BTreeSet<_> = starts.iter().map(|start| (&start.queue, &start.id)).collect();
    assert_eq!((starts.len(), tasks.len()), (all, all), "each ran once; seed {seed}");
    for (name, workers) in names.iter().zip(workers) {
        assert!(rig.play.peak(name) <= *workers as usize, "{} at once in {name}", rig.play.peak(name));
        let stats = rig.store.queue_stats(vec![builders::queue(name)]).await.unwrap();
        let found = (stats[0].pending, stats[0].active, stats[0].processed, stats[0].failed);
        assert_eq!(found, (0, 0, count as u64, count as u64 / 10), "seed {seed}");
    }
    assert_judged_once(rig.store.settlements());
}

#[tokio::test]
async fn a_pool_of_one_worker_gets_through_a_store_that_fails_at_random() {
    safely(play(11, &[1], 300, 0.2)).await;
}

#[tokio::test]
async fn pools_of_several_sizes_get_through_a_store_that_fails_at_random() {
    for seed in 21..24 {
        safely(play(seed, &[1, 4, 50], 500, 0.2)).await;
    }
}

#[tokio::test]
async fn a_pool_that_brings_more_results_than_fit_a_call_gets_through_a_store_that_fails_at_random() {
    safely(play(31, &[600], 3_000, 0.3)).await;
}

#[tokio::test]
async fn workers_that_are_stopped_while_the_store_fails_at_random_give_everything_back_or_store_it() {
    safely(async {
        let rig = Rig::new();
        rig.enqueue(many("t", 2_000, "ok")).await;
        rig.store.fail_by_chance(41, 0.2);
        let (mut settled, mut round) = (0, 0);
        while settled < 2_000 {
            round += 1;
            let running = rig.server(&[main_pool(20)]).start().unwrap();
            let goal = (settled + 150).min(2_000) - settled;
            until_settled(&running, goal).await;
            running.stop();
            let report = running.wait().await;
            assert_eq!((report.unsettled, report.failed), (0, None), "round {round}");
            assert_eq!(report.status.counts.lease_lost, 0);
            settled += report.status.counts.completed;
        }
        assert_eq!((settled, rig.play.starts().len()), (2_000, 2_000), "each ran once");
        assert!(rig.play.peak("main") <= 20);
        let stats = rig.store.queue_stats(vec![builders::queue(builders::QUEUE)]).await.unwrap();
        assert_eq!((stats[0].size(), stats[0].processed), (0, 2_000));
    })
    .await;
}
