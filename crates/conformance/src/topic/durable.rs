//! Group `durable`: what was stored is there after the store was closed and opened again.

use poolwright_broker::{Extension, Find, How};
use poolwright_core::{Settlement, State, Subject};

use crate::Outcome;
use crate::builders::{
    LEASE, QUEUE, archive, claim, complete, hold, keep, key, queue, queues, retry, task, tasks,
};
use crate::stage::{STATES, Stage, held, ids};

pub(crate) async fn every_task_is_there_again(s: Stage<'_>) -> Outcome {
    for state in STATES {
        let of = task(state.as_str()).payload("p\0").header("h", "v").subject("doc", "1").scope("base", "1");
        s.reach(state, of.unique(state.as_str(), 1_000).tenant("t").retention(5)).await?;
    }
    let mut before = Vec::new();
    for state in STATES {
        before.push(s.the(state.as_str()).await?);
    }
    let numbers = s.stats().await?;
    let history = s.broker().history(queue(QUEUE), 3).await?;
    s.harness().reopen().await;
    for task in before {
        assert_eq!(s.the(task.key.id.as_str()).await?, task);
    }
    assert_eq!(s.stats().await?, numbers);
    assert_eq!(s.broker().history(queue(QUEUE), 3).await?, history);
    let found = s.broker().find(Find::Subject(Subject::new("doc", "1")), 9).await?;
    assert_eq!(found.tasks.len(), 6);
    for state in STATES {
        let taken = s.enqueue(task("other").unique(state.as_str(), 1_000)).await;
        assert_eq!(taken.is_err(), state.is_live(), "{state}: its lock is as it was");
        if taken.is_ok() {
            s.broker().delete(key(QUEUE, "other")).await?;
        }
    }
    Ok(())
}

pub(crate) async fn a_running_attempt_goes_on_across_it(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b"])).await?;
    let mut request = claim(s.claim_id(), 2, &[QUEUE]);
    let taken = s.claim_as(request.clone()).await?;
    s.broker().progress(held(&taken[0]), 0.5, "half".into()).await?;
    s.harness().reopen().await;
    request.resent = true;
    assert_eq!(ids(&s.claim_as(request).await?), ["a", "b"], "a claim whose reply was lost with the store");
    assert_eq!(s.extend(&taken[0], LEASE).await?, Extension::Kept(s.now() + LEASE));
    assert!(s.the("a").await?.progress.is_some());
    assert_eq!(s.settle(&taken[0], complete()).await?.state, None);
    s.settle(&taken[1], Settlement::Release).await?;
    s.enqueue(task("c")).await?;
    assert_eq!(ids(&s.claim(9).await?), ["b", "c"]);
    Ok(())
}

pub(crate) async fn what_waits_beside_a_task_is_there_again(s: Stage<'_>) -> Outcome {
    let running = s.running(task("a")).await?;
    s.enqueue(task("a").payload("again").run_again()).await?;
    s.broker().request_cancel(vec![key(QUEUE, "a")]).await?;
    let dead = s.settled(task("dead"), archive()).await?;
    s.settled(task("recorded"), archive()).await?;
    s.broker()
        .mark_recorded(vec![poolwright_broker::Held::new(
            key(QUEUE, "recorded"),
            s.the("recorded").await?.token.expect("it was claimed"),
        )])
        .await?;
    s.harness().reopen().await;
    let seen = s.the("a").await?;
    assert!(seen.runs_again && seen.cancel_requested);
    s.settle(&running, complete()).await?;
    assert_eq!(s.take().await?.payload, "again");
    assert_eq!(ids(&s.broker().unrecorded(queues(&[QUEUE]), 9).await?), ["dead"]);
    s.broker().mark_recorded(vec![held(&dead)]).await?;
    assert!(s.broker().unrecorded(queues(&[QUEUE]), 9).await?.is_empty());
    Ok(())
}

pub(crate) async fn order_pause_and_times_are_there_again(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["c", "a", "b"])).await?;
    s.enqueue(task("due").after(60)).await?;
    let taken = s.take().await?;
    s.settle(&taken, hold("no")).await?;
    let paused = s.stats().await?.paused;
    s.harness().reopen().await;
    assert_eq!(s.stats().await?.paused, paused);
    s.broker().resume(queue(QUEUE)).await?;
    s.elapse(60 + s.harness().precision().as_secs()).await;
    s.enqueue(task("later")).await?;
    s.promote().await?;
    assert_eq!(ids(&s.claim(9).await?), ["c", "a", "b", "later", "due"]);
    Ok(())
}

pub(crate) async fn it_can_be_opened_again_and_again(s: Stage<'_>) -> Outcome {
    for round in 0..4 {
        let id = format!("t{round}");
        assert_eq!(s.enqueue(task(&id)).await?.how, How::Stored);
        s.harness().reopen().await;
        let taken = s.take().await?;
        s.settle(&taken, if round % 2 == 0 { keep(600, b"r") } else { retry(600) }).await?;
        s.harness().reopen().await;
    }
    let stats = s.stats().await?;
    assert_eq!((stats.count(State::Completed), stats.count(State::Retry)), (2, 2));
    assert_eq!((stats.processed, stats.failed), (4, 2));
    Ok(())
}
