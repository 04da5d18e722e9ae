//! The end of a store.

use std::future::Future;

use poolwright_broker::{Cancel, Error, ServerId};
use poolwright_core::State;

use crate::Outcome;
use crate::builders::{LEASE, QUEUE, claim, complete, key, queue, queues, task};
use crate::stage::{Stage, held, soon};

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(what: &str, answer: Result<T, Error>) {
    assert!(matches!(answer, Err(Error::Refused { .. })), "{what} after the end: {answer:?}");
}

async fn refused<T: std::fmt::Debug>(what: &str, call: impl Future<Output = Result<T, Error>>) {
    assert_refused(what, call.await);
}

pub(crate) async fn a_closed_store_refuses_every_call(s: Stage<'_>) -> Outcome {
    let running = s.running(task("a")).await?;
    s.enqueue(task("b")).await?;
    let broker = s.broker();
    broker.close().await?;
    refused("enqueue", broker.enqueue(vec![task("c").build()])).await;
    refused("claim", broker.claim(claim(1, 1, &[QUEUE]))).await;
    refused("extend", broker.extend(vec![held(&running)], LEASE)).await;
    refused("settle", broker.settle(vec![(held(&running), complete())])).await;
    let settlements = vec![(held(&running), complete())];
    refused("exchange", broker.exchange(settlements, claim(2, 1, &[QUEUE]))).await;
    refused("store_result", broker.store_result(held(&running), "r".into())).await;
    refused("progress", broker.progress(held(&running), 0.5, "half".into())).await;
    refused("promote_due", broker.promote_due(queues(&[QUEUE]), 1)).await;
    refused("unrecorded", broker.unrecorded(queues(&[QUEUE]), 1)).await;
    refused("retire", broker.retire(ServerId("a".into()))).await;
    refused("queues", broker.queues()).await;
    refused("queue_stats", broker.queue_stats(queues(&[QUEUE]))).await;
    refused("page", s.page(State::Pending, 1)).await;
    refused("get", broker.get(key(QUEUE, "a"))).await;
    refused("delete", broker.delete(key(QUEUE, "b"))).await;
    refused("pause", broker.pause(queue(QUEUE), "no".into())).await;
    refused("servers", broker.servers()).await;
    refused("publish", broker.publish(Cancel { key: key(QUEUE, "a") })).await;
    let subscribed = broker.subscribe().await.map(|_| "a feed");
    assert_refused("subscribe", subscribed);
    Ok(())
}

pub(crate) async fn closing_twice_is_no_error(s: Stage<'_>) -> Outcome {
    s.broker().close().await?;
    s.broker().close().await?;
    assert!(!s.broker().describe().is_empty(), "its name is known to the end");
    Ok(())
}

pub(crate) async fn whoever_waits_is_told_of_the_end(s: Stage<'_>) -> Outcome {
    let broker = s.broker();
    let mut watching = broker.watch(queues(&[QUEUE]));
    let mut feed = broker.subscribe().await?;
    let safety = s.safety();
    let waiting = tokio::spawn(async move {
        soon(safety, "a watch of a closed store", watching.changed()).await;
        soon(safety, "a feed of a closed store", feed.next()).await
    });
    tokio::task::yield_now().await;
    broker.close().await?;
    assert_eq!(waiting.await?, None);
    Ok(())
}

pub(crate) async fn the_store_tells_its_time_and_its_name(s: Stage<'_>) -> Outcome {
    let before = s.broker().now();
    s.elapse(60).await;
    let passed = s.broker().now().since(before);
    assert_eq!(passed.as_secs(), 60);
    assert_eq!(s.broker().now(), s.now(), "the harness and the store share one clock");
    assert!(!s.broker().describe().is_empty());
    Ok(())
}
