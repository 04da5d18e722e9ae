//! Many callers at once: one task, one holder, one end.

use std::collections::BTreeSet;
use std::sync::Arc;

use poolwright_broker::{Error, TakeOver};
use poolwright_core::{OnConflict, Timestamp};
use tokio::task::JoinSet;

use crate::Outcome;
use crate::builders::{LEASE, QUEUE, claim, complete, key, queues, task, tasks};
use crate::stage::{Stage, held};

const CALLERS: u64 = 20;

pub(crate) async fn twenty_claimers_get_no_task_twice(s: Stage<'_>) -> Outcome {
    const TASKS: usize = 1_000;
    s.enqueue_all(tasks((0..TASKS).map(|n| n.to_string()))).await?;
    let mut claimers = JoinSet::new();
    for caller in 0..CALLERS {
        let broker = s.broker();
        claimers.spawn(async move {
            let mut taken = Vec::new();
            for round in 0.. {
                let reply = broker.claim(claim(caller * 10_000 + round, 3, &[QUEUE])).await?;
                if reply.claims.is_empty() {
                    break;
                }
                taken.extend(reply.claims.into_iter().map(|claim| claim.task));
            }
            Ok::<_, Error>(taken)
        });
    }
    let mut seen = BTreeSet::new();
    while let Some(taken) = claimers.join_next().await {
        for task in taken?? {
            assert!(seen.insert(task.key.clone()), "{} was claimed twice", task.key);
        }
    }
    assert_eq!(seen.len(), TASKS);
    assert_eq!(s.stats().await?.active, TASKS as u64);
    Ok(())
}

pub(crate) async fn of_a_settlement_and_a_take_over_one_wins(s: Stage<'_>) -> Outcome {
    for round in 0..50 {
        let id = format!("t{round}");
        let taken = s.running(task(&id)).await?;
        s.elapse(LEASE.as_secs()).await;
        let (settler, reaper) = (s.broker(), s.broker());
        let proof = held(&taken);
        let settle = async move { settler.settle(vec![(proof, complete())]).await };
        let request =
            TakeOver { queues: queues(&[QUEUE]), limit: 9, lease: LEASE, not_after: Timestamp::MAX };
        let take_over = async move { reaper.take_over(request).await };
        // Each is the first to start as often as the other.
        let (settling, taking) = if round % 2 == 0 {
            let settling = tokio::spawn(settle);
            (settling, tokio::spawn(take_over))
        } else {
            let taking = tokio::spawn(take_over);
            (tokio::spawn(settle), taking)
        };
        let (settled, taken_over) = (settling.await??.remove(0), taking.await??);
        match (settled, taken_over.as_slice()) {
            (Ok(_), []) => assert_eq!(s.find(&id).await?, None),
            (Err(Error::LeaseLost { .. }), [taken_over]) => {
                assert_eq!(s.the(&id).await?.token, taken_over.token);
                s.settle(taken_over, complete()).await?;
            }
            (settled, taken_over) => panic!("settled {settled:?}, taken over {taken_over:?}"),
        }
    }
    assert_eq!(s.stats().await?.processed, 50, "each ended once");
    Ok(())
}

/// Sends one enqueue from each of many callers; gives how each was answered.
async fn enqueue_together(
    s: &Stage<'_>,
    make: impl Fn(u64) -> crate::builders::TaskBuilder,
) -> Result<Vec<Result<poolwright_broker::Enqueued, Error>>, crate::Failed> {
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (broker, task) = (s.broker(), make(caller).build());
        callers.spawn(async move { broker.enqueue(vec![task]).await });
    }
    let mut outcomes = Vec::new();
    while let Some(answer) = callers.join_next().await {
        outcomes.extend(answer??);
    }
    Ok(outcomes)
}

pub(crate) async fn of_many_enqueues_of_one_id_exactly_one_is_stored(s: Stage<'_>) -> Outcome {
    for on_conflict in [OnConflict::Reject, OnConflict::ReplaceFinished] {
        let id = format!("{on_conflict:?}");
        let outcomes = enqueue_together(&s, |_| task(&id).on_conflict(on_conflict)).await?;
        assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
        let duplicate = |error: &Error| matches!(error, Error::DuplicateId { .. });
        assert_eq!(outcomes.iter().filter_map(|o| o.as_ref().err()).filter(|e| duplicate(e)).count(), 19);
    }
    assert_eq!(s.stats().await?.pending, 2);
    Ok(())
}

pub(crate) async fn of_many_enqueues_with_one_lock_exactly_one_is_stored(s: Stage<'_>) -> Outcome {
    let outcomes = enqueue_together(&s, |caller| task(&caller.to_string()).unique("lock", 60)).await?;
    let winner = outcomes.iter().find_map(|outcome| outcome.as_ref().ok()).expect("one won").key.clone();
    for refused in outcomes.into_iter().filter(Result::is_err) {
        assert_eq!(refused, Err(Error::DuplicateUnique { holder: winner.clone() }));
    }
    assert_eq!(s.stats().await?.pending, 1);
    Ok(())
}

pub(crate) async fn of_many_settlements_of_one_attempt_one_is_done(s: Stage<'_>) -> Outcome {
    let taken = s.running(task("a")).await?;
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (broker, proof) = (s.broker(), held(&taken));
        callers.spawn(async move { broker.settle(vec![(proof, complete())]).await });
    }
    let mut done = 0;
    while let Some(answer) = callers.join_next().await {
        match answer??.remove(0) {
            Ok(_) => done += 1,
            Err(error) => assert_eq!(error, Error::NotFound { key: key(QUEUE, "a") }),
        }
    }
    assert_eq!((done, s.stats().await?.processed), (1, 1));
    Ok(())
}

pub(crate) async fn many_take_overs_at_once_take_each_task_once(s: Stage<'_>) -> Outcome {
    const TASKS: usize = 100;
    s.enqueue_all(tasks((0..TASKS).map(|n| n.to_string()))).await?;
    s.claim(u32::MAX).await?;
    s.elapse(LEASE.as_secs()).await;
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let broker = s.broker();
        callers.spawn(async move {
            let queues = queues(&[QUEUE]);
            broker.take_over(TakeOver { queues, limit: 10, lease: LEASE, not_after: Timestamp::MAX }).await
        });
    }
    let mut seen = BTreeSet::new();
    while let Some(taken) = callers.join_next().await {
        for task in taken?? {
            assert!(seen.insert(task.key.clone()), "{} was taken over twice", task.key);
        }
    }
    assert_eq!(seen.len(), TASKS);
    Ok(())
}

/// Producers and workers together, as in life: everything that went in comes out once.
pub(crate) async fn producers_and_workers_together_lose_nothing(s: Stage<'_>) -> Outcome {
    const EACH: u64 = 50;
    let mut producers = JoinSet::new();
    for producer in 0..4 {
        let broker = s.broker();
        producers.spawn(async move {
            for n in 0..EACH {
                broker.enqueue(vec![task(&format!("{producer}-{n}")).build()]).await?.remove(0)?;
            }
            Ok::<_, Error>(())
        });
    }
    let done = Arc::new(tokio::sync::Semaphore::new(0));
    let mut workers = JoinSet::new();
    for worker in 0..4 {
        let (broker, done) = (s.broker(), Arc::clone(&done));
        workers.spawn(async move {
            let mut watching = broker.watch(queues(&[QUEUE]));
            for round in 0.. {
                let claimed = broker.claim(claim(worker * 100_000 + round, 5, &[QUEUE])).await?.claims;
                let batch: Vec<_> = claimed.iter().map(|c| (held(&c.task), complete())).collect();
                let settled = batch.len();
                for outcome in broker.settle(batch).await? {
                    outcome?;
                }
                done.add_permits(settled);
                if settled == 0 {
                    watching.changed().await;
                }
            }
            Ok::<_, Error>(())
        });
    }
    while let Some(produced) = producers.join_next().await {
        produced??;
    }
    let all = u32::try_from(4 * EACH).expect("is small");
    let _ended = s.soon("all tasks to end", done.acquire_many(all)).await?;
    workers.shutdown().await;
    let stats = s.stats().await?;
    assert_eq!((stats.size(), stats.processed, stats.failed), (0, 4 * EACH, 0));
    Ok(())
}
