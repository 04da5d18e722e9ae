//! Calls of workers and producers whose answer is lost, or that are cut off at any byte: done once, and the caller hears it.

use std::time::Duration;

use poolwright_broker::{Dispatch, Error, Extension, Held, How, Inspect, Submit};
use poolwright_conformance::builders::{archive, claim, keep, key, queues, tasks};
use poolwright_core::State;
use poolwright_testbed::{Direction, Fault, Proxy, RedisServer};

use crate::stage::keyspace::assert_sound;
use crate::{numbers, open, until_answered};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_replies_of_every_step_are_made_good() {
    let server = RedisServer::start().await.unwrap();
    let proxy = Proxy::before(&server).unwrap();
    let store = open(proxy.url()).await;

    proxy.arm(Fault::LoseReplyTo(b"asynq:{q}:pending".to_vec()));
    let outcome = store.enqueue(tasks(["a", "b"])).await.unwrap();
    assert!(
        outcome.iter().all(|stored| stored.as_ref().is_ok_and(|stored| stored.how == How::Stored)),
        "{outcome:?}"
    );
    assert_eq!(numbers(&store).await, (2, 0, 0), "each was stored once");

    proxy.arm(Fault::LoseReplyTo(b"asynq:{q}:pending".to_vec()));
    let mut request = claim(7, 2, &["q"]);
    assert!(store.claim(request.clone()).await.unwrap_err().is_retryable());
    request.resent = true;
    let got = until_answered(async || store.claim(request.clone()).await).await;
    assert_eq!((got.claims.len(), numbers(&store).await), (2, (0, 2, 0)));

    for (at, settlement) in [(0, keep(60, b"r")), (1, archive())] {
        let held = Held::of(&got.claims[at].task).unwrap();
        proxy.arm(Fault::LoseReplyTo(b"asynq:{q}:pending".to_vec()));
        let settle = async || store.settle(vec![(held.clone(), settlement.clone())]).await;
        assert!(settle().await.unwrap_err().is_retryable());
        let outcome = until_answered(settle).await.remove(0);
        assert!(outcome.unwrap().state.is_some(), "it was done, and is not done again");
    }
    assert_eq!(numbers(&store).await, (0, 0, 2));
    proxy.disarm();
    assert_sound(&server, "after the settlements").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_cut_at_any_byte_of_an_enqueue_stores_all_or_nothing_and_once() {
    let server = RedisServer::start().await.unwrap();
    let proxy = Proxy::before(&server).unwrap();
    let store = open(proxy.url()).await;
    store.enqueue(tasks(["first"])).await.unwrap().remove(0).unwrap();
    let begun = proxy.traffic();
    store.enqueue(tasks(["measure"])).await.unwrap().remove(0).unwrap();
    let length = proxy.traffic().to_server - begun.to_server;
    for (nth, at) in (0..=length).step_by(17).enumerate() {
        proxy.arm(Fault::CutAfter(Direction::ToServer, at));
        let id = format!("t{nth}");
        let outcome = until_answered(async || store.enqueue(tasks([&id])).await).await.remove(0);
        proxy.disarm();
        let there = store.get(key("q", &id)).await.unwrap();
        assert!(there.is_some_and(|task| task.state == State::Pending), "cut at {at}");
        assert!(matches!(outcome, Ok(_) | Err(Error::DuplicateId { .. })), "cut at {at}: {outcome:?}");
        assert_sound(&server, at).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_extensions_settlements_and_operations_cut_at_any_byte_are_done_once() {
    let server = RedisServer::start().await.unwrap();
    let proxy = Proxy::before(&server).unwrap();
    let store = open(proxy.url()).await;
    let faults = [Direction::ToServer, Direction::ToClient]
        .into_iter()
        .flat_map(|way| (0..600).step_by(61).map(move |at| Fault::CutAfter(way, at)));
    let mut ended = 0;
    for (nth, fault) in faults.enumerate() {
        let id = format!("t{nth}");
        until_answered(async || store.enqueue(tasks([&id])).await).await.remove(0).unwrap();

        let mut request = claim(nth as u64 + 1, 1, &["q"]);
        proxy.arm(fault.clone());
        let claimed = until_answered(async || {
            let answer = store.claim(request.clone()).await;
            request.resent = true;
            answer
        })
        .await;
        assert_eq!(claimed.claims.len(), 1, "{fault:?}");
        assert_eq!(claimed.claims[0].task.key, key("q", &id), "{fault:?}");
        let held = Held::of(&claimed.claims[0].task).unwrap();

        proxy.arm(fault.clone());
        let lease = Duration::from_secs(60);
        let kept = until_answered(async || store.extend(vec![held.clone()], lease).await).await;
        assert!(matches!(kept[0], Extension::Kept(_)), "{fault:?}: {kept:?}");

        proxy.arm(fault.clone());
        let settle = async || store.settle(vec![(held.clone(), archive())]).await;
        let settled = until_answered(settle).await.remove(0).unwrap();
        assert_eq!(settled.state, Some(State::Archived), "{fault:?}");
        ended += 1;

        proxy.arm(fault.clone());
        let deleted = until_answered(async || match store.delete(key("q", &id)).await {
            // The first call did it, and its answer was lost.
            Err(Error::NotFound { .. }) => Ok(State::Archived),
            answer => answer,
        });
        assert_eq!(deleted.await, State::Archived, "{fault:?}");
        proxy.disarm();
        let now = until_answered(async || store.queue_stats(queues(&["q"])).await).await.remove(0);
        assert_eq!((now.size(), now.processed, now.failed), (0, ended, ended), "{fault:?}");
        assert_sound(&server, &fault).await;
    }
}
