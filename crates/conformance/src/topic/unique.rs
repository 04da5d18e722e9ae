//! Unique locks: who holds one, for how long, and who frees it.

use poolwright_broker::{Bulk, BulkAction, Enqueued, Error, Find, How};
use poolwright_core::{Charge, Class, Settlement, State, Subject, When};

use crate::Outcome;
use crate::builders::{QUEUE, archive, complete, hold, keep, key, queue, retry, retry_as, secs, task};
use crate::stage::{STATES, Stage, assert_wrong_state};

const LOCK: &str = "test:task:0cc175b9";

/// Tries to take the lock with a fresh task of this id.
async fn knock(s: &Stage<'_>, id: &str) -> Result<Enqueued, Error> {
    s.enqueue(task(id).unique(LOCK, 1_000)).await
}

/// Asserts that the lock is free, and leaves it free.
async fn assert_free(s: &Stage<'_>, after: &str) -> Outcome {
    let knocked = knock(s, "knock").await;
    assert!(knocked.is_ok(), "the lock is free after {after}, got {knocked:?}");
    s.broker().delete(key(QUEUE, "knock")).await?;
    Ok(())
}

/// Asserts that this task holds the lock.
async fn assert_held(s: &Stage<'_>, by: &str, when: &str) {
    assert_eq!(knock(s, "knock").await, Err(Error::DuplicateUnique { holder: key(QUEUE, by) }), "{when}");
}

pub(crate) async fn an_equal_task_is_refused_while_one_waits_or_runs(s: Stage<'_>) -> Outcome {
    for state in STATES.into_iter().filter(|state| state.is_live()) {
        s.reach(state, task("a").unique(LOCK, 1_000)).await?;
        assert_held(&s, "a", state.as_str()).await;
        if state == State::Active {
            let active = s.the("a").await?;
            s.settle(&active, Settlement::Discard).await?;
        } else {
            s.broker().delete(key(QUEUE, "a")).await?;
        }
    }
    Ok(())
}

pub(crate) async fn a_refused_task_leaves_no_trace(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").unique(LOCK, 60)).await?;
    let before = s.stats().await?;
    assert!(s.enqueue(task("b").unique(LOCK, 60).subject("doc", "1")).await.is_err());
    assert_eq!(s.find("b").await?, None);
    assert_eq!(s.stats().await?, before);
    assert!(s.broker().find(Find::Subject(Subject::new("doc", "1")), 9).await?.tasks.is_empty());
    assert_eq!(s.enqueue(task("b")).await?.how, How::Stored, "its id is free");
    Ok(())
}

pub(crate) async fn locks_of_two_queues_and_of_two_keys_do_not_meet(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").unique(LOCK, 60)).await?;
    s.enqueue(task("a").queue("other").unique(LOCK, 60)).await?;
    s.enqueue(task("b").unique("TEST:task:0cc175b9", 60)).await?;
    s.enqueue(task("c").unique(&format!("{LOCK} "), 60)).await?;
    s.enqueue(task("d").unique("schlüssel:键:\u{1f511}", 60)).await?;
    let refused = s.enqueue(task("e").unique("schlüssel:键:\u{1f511}", 60)).await;
    assert_eq!(refused, Err(Error::DuplicateUnique { holder: key(QUEUE, "d") }));
    Ok(())
}

pub(crate) async fn every_settlement_that_ends_a_task_frees_its_lock(s: Stage<'_>) -> Outcome {
    for (id, settlement) in
        [("a", complete()), ("b", keep(600, b"r")), ("c", archive()), ("d", Settlement::Discard)]
    {
        s.settled(task(id).unique(LOCK, 1_000), settlement.clone()).await?;
        assert_free(&s, &format!("{settlement:?}")).await?;
    }
    Ok(())
}

pub(crate) async fn settlements_that_end_nothing_keep_the_lock(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").unique(LOCK, 1_000)).await?;
    let charges = [Charge::Retry, Charge::Deferral, Charge::Crash, Charge::Nothing];
    let retries = charges.map(|charge| retry_as(0, Class::Transient, charge));
    for settlement in retries.into_iter().chain([Settlement::Release, hold("no"), retry(60)]) {
        s.broker().resume(queue(QUEUE)).await?;
        let task = s.take().await?;
        s.settle(&task, settlement.clone()).await?;
        assert_held(&s, "a", &format!("after {settlement:?}")).await;
    }
    Ok(())
}

pub(crate) async fn deleting_or_archiving_by_hand_frees_the_lock(s: Stage<'_>) -> Outcome {
    for state in [State::Scheduled, State::Retry, State::Pending] {
        s.reach(state, task("a").unique(LOCK, 1_000)).await?;
        s.broker().delete(key(QUEUE, "a")).await?;
        assert_free(&s, &format!("deleting a {state} task")).await?;

        s.reach(state, task("a").unique(LOCK, 1_000)).await?;
        s.broker().archive(key(QUEUE, "a"), "no".into()).await?;
        assert_free(&s, &format!("archiving a {state} task")).await?;
        s.broker().delete(key(QUEUE, "a")).await?;
    }
    Ok(())
}

pub(crate) async fn bulk_actions_free_locks(s: Stage<'_>) -> Outcome {
    for (state, action) in [
        (State::Scheduled, BulkAction::Delete),
        (State::Retry, BulkAction::Archive),
        (State::Pending, BulkAction::Archive),
    ] {
        s.reach(state, task(state.as_str()).unique(LOCK, 1_000)).await?;
        let bulk = Bulk { queue: queue(QUEUE), state, action, limit: 10, reason: "no".into() };
        assert_eq!(s.broker().bulk(bulk).await?, 1);
        assert_free(&s, &format!("{action:?} of {state}")).await?;
    }
    Ok(())
}

pub(crate) async fn a_discarded_flagged_task_frees_its_lock(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").unique(LOCK, 1_000)).await?;
    s.broker().request_cancel(vec![key(QUEUE, "a")]).await?;
    assert_held(&s, "a", "while the flagged task waits").await;
    assert!(s.claim(1).await?.is_empty());
    assert_free(&s, "a claim that discarded it").await
}

pub(crate) async fn removing_a_queue_frees_its_locks(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").unique(LOCK, 1_000)).await?;
    s.broker().remove_queue(queue(QUEUE), true).await?;
    assert_free(&s, "removing the queue").await
}

pub(crate) async fn a_lock_ends_with_its_time_and_not_before(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").unique(LOCK, 10)).await?;
    s.elapse(9).await;
    assert_held(&s, "a", "a second before its end").await;
    s.elapse(1).await;
    assert_free(&s, "its time").await
}

pub(crate) async fn the_lock_of_a_delayed_task_lasts_from_its_due_time(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").after(100).unique(LOCK, 10)).await?;
    s.elapse(109).await;
    assert_held(&s, "a", "a second before due time and lock").await;
    // The due time may have been rounded up.
    s.elapse(1 + s.harness().precision().as_secs()).await;
    assert_free(&s, "due time and lock").await
}

pub(crate) async fn a_lock_whose_time_is_over_is_no_longer_its_tasks_to_free(s: Stage<'_>) -> Outcome {
    let first = s.running(task("a").unique(LOCK, 10)).await?;
    s.elapse(10).await;
    s.enqueue(task("b").unique(LOCK, 1_000)).await?;
    s.settle(&first, complete()).await?;
    assert_held(&s, "b", "the first holder ended").await;

    // The same when an operator ends it.
    s.enqueue(task("c").unique("second", 10)).await?;
    s.elapse(10).await;
    s.enqueue(task("d").unique("second", 1_000)).await?;
    s.broker().delete(key(QUEUE, "c")).await?;
    let refused = s.enqueue(task("e").unique("second", 1)).await;
    assert_eq!(refused, Err(Error::DuplicateUnique { holder: key(QUEUE, "d") }));
    Ok(())
}

pub(crate) async fn run_now_does_not_take_the_lock_again(s: Stage<'_>) -> Outcome {
    s.reach(State::Archived, task("a").unique(LOCK, 1_000)).await?;
    s.broker().run_now(key(QUEUE, "a")).await?;
    assert_free(&s, "run_now of a task that had lost it").await?;

    knock(&s, "b").await?;
    let rerun = s.take().await?;
    assert_eq!(rerun.key, key(QUEUE, "a"));
    s.settle(&rerun, complete()).await?;
    assert_held(&s, "b", "the task that was run again ended").await;
    Ok(())
}

pub(crate) async fn run_now_of_a_waiting_task_keeps_its_lock(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").after(60).unique(LOCK, 1_000)).await?;
    s.broker().run_now(key(QUEUE, "a")).await?;
    assert_held(&s, "a", "it waits still").await;
    Ok(())
}

pub(crate) async fn reschedule_does_not_move_the_end_of_a_lock(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").unique(LOCK, 10)).await?;
    s.broker().reschedule(key(QUEUE, "a"), When::After(secs(500))).await?;
    s.elapse(9).await;
    assert_held(&s, "a", "before its old end").await;
    s.elapse(1).await;
    assert_free(&s, "its old end").await
}

pub(crate) async fn a_refused_operation_frees_no_lock(s: Stage<'_>) -> Outcome {
    let active = s.running(task("a").unique(LOCK, 1_000)).await?;
    assert_wrong_state(s.broker().delete(key(QUEUE, "a")).await, "a", State::Active);
    assert_wrong_state(s.broker().archive(key(QUEUE, "a"), "no".into()).await, "a", State::Active);
    assert_held(&s, "a", "an operator was refused").await;
    s.elapse(60).await;
    s.take_over().await?;
    assert!(s.settle(&active, complete()).await.is_err());
    assert_held(&s, "a", "a late settlement was refused").await;
    Ok(())
}
