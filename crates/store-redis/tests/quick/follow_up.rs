//! What came while a task ran is run when it ends, whatever was done to its lease.

use std::time::Duration;

use poolwright_broker::{Dispatch, Extension, How, Submit};
use poolwright_conformance::Harness;
use poolwright_conformance::builders::{complete, retry, secs, task, tasks};
use poolwright_core::{Settlement, TaskRecord};

use crate::scene::{Scene, held, ids, names};

impl Scene {
    async fn run_again(&self, id: &str) {
        let again = task(id).payload("again").run_again().build();
        let outcome = self.other.enqueue(vec![again]).await.unwrap().remove(0).unwrap();
        assert_eq!(outcome.how, How::RunsAgain);
    }

    async fn extend(&self, task: &TaskRecord, lease: Duration) {
        let answer = self.store.extend(vec![held(task)], lease).await.unwrap().remove(0);
        assert_eq!(answer, Extension::Kept(self.harness.now() + lease));
    }
}

/// Ends eight tasks together, of which the fourth has a follow-up.
async fn is_run_when(prepare: impl AsyncFn(&Scene, &TaskRecord)) {
    let s = Scene::new().await;
    let running = s.running(tasks(names("a", 8))).await;
    prepare(&s, &running[3]).await;
    s.end(&running).await;
    let again = s.claim(9).await;
    assert_eq!(ids(&again), ["a0003"]);
    assert_eq!((again[0].payload.as_ref(), again[0].runs_again), (&b"again"[..], false));
    assert_eq!((s.stats().await.processed, s.list("active").await.len()), (8, 1));
    s.end(&again).await;
    assert!(s.get("a0003").await.is_none() && s.list("active").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_up_that_came_meanwhile_is_run() {
    is_run_when(async |s, task| s.run_again(task.key.id.as_str()).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_up_that_came_before_an_extension_is_run() {
    for lease in [secs(29), secs(30), secs(31), secs(90)] {
        is_run_when(async |s, task| {
            s.run_again(task.key.id.as_str()).await;
            s.extend(task, lease).await;
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_up_that_came_after_an_extension_is_run() {
    for (passed, lease) in
        [(0, secs(29)), (1, secs(30)), (1, secs(29)), (5, Duration::from_micros(30_999_999))]
    {
        is_run_when(async |s, task| {
            s.pass(passed).await;
            s.extend(task, lease).await;
            s.run_again(task.key.id.as_str()).await;
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_up_that_came_between_two_extensions_is_run() {
    is_run_when(async |s, task| {
        s.extend(task, secs(60)).await;
        s.run_again(task.key.id.as_str()).await;
        s.pass(1).await;
        s.extend(task, secs(60)).await;
        s.run_again(task.key.id.as_str()).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_up_outlives_a_release_and_a_retry() {
    for settlement in [Settlement::Release, retry(0)] {
        let s = Scene::new().await;
        let running = s.running(tasks(names("a", 6))).await;
        s.run_again("a0002").await;
        let mut batch: Vec<_> = running.iter().map(|task| (held(task), complete())).collect();
        batch[2].1 = settlement;
        s.settle(batch).await;
        s.enqueue(tasks(names("b", 6))).await;
        let running = s.claim(99).await;
        assert_eq!(running.len(), 7);
        assert!(running[0].runs_again && running[0].payload.is_empty());
        s.end(&running).await;
        let again = s.claim(99).await;
        assert_eq!((ids(&again), again[0].payload.as_ref()), (vec!["a0002"], &b"again"[..]));
        s.end(&again).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_up_of_a_task_that_was_taken_over_is_run_by_the_new_holder() {
    use poolwright_broker::{TakeOver, Upkeep};
    use poolwright_conformance::builders::{LEASE, queues};
    use poolwright_core::Timestamp;

    let s = Scene::new().await;
    let running = s.running(tasks(names("a", 5))).await;
    s.run_again("a0001").await;
    s.pass(31).await;
    let request = TakeOver { queues: queues(&["q"]), limit: 99, lease: LEASE, not_after: Timestamp::MAX };
    let taken = s.store.take_over(request).await.unwrap();
    assert_eq!(ids(&taken), names("a", 5));
    assert!(s.complete(&running).await.iter().all(Result::is_err), "all were taken over");
    s.end(&taken).await;
    assert_eq!(s.claim(9).await[0].payload, "again");
}
