//! What people do to single tasks by hand.

use poolwright_broker::Error;
use poolwright_core::task::Failure;
use poolwright_core::text::{ERROR_BYTES_MAX, error_text};
use poolwright_core::{Class, State, TaskKey, TaskRecord, Timestamp, When};

use crate::Outcome;
use crate::builders::{QUEUE, key, secs, task, tasks};
use crate::observe::assert_same;
use crate::stage::{STATES, Stage, assert_wrong_state, ids, not_found};

fn the(id: &str) -> TaskKey {
    key(QUEUE, id)
}

/// The record without what only its state uses.
fn bare(task: &TaskRecord) -> TaskRecord {
    TaskRecord {
        pending_since: None,
        due: None,
        started_at: None,
        lease_until: None,
        completed_at: None,
        expires_at: None,
        cancel_requested: false,
        ..task.clone()
    }
}

pub(crate) async fn run_now_puts_a_task_at_the_end_of_its_queue(s: Stage<'_>) -> Outcome {
    for state in [State::Scheduled, State::Retry, State::Archived, State::Completed] {
        let id = state.as_str();
        let before = s.reach(state, task(id)).await?;
        s.enqueue(task("before")).await?;
        s.elapse(1).await;
        assert_eq!(s.broker().run_now(the(id)).await?, state);
        s.enqueue(task("after")).await?;
        let expected =
            TaskRecord { state: State::Pending, pending_since: Some(s.now()), token: None, ..bare(&before) };
        assert_same(&s.the(id).await?, &expected);
        assert_eq!(s.the(id).await?.token, None);
        let taken = s.claim(9).await?;
        assert_eq!(ids(&taken), ["before", id, "after"]);
        for task in taken {
            s.settle(&task, crate::builders::complete()).await?;
        }
    }
    Ok(())
}

pub(crate) async fn run_now_refuses_what_runs_or_waits_for_a_worker(s: Stage<'_>) -> Outcome {
    for state in [State::Active, State::Pending] {
        let before = s.reach(state, task(state.as_str())).await?;
        assert_wrong_state(s.broker().run_now(the(state.as_str())).await, state.as_str(), state);
        assert_same(&s.the(state.as_str()).await?, &before);
    }
    Ok(())
}

pub(crate) async fn archiving_ends_a_task_with_the_operators_reason(s: Stage<'_>) -> Outcome {
    for state in [State::Scheduled, State::Retry, State::Completed, State::Pending] {
        let id = state.as_str();
        let before = s.reach(state, task(id)).await?;
        s.elapse(1).await;
        assert_eq!(s.broker().archive(the(id), "not wanted".into()).await?, state);
        let failed = Failure { class: Class::Operator, error: "not wanted".into(), at: s.now() };
        let seen = s.the(id).await?;
        assert!(seen.token.is_some() && seen.token != before.token, "the key of its dead letter");
        let expected =
            TaskRecord { state: State::Archived, failed: Some(failed), token: seen.token, ..bare(&before) };
        assert_same(&seen, &expected);
    }
    assert!(s.claim(9).await?.is_empty());
    Ok(())
}

pub(crate) async fn archiving_refuses_what_runs_or_is_archived(s: Stage<'_>) -> Outcome {
    for state in [State::Active, State::Archived] {
        let before = s.reach(state, task(state.as_str())).await?;
        let refused = s.broker().archive(the(state.as_str()), "no".into()).await;
        assert_wrong_state(refused, state.as_str(), state);
        assert_eq!(s.the(state.as_str()).await?, before);
    }
    Ok(())
}

pub(crate) async fn a_long_reason_is_cut_as_an_error_is(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a")).await?;
    let reason = format!("\0{}", "ü".repeat(ERROR_BYTES_MAX));
    s.broker().archive(the("a"), reason.clone()).await?;
    let kept = s.the("a").await?.failed.map(|failed| failed.error.to_string());
    assert_eq!(kept, Some(error_text(&reason)));
    Ok(())
}

pub(crate) async fn a_task_is_deleted_from_any_state_but_active(s: Stage<'_>) -> Outcome {
    for state in STATES {
        let id = state.as_str();
        let before = s.reach(state, task(id)).await?;
        if state == State::Active {
            assert_wrong_state(s.broker().delete(the(id)).await, id, state);
            assert_eq!(s.the(id).await?, before);
        } else {
            assert_eq!(s.broker().delete(the(id)).await?, state);
            assert_eq!(s.find(id).await?, None);
        }
    }
    assert_eq!((s.stats().await?.size(), s.stats().await?.completed), (1, 0));
    assert!(s.claim(9).await?.is_empty());
    Ok(())
}

pub(crate) async fn a_task_that_is_not_there_is_not_found(s: Stage<'_>) -> Outcome {
    s.enqueue(task("other")).await?;
    let gone = |key: TaskKey| Error::NotFound { key };
    for key in [the("a"), key("unknown", "a")] {
        let broker = s.broker();
        assert_eq!(broker.get(key.clone()).await?, None);
        assert_eq!(broker.run_now(key.clone()).await, Err(gone(key.clone())));
        assert_eq!(broker.archive(key.clone(), "no".into()).await, Err(gone(key.clone())));
        assert_eq!(broker.delete(key.clone()).await, Err(gone(key.clone())));
        assert_eq!(broker.reschedule(key.clone(), When::Now).await, Err(gone(key.clone())));
        assert_eq!(broker.update_payload(key.clone(), "p".into()).await, Err(gone(key)));
    }
    assert_eq!(s.broker().queues().await?.len(), 1, "looking for a task makes no queue");
    assert_eq!(s.broker().delete(the("a")).await, Err(not_found("a")));
    Ok(())
}

pub(crate) async fn a_waiting_task_gets_another_due_time(s: Stage<'_>) -> Outcome {
    for (state, becomes) in [
        (State::Scheduled, State::Scheduled),
        (State::Retry, State::Retry),
        (State::Pending, State::Scheduled),
    ] {
        let id = state.as_str();
        let before = s.reach(state, task(id)).await?;
        s.elapse(1).await;
        s.broker().reschedule(the(id), When::After(secs(500))).await?;
        let seen = s.the(id).await?;
        s.assert_time(seen.due, s.now() + secs(500));
        assert_same(&seen, &TaskRecord { state: becomes, due: seen.due, ..bare(&before) });

        let time = s.now() + secs(30);
        s.broker().reschedule(the(id), When::At(time)).await?;
        s.assert_time(s.the(id).await?.due, time);
    }
    s.elapse(40).await;
    assert_eq!(s.promote().await?.tasks, 3);
    Ok(())
}

pub(crate) async fn rescheduled_to_now_a_task_goes_to_the_end_of_its_queue(s: Stage<'_>) -> Outcome {
    s.reach(State::Scheduled, task("a")).await?;
    s.reach(State::Retry, task("b")).await?;
    s.reach(State::Retry, task("c")).await?;
    s.enqueue(task("before")).await?;
    s.elapse(1).await;
    s.broker().reschedule(the("b"), When::Now).await?;
    s.broker().reschedule(the("a"), When::At(Timestamp::EPOCH)).await?;
    s.broker().reschedule(the("c"), When::After(secs(0))).await?;
    let seen = s.the("b").await?;
    assert_eq!((seen.state, seen.due, seen.pending_since), (State::Pending, None, Some(s.now())));
    assert_eq!(seen.retried, 1, "it is no new task");
    assert_eq!(ids(&s.claim(9).await?), ["before", "b", "a", "c"]);
    Ok(())
}

pub(crate) async fn a_pending_task_rescheduled_to_now_stays_where_it_is(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b"])).await?;
    let before = s.the("a").await?;
    s.elapse(1).await;
    s.broker().reschedule(the("a"), When::Now).await?;
    assert_same(&s.the("a").await?, &before);
    assert_eq!(ids(&s.claim(9).await?), ["a", "b"]);
    Ok(())
}

pub(crate) async fn a_payload_is_replaced_while_its_task_waits(s: Stage<'_>) -> Outcome {
    for state in [State::Scheduled, State::Retry, State::Pending] {
        let id = state.as_str();
        let of = task(id).payload("old").unique(id, 1_000).subject("doc", "1").header("h", "v");
        let before = s.reach(state, of).await?;
        s.elapse(1).await;
        s.broker().update_payload(the(id), "new".into()).await?;
        assert_same(&s.the(id).await?, &TaskRecord { payload: "new".into(), ..before });
        assert!(s.enqueue(task("other").unique(id, 1)).await.is_err(), "the lock stays as enqueued");
    }
    assert_eq!(s.take().await?.payload, "new");
    Ok(())
}

pub(crate) async fn only_waiting_tasks_are_changed(s: Stage<'_>) -> Outcome {
    for state in [State::Active, State::Archived, State::Completed] {
        let id = state.as_str();
        let before = s.reach(state, task(id)).await?;
        assert_wrong_state(s.broker().reschedule(the(id), When::Now).await, id, state);
        assert_wrong_state(s.broker().reschedule(the(id), When::After(secs(9))).await, id, state);
        assert_wrong_state(s.broker().update_payload(the(id), "new".into()).await, id, state);
        assert_eq!(s.the(id).await?, before);
    }
    Ok(())
}
