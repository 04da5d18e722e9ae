//! Settlements: each kind from an active task, and from everything else.

use poolwright_broker::{Held, Paused, Settled};
use poolwright_core::task::Failure;
use poolwright_core::text::{ERROR_BYTES_MAX, error_text};
use poolwright_core::{Charge, Class, Settlement, State, TaskRecord, Token};

use crate::Outcome;
use crate::builders::{QUEUE, archive, complete, hold, keep, key, queue, retry, retry_as, secs, task, tasks};
use crate::observe::assert_same;
use crate::stage::{STATES, Stage, held, ids, lease_lost, not_found};

/// One of each kind.
fn every_settlement() -> [Settlement; 8] {
    [
        complete(),
        keep(600, b"r"),
        retry(0),
        retry(60),
        archive(),
        Settlement::Discard,
        Settlement::Release,
        hold("no"),
    ]
}

/// What an active record keeps when its attempt is over.
fn idle(active: &TaskRecord, state: State) -> TaskRecord {
    TaskRecord { state, started_at: None, lease_until: None, ..active.clone() }
}

pub(crate) async fn a_completed_task_that_is_not_kept_is_gone(s: Stage<'_>) -> Outcome {
    let taken = s.running(task("a").retention(60)).await?;
    s.elapse(3).await;
    assert_eq!(s.settle(&taken, complete()).await?, Settled { state: None, at: s.now() });
    assert_eq!(s.find("a").await?, None);
    assert_eq!(s.stats().await?.size(), 0);
    Ok(())
}

pub(crate) async fn a_completed_task_is_kept_as_long_as_the_settlement_says(s: Stage<'_>) -> Outcome {
    // Not as long as the record says: the judge decides.
    let taken = s.running(task("a").retention(1)).await?;
    s.elapse(3).await;
    assert_eq!(s.settle(&taken, keep(60, b"done")).await?.state, Some(State::Completed));
    let expected = TaskRecord {
        completed_at: Some(s.now()),
        expires_at: Some(s.now() + secs(60)),
        result: Some("done".into()),
        ..idle(&taken, State::Completed)
    };
    assert_same(&s.the("a").await?, &expected);
    Ok(())
}

pub(crate) async fn completing_without_a_result_keeps_what_was_stored(s: Stage<'_>) -> Outcome {
    let without = Settlement::Complete { retain_for: secs(60), result: None };
    for (id, settlement, kept) in [("a", without, "stored"), ("b", keep(60, b"returned"), "returned")] {
        let taken = s.running(task(id)).await?;
        s.broker().store_result(held(&taken), "stored".into()).await?;
        s.settle(&taken, settlement).await?;
        assert_eq!(s.the(id).await?.result, Some(kept.into()));
    }
    Ok(())
}

pub(crate) async fn a_retry_waits_for_its_time(s: Stage<'_>) -> Outcome {
    let taken = s.running(task("a")).await?;
    s.elapse(3).await;
    assert_eq!(s.settle(&taken, retry(60)).await?.state, Some(State::Retry));
    let seen = s.the("a").await?;
    s.assert_time(seen.due, s.now() + secs(60));
    let failed = Failure { class: Class::Transient, error: "it was transient".into(), at: s.now() };
    let expected =
        TaskRecord { due: seen.due, retried: 1, failed: Some(failed), ..idle(&taken, State::Retry) };
    assert_same(&seen, &expected);
    assert!(s.claim(1).await?.is_empty());
    Ok(())
}

pub(crate) async fn a_retry_at_once_goes_to_the_end_of_its_queue(s: Stage<'_>) -> Outcome {
    let taken = s.running(task("a")).await?;
    s.enqueue_all(tasks(["b", "c"])).await?;
    s.elapse(3).await;
    assert_eq!(s.settle(&taken, retry(0)).await?.state, Some(State::Pending));
    let failed = Failure { class: Class::Transient, error: "it was transient".into(), at: s.now() };
    let expected = TaskRecord {
        pending_since: Some(s.now()),
        retried: 1,
        failed: Some(failed),
        ..idle(&taken, State::Pending)
    };
    assert_same(&s.the("a").await?, &expected);
    assert_eq!(ids(&s.claim(9).await?), ["b", "c", "a"]);
    Ok(())
}

pub(crate) async fn an_archived_task_keeps_its_failure(s: Stage<'_>) -> Outcome {
    let taken = s.running(task("a")).await?;
    s.elapse(3).await;
    assert_eq!(s.settle(&taken, archive()).await?.state, Some(State::Archived));
    let failed = Failure { class: Class::Permanent, error: "never".into(), at: s.now() };
    let expected = TaskRecord { failed: Some(failed), ..idle(&taken, State::Archived) };
    assert_same(&s.the("a").await?, &expected);
    assert_eq!(s.the("a").await?.token, taken.token, "the key of its dead letter");
    Ok(())
}

pub(crate) async fn a_discarded_task_is_gone(s: Stage<'_>) -> Outcome {
    let taken = s.running(task("a").retention(60)).await?;
    assert_eq!(s.settle(&taken, Settlement::Discard).await?.state, None);
    assert_eq!(s.find("a").await?, None);
    Ok(())
}

pub(crate) async fn a_released_task_goes_back_to_where_it_was(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b", "c", "d"])).await?;
    let before = s.the("a").await?;
    s.elapse(5).await;
    let taken = s.claim(3).await?;
    s.elapse(5).await;
    // Whatever the order in which they come back.
    for at in [1, 0, 2] {
        let settled = s.settle(&taken[at], Settlement::Release).await?;
        assert_eq!(settled.state, Some(State::Pending));
    }
    let expected = TaskRecord { token: taken[0].token, ..before };
    assert_same(&s.the("a").await?, &expected);
    assert_eq!(ids(&s.claim(9).await?), ["a", "b", "c", "d"]);
    Ok(())
}

pub(crate) async fn a_release_keeps_its_place_through_several_claims(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b"])).await?;
    for _ in 0..3 {
        let taken = s.take().await?;
        assert_eq!(taken.key, key(QUEUE, "a"));
        s.enqueue(task(&format!("later{}", s.claim_id()))).await?;
        s.settle(&taken, Settlement::Release).await?;
    }
    assert_eq!(s.stats().await?.oldest_pending, s.the("a").await?.pending_since);
    Ok(())
}

pub(crate) async fn a_hold_releases_the_task_and_pauses_its_queue(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b"])).await?;
    let before = s.the("a").await?;
    let taken = s.take().await?;
    s.elapse(5).await;
    let settled = s.settle(&taken, hold("the disk is full")).await?;
    assert_eq!(settled.state, Some(State::Pending));
    let expected = TaskRecord { token: taken.token, ..before };
    assert_same(&s.the("a").await?, &expected);
    let paused = Paused { reason: "the disk is full".into(), since: s.now() };
    assert_eq!(s.stats().await?.paused, Some(paused));
    assert!(s.claim(1).await?.is_empty());
    s.broker().resume(queue(QUEUE)).await?;
    assert_eq!(ids(&s.claim(9).await?), ["a", "b"]);
    Ok(())
}

pub(crate) async fn a_hold_of_a_paused_queue_keeps_the_first_reason(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b"])).await?;
    let taken = s.claim(2).await?;
    s.settle(&taken[0], hold("first")).await?;
    let before = s.stats().await?.paused;
    s.elapse(5).await;
    s.settle(&taken[1], hold("second")).await?;
    assert_eq!(s.stats().await?.paused, before);
    assert_eq!(s.stats().await?.pending, 2);
    Ok(())
}

pub(crate) async fn nothing_but_an_active_task_with_this_token_is_settled(s: Stage<'_>) -> Outcome {
    for state in STATES {
        s.reach(state, task(state.as_str())).await?;
    }
    let stranger = Token::from_bytes([7; 16]);
    let numbers = s.stats().await?;
    for state in STATES {
        let id = state.as_str();
        let before = s.the(id).await?;
        for settlement in every_settlement() {
            let held = Held::new(key(QUEUE, id), stranger);
            let outcome = s.broker().settle(vec![(held, settlement)]).await?.remove(0);
            assert_eq!(outcome, Err(lease_lost(id)), "{state}");
        }
        assert_same(&s.the(id).await?, &before);
    }
    assert_eq!(s.stats().await?, numbers);
    Ok(())
}

pub(crate) async fn a_task_that_is_not_there_is_not_found(s: Stage<'_>) -> Outcome {
    s.enqueue(task("other")).await?;
    for settlement in every_settlement() {
        let held = Held::new(key(QUEUE, "a"), Token::from_bytes([7; 16]));
        assert_eq!(s.broker().settle(vec![(held, settlement)]).await?, [Err(not_found("a"))]);
    }
    assert_eq!(s.stats().await?.paused, None, "a hold that was refused pauses nothing");
    Ok(())
}

pub(crate) async fn repeating_a_settlement_shows_what_was_done_and_does_nothing(s: Stage<'_>) -> Outcome {
    for (at, settlement) in every_settlement().into_iter().enumerate() {
        let id = format!("t{at}");
        let taken = s.running(task(&id)).await?;
        let first = s.settle(&taken, settlement.clone()).await?;
        let (before, numbers) = (s.find(&id).await?, s.stats().await?);
        s.elapse(1).await;
        let again = s.settle(&taken, settlement.clone()).await;
        match first.state {
            Some(_) => {
                let repeated = Settled { state: first.state, at: s.now() };
                assert_eq!(again, Ok(repeated), "{settlement:?}");
            }
            None => assert_eq!(again, Err(not_found(&id)), "{settlement:?}"),
        }
        assert_eq!(s.find(&id).await?, before, "{settlement:?}");
        assert_eq!(s.stats().await?, numbers, "{settlement:?}");
        s.broker().resume(queue(QUEUE)).await?;
        if s.state(&id).await? == Some(State::Pending) {
            s.broker().delete(key(QUEUE, &id)).await?;
        }
    }
    Ok(())
}

pub(crate) async fn repeating_after_the_next_claim_is_refused(s: Stage<'_>) -> Outcome {
    let first = s.settled(task("a"), retry(0)).await?;
    let second = s.take().await?;
    assert_eq!(s.settle(&first, retry(0)).await, Err(lease_lost("a")));
    s.settle(&second, retry(60)).await?;
    assert_eq!(s.settle(&first, retry(0)).await, Err(lease_lost("a")));
    assert_eq!(s.the("a").await?.retried, 2);
    Ok(())
}

pub(crate) async fn long_and_odd_error_texts_are_cut(s: Stage<'_>) -> Outcome {
    let odd = format!("a\0b {}", "é".repeat(ERROR_BYTES_MAX));
    let retried = Settlement::Retry {
        after: secs(60),
        error: odd.clone(),
        class: Class::Transient,
        charge: Charge::Retry,
    };
    let archived = Settlement::Archive { error: odd.clone(), class: Class::Permanent };
    for (id, settlement) in [("a", retried), ("b", archived)] {
        s.settled(task(id), settlement).await?;
        let failed = s.the(id).await?.failed.expect("a failure was noted");
        assert_eq!(*failed.error, error_text(&odd));
    }
    s.settled(task("c"), hold(&odd)).await?;
    assert_eq!(s.stats().await?.paused.map(|paused| paused.reason), Some(error_text(&odd)));
    Ok(())
}

pub(crate) async fn every_class_is_kept_as_it_was(s: Stage<'_>) -> Outcome {
    for class in Class::ALL {
        s.settled(task(class.as_str()), retry_as(60, class, Charge::Nothing)).await?;
        assert_eq!(s.the(class.as_str()).await?.failed.map(|failed| failed.class), Some(class));
    }
    Ok(())
}
