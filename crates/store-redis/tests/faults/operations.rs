//! What people do by hand, cut off at any byte and done once more: paused once, removed whole, each task treated once.

use std::collections::HashSet;

use poolwright_broker::{Bulk, BulkAction, Error, Inspect, Paused, Upkeep};
use poolwright_conformance::builders::{archive, keep, queue, queues, retry, task, tasks};
use poolwright_core::{NewTask, Settlement, State};

use crate::scene::{STATES, Scene};
use crate::stage::keyspace::Keyspace;

/// Tasks with all that hangs on tasks, due after so long.
fn laden(prefix: &str, count: usize, after_secs: u64) -> Vec<NewTask> {
    let one = |nth: usize| {
        let id = format!("{prefix}-{nth}");
        let one = task(&id).after(after_secs).unique(&format!("lock-{id}"), 3_600);
        one.subject("doc", "1").scope("base", &id).build()
    };
    (0..count).map(one).collect()
}

/// So many tasks in this state.
async fn fill(scene: &Scene, state: State, prefix: &str, count: usize) {
    let prefix = format!("{prefix}-{state}");
    match state {
        State::Pending => scene.enqueue(laden(&prefix, count, 0)).await,
        State::Scheduled => scene.enqueue(laden(&prefix, count, 600)).await,
        State::Retry => scene.settled(laden(&prefix, count, 0), &retry(600)).await,
        State::Archived => scene.settled(laden(&prefix, count, 0), &archive()).await,
        State::Completed => scene.settled(laden(&prefix, count, 0), &keep(600, b"r")).await,
        State::Active => panic!("nothing here is done to tasks that run"),
    }
}

async fn reset(scene: &Scene) {
    scene.other.remove_queue(queue("q"), true).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_and_its_end_cut_at_any_byte_are_done_once_and_whole() {
    let scene = Scene::new().await;
    scene.enqueue(tasks(["a"])).await;
    let reason = || "the disk is full".to_owned();
    let pause = async || scene.store.pause(queue("q"), reason()).await;
    let resume = async || scene.store.resume(queue("q")).await;
    let paused = async || scene.other.queue_stats(queues(&["q"])).await.unwrap().remove(0).paused;

    for cut in scene.cuts(pause).await {
        scene.other.resume(queue("q")).await.unwrap();
        scene.pass(7);
        let since = scene.now();
        let (repeated, changed) = scene.cut(&cut, pause).await;
        // False: the first call had done it, and its answer was lost.
        assert!(changed.unwrap() || repeated, "{cut:?}");
        assert_eq!(paused().await, Some(Paused { reason: reason(), since }), "{cut:?}");
        assert!(scene.claim(1).await.is_empty(), "{cut:?}");
        scene.assert_sound(&cut).await;
    }
    for cut in scene.cuts(resume).await {
        scene.other.pause(queue("q"), reason()).await.unwrap();
        let (repeated, changed) = scene.cut(&cut, resume).await;
        assert!(changed.unwrap() || repeated, "{cut:?}");
        assert_eq!(paused().await, None, "{cut:?}");
        let running = scene.claim(1).await;
        assert_eq!(running.len(), 1, "{cut:?}");
        scene.settle(&running, &Settlement::Release).await;
        scene.assert_sound(&cut).await;
    }
}

/// Removes a queue with `count` tasks in each state again and again, each time cut elsewhere.
async fn remove_cut(count: usize, some: impl Fn(usize) -> bool) {
    let scene = Scene::new().await;
    scene.enqueue(vec![task("elsewhere").queue("other").subject("doc", "1").build()]).await;
    let resting = STATES.into_iter().filter(|state| *state != State::Active);
    let all = (resting.clone().count() * count) as u64;
    let fill_all = async |prefix: &str| {
        // What runs to its end first, so that nothing else is claimed for it.
        for state in resting.clone().rev() {
            fill(&scene, state, prefix, count).await;
        }
        scene.other.pause(queue("q"), "no more".into()).await.unwrap();
    };
    let remove = async || scene.store.remove_queue(queue("q"), true).await;
    fill_all("m").await;
    let cuts = scene.cuts(remove).await;
    let mut gone_at_once = 0;
    for (nth, cut) in cuts.into_iter().enumerate().filter(|(nth, _)| some(*nth)) {
        fill_all(&nth.to_string()).await;
        let (repeated, removed) = scene.cut(&cut, remove).await;
        match removed {
            Ok(removed) => assert!(removed == all || (repeated && removed < all), "{cut:?}: {removed}"),
            // The first call had done all of it.
            Err(Error::NoQueue { .. }) if repeated => gone_at_once += 1,
            Err(error) => panic!("{cut:?}: {error}"),
        }
        let keyspace = Keyspace::of(&scene.server).await;
        assert!(keyspace.of_queue("q").is_empty(), "{cut:?}: {:?}", keyspace.of_queue("q"));
        assert_eq!(keyspace.registered().into_iter().collect::<Vec<_>>(), ["other"], "{cut:?}");
        scene.assert_sound(&cut).await;
    }
    assert!(gone_at_once > 0, "some answers were lost");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_cut_at_any_byte_leaves_nothing_of_the_queue_and_others_alone() {
    remove_cut(2, |_| true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_of_several_steps_that_is_cut_between_them_comes_to_its_end() {
    remove_cut(250, |nth| nth % 6 == 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_removal_that_is_cut_changes_nothing() {
    let scene = Scene::new().await;
    let remove = async || match scene.store.remove_queue(queue("q"), false).await {
        Err(Error::NotEmpty { tasks: 2, active: 1, .. }) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => panic!("it has tasks"),
    };
    scene.enqueue(laden("t", 2, 0)).await;
    let running = scene.claim(1).await;
    let before = Keyspace::of(&scene.server).await;
    for cut in scene.cuts(remove).await {
        scene.cut(&cut, remove).await.1.unwrap();
        assert_eq!(Keyspace::of(&scene.server).await, before, "{cut:?}");
    }
    scene.settle(&running, &archive()).await;
}

/// Where an action takes tasks from, and where they are then.
fn moves() -> impl Iterator<Item = (BulkAction, State, Option<State>)> {
    use State::{Archived, Completed, Pending, Retry, Scheduled};
    let run = [Scheduled, Retry, Archived, Completed].map(|from| (BulkAction::RunNow, from, Some(Pending)));
    let archive = [Pending, Scheduled, Retry].map(|from| (BulkAction::Archive, from, Some(Archived)));
    let delete =
        [Pending, Scheduled, Retry, Archived, Completed].map(|from| (BulkAction::Delete, from, None));
    run.into_iter().chain(archive).chain(delete)
}

/// Treats `count` tasks again and again, each time cut elsewhere.
async fn bulk_cut(count: usize, some: impl Fn(usize) -> bool) {
    let scene = Scene::new().await;
    for (action, from, to) in moves() {
        let bulk = || Bulk { queue: queue("q"), state: from, action, limit: 5_000, reason: "by hand".into() };
        let act = async || scene.store.bulk(bulk()).await;
        fill(&scene, from, "m", count).await;
        let cuts = scene.cuts(act).await;
        reset(&scene).await;
        let (mut lost, all) = (0, count as u64);
        for (nth, cut) in cuts.into_iter().enumerate().filter(|(nth, _)| some(*nth)) {
            let when = format!("{action:?} of {from}, {cut:?}");
            fill(&scene, from, &nth.to_string(), count).await;
            let counted = scene.counted().await;
            let (repeated, done) = scene.cut(&cut, act).await;
            let done = done.unwrap();
            lost += u32::from(repeated);
            assert!(done == all || (repeated && done < all), "{when}: {done}");
            assert_eq!(
                scene.states().await,
                STATES.map(|state| if Some(state) == to { all } else { 0 }),
                "{when}"
            );
            assert_eq!(scene.counted().await, counted, "{when}");
            scene.assert_sound(&when).await;
            if to == Some(State::Archived) {
                let letters = scene.other.unrecorded(queues(&["q"]), 5_000).await.unwrap();
                let tokens: HashSet<_> = letters.iter().filter_map(|task| task.token).collect();
                assert_eq!((letters.len(), tokens.len()), (count, count), "{when}: each wants one letter");
            }
            if to == Some(State::Pending) {
                let ids: Vec<String> = (0..count).map(|at| format!("{nth}-{from}-{at}")).collect();
                scene.work_off(&ids).await;
            }
            reset(&scene).await;
        }
        assert!(lost > 0, "{action:?} of {from}: some answers were lost");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulk_operations_cut_at_any_byte_treat_each_task_once() {
    bulk_cut(2, |_| true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bulk_operations_of_several_steps_that_are_cut_between_them_come_to_their_end() {
    bulk_cut(520, |nth| nth % 12 == 6).await;
}
