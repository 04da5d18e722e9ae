//! Batches: many whole steps in one call, each with its own outcome.

use poolwright_broker::{CancelOutcome, Error, Extension, How, Settled};
use poolwright_core::{Settlement, State};

use crate::Outcome;
use crate::builders::{LEASE, QUEUE, archive, complete, key, queue, retry, task, tasks};
use crate::stage::{Stage, held, ids, lease_lost, not_found};

pub(crate) async fn an_empty_batch_has_no_outcomes(s: Stage<'_>) -> Outcome {
    assert!(s.broker().enqueue(vec![]).await?.is_empty());
    assert!(s.broker().settle(vec![]).await?.is_empty());
    assert!(s.broker().extend(vec![], LEASE).await?.is_empty());
    assert!(s.broker().request_cancel(vec![]).await?.is_empty());
    assert!(s.broker().queue_stats(vec![]).await?.is_empty());
    s.broker().mark_recorded(vec![]).await?;
    assert!(s.broker().queues().await?.is_empty());
    Ok(())
}

pub(crate) async fn each_task_of_a_batch_has_its_own_outcome(s: Stage<'_>) -> Outcome {
    s.enqueue(task("taken")).await?;
    s.enqueue(task("holder").unique("lock", 60)).await?;
    let batch = vec![
        task("a").build(),
        task("taken").build(),
        task("b").unique("lock", 60).build(),
        task("c").after(60).build(),
        task("taken").run_again().build(),
        task("d").queue("other").build(),
    ];
    let outcomes = s.enqueue_all(batch).await?;
    let seen: Vec<_> = outcomes.into_iter().map(|outcome| outcome.map(|ok| (ok.state, ok.how))).collect();
    let expected = [
        Ok((State::Pending, How::Stored)),
        Err(Error::DuplicateId { key: key(QUEUE, "taken"), state: State::Pending }),
        Err(Error::DuplicateUnique { holder: key(QUEUE, "holder") }),
        Ok((State::Scheduled, How::Stored)),
        Ok((State::Pending, How::Coalesced)),
        Ok((State::Pending, How::Stored)),
    ];
    assert_eq!(seen, expected);
    assert_eq!(ids(&s.claim(9).await?), ["taken", "holder", "a"]);
    Ok(())
}

pub(crate) async fn where_two_of_a_batch_collide_the_first_wins(s: Stage<'_>) -> Outcome {
    let batch = vec![
        task("a").payload("first").build(),
        task("a").payload("second").build(),
        task("b").unique("lock", 60).build(),
        task("c").unique("lock", 60).build(),
        task("d").payload("first").run_again().build(),
        task("d").payload("second").run_again().build(),
    ];
    let outcomes = s.enqueue_all(batch).await?;
    let failed: Vec<_> = outcomes.iter().map(Result::is_err).collect();
    assert_eq!(failed, [false, true, false, true, false, false]);
    assert_eq!(outcomes[3], Err(Error::DuplicateUnique { holder: key(QUEUE, "b") }));
    assert_eq!(s.the("a").await?.payload, "first");
    assert_eq!(s.the("d").await?.payload, "first", "the second coalesced");
    assert_eq!(s.stats().await?.pending, 3);
    Ok(())
}

pub(crate) async fn a_batch_is_claimed_in_its_order(s: Stage<'_>) -> Outcome {
    let names: Vec<String> = (0..1_000).map(|n| format!("{:03}", (n * 7) % 1_000)).collect();
    for outcome in s.enqueue_all(tasks(&names)).await? {
        outcome?;
    }
    assert_eq!(ids(&s.claim(1_000).await?), names);
    Ok(())
}

pub(crate) async fn each_settlement_of_a_batch_has_its_own_outcome(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b", "c", "d"])).await?;
    let taken = s.claim(4).await?;
    s.settle(&taken[1], Settlement::Release).await?;
    let again = s.take().await?;
    s.settle(&taken[3], complete()).await?;
    let batch = vec![
        (held(&taken[0]), retry(60)),
        (held(&taken[1]), complete()),
        (held(&taken[2]), archive()),
        (held(&taken[3]), complete()),
        (held(&again), Settlement::Discard),
    ];
    let at = s.now();
    let outcomes = s.broker().settle(batch).await?;
    let expected = [
        Ok(Settled { state: Some(State::Retry), at }),
        Err(lease_lost("b")),
        Ok(Settled { state: Some(State::Archived), at }),
        Err(not_found("d")),
        Ok(Settled { state: None, at }),
    ];
    assert_eq!(outcomes, expected);
    Ok(())
}

pub(crate) async fn one_settlement_twice_in_a_batch_is_done_once(s: Stage<'_>) -> Outcome {
    let taken = s.running(task("a")).await?;
    let at = s.now();
    let outcomes = s.broker().settle(vec![(held(&taken), retry(60)), (held(&taken), retry(60))]).await?;
    assert_eq!(
        outcomes,
        [Ok(Settled { state: Some(State::Retry), at }), Ok(Settled { state: Some(State::Retry), at })]
    );
    let stats = s.stats().await?;
    assert_eq!((s.the("a").await?.retried, stats.processed, stats.failed), (1, 1, 1));
    Ok(())
}

pub(crate) async fn leases_and_requests_are_answered_one_by_one(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b", "c"])).await?;
    let taken = s.claim(3).await?;
    s.settle(&taken[1], complete()).await?;
    let outcomes =
        s.broker().request_cancel(vec![key(QUEUE, "none"), key(QUEUE, "c"), key(QUEUE, "c")]).await?;
    assert_eq!(outcomes, [CancelOutcome::NotFound, CancelOutcome::Signalled, CancelOutcome::Signalled]);
    let answers = s.broker().extend(taken.iter().map(held).collect(), LEASE).await?;
    let until = s.now() + LEASE;
    assert_eq!(answers, [Extension::Kept(until), Extension::Lost, Extension::Cancelled(until)]);
    Ok(())
}

pub(crate) async fn settlements_of_many_queues_travel_together(s: Stage<'_>) -> Outcome {
    let mut batch = Vec::new();
    for name in ["x", "y", "z"] {
        let taken = s.running(task("a").queue(name)).await?;
        batch.push((held(&taken), crate::builders::hold(name)));
    }
    for outcome in s.broker().settle(batch).await? {
        outcome?;
    }
    for name in ["x", "y", "z"] {
        let stats = s.broker().queue_stats(vec![queue(name)]).await?.remove(0);
        assert_eq!(stats.paused.map(|paused| paused.reason).as_deref(), Some(name));
    }
    Ok(())
}
