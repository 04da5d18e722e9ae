//! What time does to tasks, cut off at any byte and done once more: each task is moved, taken over or swept once.

use std::time::Duration;

use poolwright_broker::{ArchiveLimits, Dispatch, Error, Extension, Held, Inspect, Swept, TakeOver, Upkeep};
use poolwright_conformance::builders::{archive, complete, keep, queue, queues, retry, task};
use poolwright_core::{NewTask, Timestamp};

use crate::scene::Scene;

/// Tasks with these ids that have all that hangs on tasks.
fn laden(ids: &[String], after_secs: u64) -> Vec<NewTask> {
    let one = |id: &String| {
        task(id).after(after_secs).unique(&format!("lock-{id}"), 3_600).subject("doc", "1").scope("base", id)
    };
    ids.iter().map(|id| one(id).build()).collect()
}

fn ids(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|nth| format!("{prefix}-{nth}")).collect()
}

/// `count` scheduled tasks and as many that wait for their next try, all of them due.
async fn make_due(scene: &Scene, prefix: &str, count: usize) -> Vec<String> {
    let (tried, scheduled) = (ids(&format!("{prefix}-r"), count), ids(&format!("{prefix}-s"), count));
    scene.settled(laden(&tried, 0), &retry(10)).await;
    scene.enqueue(laden(&scheduled, 10)).await;
    scene.pass(11);
    let count = count as u64;
    assert_eq!(scene.states().await, [0, 0, count, count, 0, 0]);
    [tried, scheduled].concat()
}

/// Promotes `2 * count` tasks again and again, each time cut elsewhere; `some` of the places are tried.
async fn promote_cut(count: usize, some: impl Fn(usize) -> bool) {
    let scene = Scene::new().await;
    let promote = async || scene.store.promote_due(queues(&["q"]), 10_000).await;
    let due = make_due(&scene, "m", count).await;
    let cuts = scene.cuts(promote).await;
    scene.work_off(&due).await;
    let (all, mut rounds, mut lost) = (2 * count as u64, 1, 0);
    for (nth, cut) in cuts.into_iter().enumerate().filter(|(nth, _)| some(*nth)) {
        let due = make_due(&scene, &format!("{nth:05}"), count).await;
        let (repeated, promoted) = scene.cut(&cut, promote).await;
        let promoted = promoted.unwrap();
        lost += u32::from(repeated);
        rounds += 1;
        assert!(u64::from(promoted.tasks) <= all && promoted.next_due.is_none(), "{cut:?}: {promoted:?}");
        assert!(repeated || u64::from(promoted.tasks) == all, "{cut:?}: {promoted:?}");
        assert_eq!(scene.states().await, [all, 0, 0, 0, 0, 0], "{cut:?}");
        scene.assert_sound(&cut).await;
        scene.work_off(&due).await;
        // Each retry was an ended attempt as well, and a failure.
        let tried = rounds * count as u64;
        assert_eq!(scene.counted().await, (rounds * all + tried, tried), "{cut:?}");
    }
    assert!(lost > 0, "some answers were lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promotion_cut_at_any_byte_moves_each_due_task_once() {
    promote_cut(2, |_| true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promotion_of_several_steps_that_is_cut_between_them_goes_on_where_it_was() {
    promote_cut(501, |nth| nth % 8 == 7).await;
}

fn take_over() -> TakeOver {
    TakeOver { queues: queues(&["q"]), limit: 100, lease: Duration::from_secs(20), not_after: Timestamp::MAX }
}

/// Three tasks of a worker whose leases are over.
async fn abandon(scene: &Scene, prefix: &str) -> Vec<Held> {
    scene.enqueue(laden(&ids(prefix, 3), 0)).await;
    let running = scene.claim(3).await;
    scene.pass(31);
    running.iter().map(|task| Held::of(task).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_take_over_cut_at_any_byte_leaves_each_task_to_one_holder() {
    let scene = Scene::new().await;
    let take = async || scene.store.take_over(take_over()).await;
    abandon(&scene, "m").await;
    let cuts = scene.cuts(take).await;
    scene.pass(21);
    let taken = take().await.unwrap();
    scene.settle(&taken, &complete()).await;
    let (mut rounds, mut unheard) = (1, 0);
    for (nth, cut) in cuts.into_iter().enumerate() {
        let dead = abandon(&scene, &format!("{nth:05}")).await;
        let (repeated, taken) = scene.cut(&cut, take).await;
        let mut taken = taken.unwrap();
        scene.assert_sound(&cut).await;
        if taken.is_empty() {
            // It was done, and nobody heard of it: the next one takes over when the new leases are over.
            assert!(repeated, "{cut:?}");
            unheard += 1;
            scene.pass(21);
            taken = take().await.unwrap();
        }
        assert_eq!(taken.len(), 3, "{cut:?}");
        assert_eq!(scene.states().await, [0, 3, 0, 0, 0, 0], "{cut:?}");

        let late = dead.iter().map(|held| (held.clone(), archive())).collect();
        for refused in scene.other.settle(late).await.unwrap() {
            assert!(matches!(refused, Err(Error::LeaseLost { .. })), "{cut:?}: {refused:?}");
        }
        for kept in scene.other.extend(dead, Duration::from_secs(60)).await.unwrap() {
            assert_eq!(kept, Extension::Lost, "{cut:?}");
        }
        scene.settle(&taken, &complete()).await;
        rounds += 1;
        assert_eq!((scene.states().await, scene.counted().await), ([0; 6], (3 * rounds, 0)), "{cut:?}");
        scene.assert_sound(&cut).await;
    }
    assert!(unheard > 0, "some answers were lost");
}

fn limits() -> Vec<ArchiveLimits> {
    vec![ArchiveLimits {
        queue: queue("q"),
        tasks_max: 2,
        age_max: Duration::from_secs(86_400),
        spare_unrecorded: false,
    }]
}

/// So many tasks whose retention is over, twice as many in the archive, one that is kept on, and one that waits.
async fn litter(scene: &Scene, prefix: &str, count: usize) {
    scene.settled(laden(&ids(&format!("{prefix}-kept"), count), 0), &keep(60, b"r")).await;
    scene.settled(laden(&ids(&format!("{prefix}-failed"), 2 * count), 0), &archive()).await;
    scene.pass(61);
    scene.settled(laden(&[format!("{prefix}-young")], 0), &keep(60, b"r")).await;
    scene.settled(laden(&ids(&format!("{prefix}-last"), 2), 0), &archive()).await;
    scene.enqueue(laden(&[format!("{prefix}-waits")], 0)).await;
}

async fn sweep_cut(count: usize, some: impl Fn(usize) -> bool) {
    let scene = Scene::new().await;
    let sweep = async || {
        let mut all = Swept::default();
        loop {
            let swept = scene.store.sweep(limits()).await?;
            all.expired += swept.expired;
            all.trimmed += swept.trimmed;
            if !swept.more {
                return Ok(all);
            }
        }
    };
    litter(&scene, "m", count).await;
    let cuts = scene.cuts(sweep).await;
    scene.other.remove_queue(queue("q"), true).await.unwrap();
    let mut lost = 0;
    for (nth, cut) in cuts.into_iter().enumerate().filter(|(nth, _)| some(*nth)) {
        litter(&scene, &format!("{nth:05}"), count).await;
        let counted = scene.counted().await;
        let (repeated, swept) = scene.cut(&cut, sweep).await;
        let swept = swept.unwrap();
        lost += u32::from(repeated);
        let whole = Swept { expired: count as u64, trimmed: 2 * count as u64, more: false };
        assert!(repeated || swept == whole, "{cut:?}: {swept:?}");
        assert_eq!(scene.states().await, [1, 0, 0, 0, 2, 1], "{cut:?}");
        for (id, there) in [("last-0", true), ("last-1", true), ("young", true), ("failed-0", false)] {
            let id = format!("{nth:05}-{id}");
            assert_eq!(scene.state_of(&id).await.is_some(), there, "{cut:?}: {id}");
        }
        assert_eq!(scene.counted().await, counted, "{cut:?}: what is swept was counted when it ended");
        scene.assert_sound(&cut).await;
        scene.other.remove_queue(queue("q"), true).await.unwrap();
    }
    assert!(lost > 0, "some answers were lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_cut_at_any_byte_removes_what_is_over_and_nothing_else() {
    sweep_cut(2, |_| true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_of_several_steps_that_is_cut_between_them_goes_on_where_it_was() {
    sweep_cut(340, |nth| nth % 8 == 7).await;
}
