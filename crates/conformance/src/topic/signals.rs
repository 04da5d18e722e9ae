//! Watches and cancellations: nothing that happened is missed.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use poolwright_broker::{Bulk, BulkAction, Cancel, Watch};
use poolwright_core::{BoxFuture, Settlement, State, When};

use crate::Outcome;
use crate::builders::{QUEUE, complete, hold, key, queue, queues, retry, secs, task, tasks};
use crate::stage::{Stage, soon};

fn watch(s: &Stage<'_>) -> Box<dyn Watch> {
    s.broker().watch(queues(&[QUEUE]))
}

/// Asserts that the watch says what has happened since it was made.
async fn told(s: &Stage<'_>, mut watch: Box<dyn Watch>, of: &str) {
    s.soon(of, watch.changed()).await;
}

/// Polls a future once and drops it.
async fn poll_once(mut future: BoxFuture<'_, ()>) {
    poll_fn(|cx| {
        let (Poll::Ready(()) | Poll::Pending) = future.as_mut().poll(cx);
        Poll::Ready(())
    })
    .await;
}

pub(crate) async fn an_enqueue_wakes(s: Stage<'_>) -> Outcome {
    let watching = watch(&s);
    s.enqueue(task("a")).await?;
    told(&s, watching, "an enqueue").await;

    let watching = watch(&s);
    s.enqueue(task("b").after(60)).await?;
    told(&s, watching, "an enqueue of a delayed task: the next due time may have changed").await;
    Ok(())
}

pub(crate) async fn a_promotion_wakes(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").after(10)).await?;
    s.elapse(20).await;
    let watching = watch(&s);
    s.promote().await?;
    told(&s, watching, "a promotion").await;
    Ok(())
}

pub(crate) async fn settlements_that_leave_work_wake(s: Stage<'_>) -> Outcome {
    for settlement in [retry(0), Settlement::Release, retry(60)] {
        let taken = s.running(task(&format!("t{}", s.claim_id()))).await?;
        let watching = watch(&s);
        s.settle(&taken, settlement.clone()).await?;
        told(&s, watching, &format!("{settlement:?}")).await;
        for task in s.claim(9).await? {
            s.settle(&task, complete()).await?;
        }
    }
    let running = s.running(task("a")).await?;
    s.enqueue(task("a").run_again()).await?;
    let watching = watch(&s);
    s.settle(&running, complete()).await?;
    told(&s, watching, "a settlement that started a follow-up").await;
    Ok(())
}

pub(crate) async fn what_an_operator_makes_claimable_wakes(s: Stage<'_>) -> Outcome {
    s.reach(State::Archived, task("archived")).await?;
    let watching = watch(&s);
    s.broker().run_now(key(QUEUE, "archived")).await?;
    told(&s, watching, "run_now").await;

    s.enqueue(task("a").after(600)).await?;
    for when in [When::After(secs(60)), When::Now] {
        let watching = watch(&s);
        s.broker().reschedule(key(QUEUE, "a"), when).await?;
        told(&s, watching, &format!("reschedule {when:?}")).await;
    }

    s.enqueue(task("b").after(600)).await?;
    let watching = watch(&s);
    let bulk = Bulk {
        queue: queue(QUEUE),
        state: State::Scheduled,
        action: BulkAction::RunNow,
        limit: 9,
        reason: String::new(),
    };
    s.broker().bulk(bulk).await?;
    told(&s, watching, "run_now in bulk").await;
    Ok(())
}

pub(crate) async fn the_end_of_a_pause_wakes(s: Stage<'_>) -> Outcome {
    let taken = s.running(task("a")).await?;
    s.settle(&taken, hold("no")).await?;
    let watching = watch(&s);
    s.broker().resume(queue(QUEUE)).await?;
    told(&s, watching, "resume").await;
    Ok(())
}

pub(crate) async fn a_watch_looks_at_all_its_queues(s: Stage<'_>) -> Outcome {
    let mut watching = s.broker().watch(queues(&["x", "y", "z"]));
    for name in ["z", "x", "y"] {
        s.enqueue(task("a").queue(name)).await?;
        s.soon(&format!("an enqueue to {name}"), watching.changed()).await;
    }
    Ok(())
}

pub(crate) async fn every_watch_is_told(s: Stage<'_>) -> Outcome {
    let watches = [watch(&s), watch(&s), watch(&s)];
    s.enqueue(task("a")).await?;
    for (at, watching) in watches.into_iter().enumerate() {
        told(&s, watching, &format!("an enqueue, watch {at}")).await;
    }
    Ok(())
}

pub(crate) async fn one_that_waits_already_is_woken(s: Stage<'_>) -> Outcome {
    let watching = watch(&s);
    let waiting = {
        let (mut watching, safety) = (watching, s.safety());
        tokio::spawn(async move { soon(safety, "an enqueue while it waits", watching.changed()).await })
    };
    tokio::task::yield_now().await;
    s.enqueue(task("a")).await?;
    waiting.await?;
    Ok(())
}

pub(crate) async fn a_wait_that_is_dropped_loses_nothing(s: Stage<'_>) -> Outcome {
    // Dropped before it happened.
    let mut watching = watch(&s);
    poll_once(watching.changed()).await;
    s.enqueue(task("a")).await?;
    s.soon("what happened after a wait was dropped", watching.changed()).await;

    // Dropped without a poll after it happened.
    s.enqueue(task("b")).await?;
    drop(watching.changed());
    s.soon("what a dropped wait would have said", watching.changed()).await;
    Ok(())
}

/// The loop that every worker runs: watch, then claim, then wait. With one lost wake-up it would hang.
pub(crate) async fn watch_claim_wait_finds_every_task(s: Stage<'_>) -> Outcome {
    const TASKS: u32 = 300;
    let broker = s.broker();
    let worker = tokio::spawn({
        let broker = Arc::clone(&broker);
        async move {
            let mut watching = broker.watch(queues(&[QUEUE]));
            let mut found = 0;
            while found < TASKS {
                let taken = broker.claim(crate::builders::claim(9_000, 7, &[QUEUE])).await?.claims.len();
                found += u32::try_from(taken).expect("at most seven");
                if taken == 0 {
                    watching.changed().await;
                }
            }
            Ok::<_, poolwright_broker::Error>(())
        }
    });
    for n in 0..TASKS {
        s.enqueue(task(&n.to_string())).await?;
        tokio::task::yield_now().await;
    }
    s.soon("a worker that waits for the watch alone", worker).await??;
    Ok(())
}

pub(crate) async fn cancellations_reach_every_listener_in_order(s: Stage<'_>) -> Outcome {
    let broker = s.broker();
    let mut feeds = [broker.subscribe().await?, broker.subscribe().await?];
    for id in ["a", "b", "c"] {
        broker.publish(Cancel { key: key(QUEUE, id) }).await?;
    }
    for feed in &mut feeds {
        for id in ["a", "b", "c"] {
            let heard = s.soon("a cancellation", feed.next()).await;
            assert_eq!(heard, Some(Cancel { key: key(QUEUE, id) }));
        }
    }
    Ok(())
}

pub(crate) async fn a_cancellation_without_listeners_is_no_error(s: Stage<'_>) -> Outcome {
    s.broker().publish(Cancel { key: key(QUEUE, "a") }).await?;
    let mut feed = s.broker().subscribe().await?;
    s.broker().publish(Cancel { key: key(QUEUE, "b") }).await?;
    let heard = s.soon("a cancellation", feed.next()).await;
    assert_eq!(heard, Some(Cancel { key: key(QUEUE, "b") }), "it listens from now on");
    Ok(())
}

pub(crate) async fn a_slow_listener_loses_the_oldest_and_goes_on(s: Stage<'_>) -> Outcome {
    const MANY: usize = 20_000;
    let mut feed = s.broker().subscribe().await?;
    for n in 0..MANY {
        s.broker().publish(Cancel { key: key(QUEUE, &n.to_string()) }).await?;
    }
    let last = key(QUEUE, &(MANY - 1).to_string());
    let mut before = None;
    loop {
        let heard = s.soon("a cancellation", feed.next()).await.expect("the store is open").key;
        let at: usize = heard.id.as_str().parse()?;
        assert!(before < Some(at), "they come in order, each once");
        before = Some(at);
        if heard == last {
            return Ok(());
        }
    }
}

pub(crate) async fn a_watch_tells_of_one_event_after_another(s: Stage<'_>) -> Outcome {
    let mut watching = watch(&s);
    for n in 0..20 {
        s.enqueue_all(tasks([format!("a{n}"), format!("b{n}")])).await?;
        s.soon("each of many events", watching.changed()).await;
    }
    Ok(())
}
