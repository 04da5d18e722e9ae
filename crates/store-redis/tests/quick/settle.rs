//! Many at once, some of which are not the holder's any more: the others end, and what is counted is right.

use poolwright_broker::{Dispatch, Error, Extension, Find, Inspect, Submit, TakeOver, Upkeep};
use poolwright_conformance::Harness;
use poolwright_conformance::builders::{
    LEASE, archive, complete, keep, key, queue, queues, retry, secs, task, tasks,
};
use poolwright_core::{Chance, Settlement, State, Subject, TaskRecord, Timestamp};

use crate::scene::{Ended, Scene, held, ids, names, tasks_of};

fn lost(id: &str) -> Ended {
    Err(Error::LeaseLost { key: key("q", id) })
}

fn missing(id: &str) -> Ended {
    Err(Error::NotFound { key: key("q", id) })
}

/// Twelve run, something happens to the sixth, and all are told to be done; what the sixth is answered with.
async fn the_sixth_is_answered(prepare: impl AsyncFn(&Scene, &TaskRecord)) -> (Scene, Ended) {
    let s = Scene::new().await;
    let running = s.running(tasks(names("a", 12))).await;
    prepare(&s, &running[5]).await;
    let mut answers = s.complete(&running).await;
    let sixth = answers.remove(5);
    assert_eq!(answers, vec![Ok(None); 11]);
    let others = u64::from(sixth.is_ok());
    assert_eq!(s.stats().await.processed, 11 + others);
    for id in names("a", 12) {
        assert!(id == "a0005" || s.get(&id).await.is_none(), "{id}");
    }
    (s, sixth)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_was_taken_over_is_lost_and_runs_on() {
    let prepare = async |s: &Scene, task: &TaskRecord| {
        s.store.extend(vec![held(task)], secs(1)).await.unwrap();
        s.pass(2).await;
        let request = TakeOver { queues: queues(&["q"]), limit: 99, lease: LEASE, not_after: Timestamp::MAX };
        assert_eq!(ids(&s.other.take_over(request).await.unwrap()), ["a0005"]);
    };
    let (s, sixth) = the_sixth_is_answered(prepare).await;
    assert_eq!(sixth, lost("a0005"));
    assert_eq!((s.list("active").await, s.stats().await.active), (vec!["a0005".to_owned()], 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_gone_is_missing() {
    let prepare = async |s: &Scene, task: &TaskRecord| {
        s.other.settle(vec![(held(task), complete())]).await.unwrap().remove(0).unwrap();
    };
    let s = Scene::new().await;
    let running = s.running(tasks(names("a", 12))).await;
    prepare(&s, &running[5]).await;
    let answers = s.complete(&running).await;
    assert_eq!(answers[5], missing("a0005"));
    assert_eq!(answers.iter().filter(|one| **one == Ok(None)).count(), 11);
    assert_eq!(
        (s.stats().await.processed, s.keys().await.iter().any(|key| key.contains(":t:"))),
        (12, false)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_came_anew_under_its_id_is_not_touched() {
    for state in [State::Pending, State::Active] {
        let prepare = async |s: &Scene, held_task: &TaskRecord| {
            s.other.settle(vec![(held(held_task), archive())]).await.unwrap().remove(0).unwrap();
            s.other.delete(key("q", "a0005")).await.unwrap();
            s.other.enqueue(vec![task("a0005").payload("new").build()]).await.unwrap().remove(0).unwrap();
            if state == State::Active {
                s.other.claim(s.request(1, &["q"])).await.unwrap();
            }
        };
        let s = Scene::new().await;
        let running = s.running(tasks(names("a", 12))).await;
        prepare(&s, &running[5]).await;
        let answers = s.complete(&running).await;
        assert_eq!(answers[5], lost("a0005"));
        assert_eq!(answers.iter().filter(|one| **one == Ok(None)).count(), 11);
        let left = s.get("a0005").await.unwrap();
        assert_eq!((left.state, left.payload.as_ref()), (state, &b"new"[..]));
        let stats = s.stats().await;
        assert_eq!((stats.processed, stats.failed), (12, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_was_flagged_or_extended_by_another_connection_ends_with_all_others() {
    let flag = async |s: &Scene, task: &TaskRecord| {
        s.other.request_cancel(vec![task.key.clone()]).await.unwrap();
    };
    assert_eq!(the_sixth_is_answered(flag).await.1, Ok(None));
    for lease in [secs(0), secs(29), secs(30), secs(31), secs(300)] {
        let extend = async |s: &Scene, task: &TaskRecord| {
            let answer = s.other.extend(vec![held(task)], lease).await.unwrap();
            assert_eq!(answer, [Extension::Kept(s.harness.now() + lease)]);
        };
        assert_eq!(the_sixth_is_answered(extend).await.1, Ok(None), "{lease:?}");
    }
    let note = async |s: &Scene, task: &TaskRecord| {
        s.other.progress(held(task), 0.5, "half".into()).await.unwrap();
        s.other.store_result(held(task), "r".into()).await.unwrap();
    };
    let (s, sixth) = the_sixth_is_answered(note).await;
    assert_eq!((sixth, s.keys().await.iter().any(|key| key.contains(":t:"))), (Ok(None), false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_a_go_worker_took_meanwhile_is_its_and_not_ours() {
    for (named, passed) in [("at once", 0), ("a second later", 1), ("long after", 90)] {
        let prepare = async |s: &Scene, _: &TaskRecord| {
            s.pass(passed).await;
            // Go's dequeue of what its recoverer had put back: of ours the token and the lease are left.
            s.set("a0005", "state", b"active").await;
            s.redis(&["HDEL", "asynq:{q}:t:a0005", "pending_since"]).await;
            let till = (s.harness.now().as_secs() + 29).to_string();
            s.redis(&["ZADD", "asynq:{q}:lease", &till, "a0005"]).await;
        };
        let (s, sixth) = the_sixth_is_answered(prepare).await;
        assert_eq!(sixth, lost("a0005"), "{named}");
        assert_eq!(s.list("active").await, ["a0005"]);
        // Go's worker ends it.
        s.redis(&["LREM", "asynq:{q}:active", "0", "a0005"]).await;
        s.redis(&["ZREM", "asynq:{q}:lease", "a0005"]).await;
        s.redis(&["DEL", "asynq:{q}:t:a0005"]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_go_put_back_is_lost_and_waits_on() {
    for (list, state) in [("retry", State::Retry), ("archived", State::Archived)] {
        let prepare = async |s: &Scene, _: &TaskRecord| {
            s.redis(&["LREM", "asynq:{q}:active", "0", "a0005"]).await;
            s.redis(&["ZREM", "asynq:{q}:lease", "a0005"]).await;
            let at = s.harness.now().as_secs().to_string();
            s.redis(&["ZADD", &format!("asynq:{{q}}:{list}"), &at, "a0005"]).await;
            s.set("a0005", "state", state.as_str().as_bytes()).await;
        };
        let (s, sixth) = the_sixth_is_answered(prepare).await;
        assert_eq!(sixth, lost("a0005"));
        assert_eq!(s.get("a0005").await.unwrap().state, state);
        s.other.delete(key("q", "a0005")).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_whose_lease_was_lost_from_the_set_is_still_ours() {
    let prepare =
        async |s: &Scene, _: &TaskRecord| drop(s.redis(&["ZREM", "asynq:{q}:lease", "a0005"]).await);
    assert_eq!(the_sixth_is_answered(prepare).await.1, Ok(None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifteen_hundred_end_in_one_call() {
    let s = Scene::new().await;
    let running = s.running(tasks(names("a", 1_520))).await;
    // The last twenty stay; of the others each hundredth is somebody else's by now.
    let stolen = |at: usize| at % 100 == 50;
    let mut told = Vec::new();
    for (at, task) in running[..1_500].iter().enumerate() {
        if stolen(at) {
            s.other.settle(vec![(held(task), complete())]).await.unwrap().remove(0).unwrap();
        }
        told.push((held(task), if at % 300 == 7 { archive() } else { complete() }));
    }
    let answers = s.settle(told).await;
    for (at, answer) in answers.iter().enumerate() {
        let wanted = match at {
            at if stolen(at) => missing(ids(&running)[at]),
            at if at % 300 == 7 => Ok(Some(State::Archived)),
            _ => Ok(None),
        };
        assert_eq!(*answer, wanted, "{at}");
    }
    let stats = s.stats().await;
    assert_eq!((stats.processed, stats.failed, stats.archived, stats.active), (1_500, 5, 5, 20));
    assert_eq!(s.list("active").await, ids(&running[1_500..]));
    s.end(&running[1_500..]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_told_twice_ends_once() {
    let kept = || Settlement::Complete { retain_for: secs(60), result: None };
    for (first, second, wanted) in [
        (complete(), complete(), [Ok(None), missing("a0002")]),
        (complete(), archive(), [Ok(None), missing("a0002")]),
        (complete(), retry(0), [Ok(None), missing("a0002")]),
        (retry(0), complete(), [Ok(Some(State::Pending)), Ok(Some(State::Pending))]),
        (retry(60), complete(), [Ok(Some(State::Retry)), Ok(Some(State::Retry))]),
        (archive(), complete(), [Ok(Some(State::Archived)), Ok(Some(State::Archived))]),
        (kept(), complete(), [Ok(Some(State::Completed)), Ok(Some(State::Completed))]),
        (Settlement::Discard, complete(), [Ok(None), missing("a0002")]),
    ] {
        let s = Scene::new().await;
        let running = s.running(tasks(names("a", 5))).await;
        let mut batch: Vec<_> = running.iter().map(|task| (held(task), complete())).collect();
        batch[2].1 = first.clone();
        batch.push((held(&running[2]), second.clone()));
        let answers = s.settle(batch).await;
        assert_eq!([answers[2].clone(), answers[5].clone()], wanted, "{first:?}, {second:?}");
        assert_eq!(s.stats().await.processed, 5, "{first:?}, {second:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_id_in_two_queues_is_two_tasks() {
    let s = Scene::new().await;
    s.enqueue(["q", "r"].map(|of| task("a").queue(of).build()).into()).await;
    let running = tasks_of(s.claim_from(2, &["q", "r"]).await);
    let (mine, theirs): (Vec<_>, Vec<_>) = running.into_iter().partition(|task| task.key.queue == queue("q"));
    s.end(&mine).await;
    assert_eq!(s.other.get(key("r", "a")).await.unwrap().unwrap().state, State::Active);
    assert_eq!(s.complete(&[mine, theirs].concat()).await, [missing("a"), Ok(None)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settled_in_any_order_they_leave_exactly_the_others_there() {
    for seed in 0..6 {
        let s = Scene::new().await;
        let chance = Chance::seeded(seed);
        let below = |bound: usize| usize::try_from(chance.next() % bound as u64).unwrap();
        // Two processes take turns, so that what one holds lies between what the other does.
        let mut left: Vec<(bool, TaskRecord)> = Vec::new();
        for part in names("p", 24) {
            s.enqueue(tasks(names(&part, 25))).await;
            let ours = chance.next().is_multiple_of(2);
            let store = if ours { &s.store } else { &s.other };
            let got = tasks_of(store.claim(s.request(25, &["q"])).await.unwrap());
            left.extend(got.into_iter().map(|task| (ours, task)));
        }
        while !left.is_empty() {
            let ours = left[below(left.len())].0;
            let nearness = 1 + below(left.len());
            let mut batch = Vec::new();
            for _ in 0..=below(60) {
                let at = below(left.len().min(nearness).max(1));
                if left.get(at).is_some_and(|(whose, _)| *whose == ours) {
                    batch.push(left.remove(at).1);
                }
            }
            if chance.next().is_multiple_of(2) {
                batch.sort_by(|a, b| a.key.id.cmp(&b.key.id));
            }
            let store = if ours { &s.store } else { &s.other };
            let told = batch.iter().map(|task| (held(task), complete())).collect();
            for outcome in store.settle(told).await.unwrap() {
                assert_eq!(outcome.unwrap().state, None);
            }
            let wanted: Vec<_> = left.iter().map(|(_, task)| task.key.id.as_str()).collect();
            assert_eq!(s.list("active").await, wanted, "seed {seed}");
        }
        assert_eq!(
            (s.stats().await.processed, s.redis(&["EXISTS", "asynq:{q}:lease"]).await.integer()),
            (600, Some(0))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_index_loses_those_that_end_and_no_others() {
    let s = Scene::new().await;
    let build = |(at, id): (usize, &String)| {
        let built = task(id).subject("doc", "all").subject("doc", &format!("{}", at % 3)).scope("base", id);
        if at % 5 == 0 { task(id).build() } else { built.build() }
    };
    let names = names("a", 60);
    s.enqueue(names.iter().enumerate().map(build).collect()).await;
    let running = s.claim(60).await;
    let (first, second): (Vec<_>, Vec<_>) = running.into_iter().enumerate().partition(|(at, _)| at % 2 == 1);
    let [first, second] =
        [first, second].map(|part| part.into_iter().map(|(_, task)| task).collect::<Vec<_>>());
    s.other.settle(vec![(held(&first[0]), retry(60))]).await.unwrap();
    assert_eq!(s.complete(&first).await.iter().filter(|one| **one == Ok(None)).count(), 29);
    let found = s.other.find(Find::Subject(Subject::new("doc", "all")), 99).await.unwrap();
    let mut found: Vec<_> = found.tasks.iter().map(|(key, _, _)| key.id.as_str()).collect();
    found.sort_unstable();
    let mut wanted: Vec<_> =
        second.iter().filter(|task| !task.subjects.is_empty()).map(|task| task.key.id.as_str()).collect();
    wanted.extend(["a0001"]);
    wanted.sort_unstable();
    assert_eq!(found, wanted);
    s.harness.servers().assert_sound().await;
    s.end(&second).await;
    s.other.delete(key("q", "a0001")).await.unwrap();
    assert!(!s.keys().await.iter().any(|key| key.contains("subject:") || key.contains("scope:")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_freed_with_its_task_among_plain_ones() {
    let s = Scene::new().await;
    let mut batch = tasks(names("a", 9));
    batch.insert(4, task("locked").unique("lock", 900).subject("doc", "1").build());
    let running = s.running(batch).await;
    let refused = s.other.enqueue(vec![task("b").unique("lock", 900).build()]).await.unwrap().remove(0);
    assert_eq!(refused, Err(Error::DuplicateUnique { holder: key("q", "locked") }));
    s.end(&running).await;
    assert!(!s.keys().await.iter().any(|key| key.contains("unique:") || key.contains("subject:")));
    s.enqueue(vec![task("b").unique("lock", 900).build()]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settlements_of_all_kinds_and_queues_are_answered_in_their_order() {
    let s = Scene::new().await;
    let mut running = Vec::new();
    for of in ["x", "y", "z"] {
        s.enqueue(names("a", 6).iter().map(|id| task(id).queue(of).build()).collect()).await;
        running.extend(tasks_of(s.claim_from(6, &[of]).await));
    }
    let kinds = [complete(), keep(60, b"r"), complete(), retry(60), complete(), archive()];
    let ends = [None, Some(State::Completed), None, Some(State::Retry), None, Some(State::Archived)];
    // By turns of the queues, the latest first.
    let order: Vec<usize> = (0..6).rev().flat_map(|at| [at + 12, at, at + 6]).collect();
    let batch = order.iter().map(|&at| (held(&running[at]), kinds[at % 6].clone())).collect();
    let answers = s.settle(batch).await;
    assert_eq!(answers, order.iter().map(|&at| Ok(ends[at % 6])).collect::<Vec<_>>());
    for of in ["x", "y", "z"] {
        let stats = s.other.queue_stats(queues(&[of])).await.unwrap().remove(0);
        assert_eq!((stats.processed, stats.failed, stats.active), (6, 2, 0));
        assert_eq!((stats.completed, stats.retry, stats.archived), (1, 1, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plain_ones_end_together_and_the_next_are_claimed_with_them() {
    let s = Scene::new().await;
    let mut running = s.running(tasks(names("a", 100))).await;
    for round in 0..5 {
        s.enqueue(tasks(names(&format!("b{round}-"), 100))).await;
        let told = running.iter().map(|task| (held(task), complete())).collect();
        let exchanged = s.store.exchange(told, s.request(100, &["q"])).await.unwrap();
        assert!(exchanged.outcomes.iter().all(Result::is_ok));
        running = tasks_of(exchanged.claimed.unwrap());
        assert_eq!(ids(&running), names(&format!("b{round}-"), 100));
    }
    assert_eq!((s.calls("hgetall").await, s.calls("lrem").await), (0, 0));
    s.end(&running).await;
    assert_eq!(s.stats().await.processed, 600);
}
