//! What goes wrong with some loses nobody else: very many, rubbish beside them, a neighbour that is refused or goes away.

use std::task::{Context, Waker};
use std::time::Duration;

use futures_util::future::join_all;
use poolwright_broker::{ClaimRequest, Dispatch, Inspect, Submit};
use poolwright_conformance::builders::{LEASE, archive, complete, demand, key, secs, task, tasks};
use poolwright_store_redis::{RedisOptions, RedisStore};
use poolwright_testbed::RedisServer;
use tokio::time::timeout;

use crate::scene::{Scene, held, ids, names};

const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_demands_on_one_queue_leave_nobody_behind() {
    for (count, demands, flagged) in [(4_500, 9, 0), (8_500, 17, 1)] {
        let scene = Scene::new().await;
        scene.enqueue(tasks(names("a", count))).await;
        let flags: Vec<_> = (0..flagged).map(|at| key("q", &format!("a{:04}", count - 100 - at))).collect();
        scene.other.request_cancel(flags).await.unwrap();
        let demands = (0..demands).map(|at| demand("pool", 500, &[("q", 1)], at)).collect();
        let request = ClaimRequest { demands, ..scene.request(0, &[]) };
        let claimed = scene.store.claim(request).await.unwrap();
        assert_eq!(
            (claimed.claims.len(), claimed.discarded),
            (count - flagged, u32::try_from(flagged).unwrap())
        );
        assert_eq!(
            (scene.list("pending").await.len(), scene.list("active").await.len()),
            (0, count - flagged)
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_count_of_claims_that_is_rubbish_loses_nobody() {
    for flagged in [false, true] {
        let scene = Scene::new().await;
        scene.enqueue(tasks(names("a", 8))).await;
        if flagged {
            scene.other.request_cancel(vec![key("q", "a0003")]).await.unwrap();
        }
        scene.redis(&["LPUSH", "asynq:{q}:claims", "x"]).await;
        scene.store.claim(scene.request(5, &["q"])).await.unwrap_err();
        assert_eq!((scene.list("pending").await.len(), scene.list("active").await.len()), (8, 0));
        scene.redis(&["SET", "asynq:{q}:claims", "x"]).await;
        let claimed = scene.claim(8).await;
        assert_eq!(claimed.len(), if flagged { 7 } else { 8 });
        scene.end(&claimed).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follow_up_after_a_shorter_extension_of_another_connection_is_run() {
    let scene = Scene::new().await;
    let running = scene.running(tasks(names("a", 5))).await;
    scene.other.extend(vec![held(&running[2])], LEASE - secs(1)).await.unwrap();
    let follow_up = task("a0002").payload("again").run_again().build();
    scene.other.enqueue(vec![follow_up]).await.unwrap().remove(0).unwrap();
    scene.end(&running).await;
    assert_eq!(ids(&scene.claim(9).await), ["a0002"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_an_exchange_each_half_is_answered_for_itself() {
    let scene = Scene::new().await;
    let running = scene.running(tasks(names("a", 3))).await;
    scene.enqueue(tasks(names("b", 5))).await;
    scene.redis(&["SET", "asynq:{q}:archived", "rubbish"]).await;
    let settlements = vec![(held(&running[0]), archive())];
    let answer = scene.store.exchange(settlements, scene.request(5, &["q"])).await.unwrap();
    answer.outcomes[0].as_ref().unwrap_err();
    assert_eq!(answer.claimed.unwrap().claims.len(), 5, "what was claimed is in somebody's hands");
    scene.redis(&["DEL", "asynq:{q}:archived"]).await;

    scene.enqueue(vec![task("r").queue("r").build()]).await;
    scene.redis(&["SET", "asynq:{r}:lease", "rubbish"]).await;
    let settlements = vec![(held(&running[1]), complete())];
    let answer = scene.store.exchange(settlements, scene.request(5, &["r"])).await.unwrap();
    assert_eq!(answer.outcomes[0].as_ref().unwrap().state, None, "it is done");
    answer.claimed.unwrap_err();
    scene.redis(&["DEL", "asynq:{r}:lease"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_neighbour_hides_no_duplicate_and_stores_nothing() {
    let scene = Scene::new().await;
    scene.enqueue(tasks(["a"])).await;
    scene.redis(&["SET", "asynq:{bad}:pending", "rubbish"]).await;
    let mut all: Vec<_> = (0..4).map(|at| scene.store.enqueue(tasks([format!("x{at}")]))).collect();
    all.push(scene.store.enqueue(tasks(["a"])));
    all.push(scene.store.enqueue(vec![task("b").queue("bad").build()]));
    let answers = join_all(all).await;
    for answer in &answers[..4] {
        answer.as_ref().unwrap()[0].as_ref().unwrap();
    }
    assert!(answers[4].as_ref().unwrap()[0].is_err(), "a duplicate: {answers:?}");
    assert!(answers[5].is_err(), "nothing was stored: {answers:?}");
    scene.redis(&["DEL", "asynq:{bad}:pending"]).await;
    assert!(!scene.keys().await.contains(&"asynq:{bad}:t:b".to_owned()));
}

/// On one thread, so that nothing goes on between the three.
#[tokio::test]
async fn a_caller_that_goes_away_when_its_turn_has_come_keeps_nobody_waiting() {
    let server = RedisServer::start().await.unwrap();
    let store = RedisStore::open(RedisOptions::from_url(&server.unix_url()).unwrap()).await.unwrap();
    for round in 0..4 {
        let go = |name: &str| store.enqueue(tasks([format!("{name}{round}")]));
        let (mut one, mut two, mut three) = (go("one"), go("two"), go("three"));
        let mut context = Context::from_waker(Waker::noop());
        for each in [&mut one, &mut two, &mut three] {
            assert!(each.as_mut().poll(&mut context).is_pending());
        }
        timeout(PATIENCE, one).await.unwrap().unwrap();
        drop(three);
        timeout(PATIENCE, two).await.unwrap().unwrap();
    }
}
