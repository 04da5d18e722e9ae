//! Requests to end a task: the flag, who sees it, and when it goes.

use poolwright_broker::{CancelOutcome, Extension};
use poolwright_core::{Charge, Class, Settlement, State, TaskRecord};

use crate::Outcome;
use crate::builders::{
    LEASE, QUEUE, archive, claim, demand, hold, keep, key, queue, retry, retry_as, task, tasks,
};
use crate::observe::assert_same;
use crate::stage::{STATES, Stage, ids};

async fn cancel(s: &Stage<'_>, id: &str) -> Result<CancelOutcome, poolwright_broker::Error> {
    Ok(s.broker().request_cancel(vec![key(QUEUE, id)]).await?.remove(0))
}

pub(crate) async fn a_request_says_what_it_met_and_changes_nothing_but_the_flag(s: Stage<'_>) -> Outcome {
    for state in STATES {
        let before = s.reach(state, task(state.as_str())).await?;
        let expected = match state {
            State::Active => CancelOutcome::Signalled,
            State::Archived | State::Completed => CancelOutcome::Finished,
            State::Pending | State::Scheduled | State::Retry => CancelOutcome::Flagged,
        };
        assert_eq!(cancel(&s, state.as_str()).await?, expected, "{state}");
        let flagged = TaskRecord { cancel_requested: state.is_live(), ..before };
        assert_same(&s.the(state.as_str()).await?, &flagged);
        assert_eq!(cancel(&s, state.as_str()).await?, expected, "{state}: asking again is the same");
    }
    assert_eq!(cancel(&s, "none").await?, CancelOutcome::NotFound);
    let outcomes = s.broker().request_cancel(vec![key("none", "a")]).await?;
    assert_eq!(outcomes, [CancelOutcome::NotFound]);
    Ok(())
}

pub(crate) async fn a_claim_discards_flagged_tasks_and_takes_the_next(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b", "c", "d", "e"])).await?;
    for id in ["a", "b", "d"] {
        cancel(&s, id).await?;
    }
    let reply = s.broker().claim(claim(s.claim_id(), 2, &[QUEUE])).await?;
    assert_eq!(reply.discarded, 3);
    let taken: Vec<_> = reply.claims.into_iter().map(|claim| claim.task).collect();
    assert_eq!(ids(&taken), ["c", "e"]);
    for id in ["a", "b", "d"] {
        assert_eq!(s.find(id).await?, None, "{id} is gone");
    }
    let stats = s.stats().await?;
    assert_eq!((stats.processed, stats.failed, stats.size()), (0, 0, 2));
    Ok(())
}

pub(crate) async fn flagged_tasks_behind_the_last_slot_stay(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b"])).await?;
    cancel(&s, "b").await?;
    let reply = s.broker().claim(claim(s.claim_id(), 1, &[QUEUE])).await?;
    assert_eq!((reply.claims.len(), reply.discarded), (1, 0));
    assert_eq!(s.state("b").await?, Some(State::Pending));
    Ok(())
}

pub(crate) async fn discarding_uses_no_draw_of_the_lottery(s: Stage<'_>) -> Outcome {
    let mut orders = Vec::new();
    for (names, flagged) in [(["x", "y"], &[][..]), (["u", "v"], &["0", "3", "4"][..])] {
        for name in names {
            s.enqueue_all((0..9).map(|n| task(&n.to_string()).queue(name).build()).collect()).await?;
            s.broker().request_cancel(flagged.iter().map(|id| key(name, id)).collect()).await?;
        }
        let mut request = claim(s.claim_id(), 0, &[]);
        request.demands = vec![demand("pool", 6, &names.map(|name| (name, 1)), 5)];
        let taken = s.claim_as(request).await?;
        assert_eq!(taken.len(), 6);
        orders.push(taken.iter().map(|task| task.key.queue == names[0]).collect::<Vec<_>>());
    }
    assert_eq!(orders[0], orders[1]);
    Ok(())
}

pub(crate) async fn the_flag_survives_what_ends_nothing(s: Stage<'_>) -> Outcome {
    for (id, settlement) in [
        ("a", retry(0)),
        ("b", retry(60)),
        ("c", Settlement::Release),
        ("d", hold("no")),
        ("e", retry_as(0, Class::Crashed, Charge::Crash)),
        ("f", retry_as(0, Class::Snoozed, Charge::Deferral)),
        ("g", retry_as(0, Class::NoHandler, Charge::Nothing)),
    ] {
        let taken = s.running(task(id)).await?;
        cancel(&s, id).await?;
        s.settle(&taken, settlement.clone()).await?;
        assert!(s.the(id).await?.cancel_requested, "{settlement:?}");
        s.broker().resume(queue(QUEUE)).await?;
        s.elapse(70).await;
        s.promote().await?;
        assert!(s.claim(1).await?.is_empty(), "{settlement:?}: the next claim discards it");
        assert_eq!(s.find(id).await?, None, "{settlement:?}");
    }
    Ok(())
}

pub(crate) async fn a_retry_because_it_was_cancelled_clears_the_flag(s: Stage<'_>) -> Outcome {
    for (id, after) in [("a", 0), ("b", 60)] {
        let taken = s.running(task(id)).await?;
        cancel(&s, id).await?;
        s.settle(&taken, retry_as(after, Class::Cancelled, Charge::Retry)).await?;
        assert!(!s.the(id).await?.cancel_requested);
        s.elapse(70).await;
        s.promote().await?;
        assert_eq!(s.take().await?.key, key(QUEUE, id));
    }
    Ok(())
}

pub(crate) async fn the_flag_goes_when_the_task_ends(s: Stage<'_>) -> Outcome {
    for (id, settlement) in [("a", keep(600, b"r")), ("b", archive())] {
        let taken = s.running(task(id)).await?;
        cancel(&s, id).await?;
        s.settle(&taken, settlement).await?;
        assert!(!s.the(id).await?.cancel_requested);
    }
    s.enqueue(task("c")).await?;
    cancel(&s, "c").await?;
    s.broker().archive(key(QUEUE, "c"), "no".into()).await?;
    assert!(!s.the("c").await?.cancel_requested);
    Ok(())
}

pub(crate) async fn run_now_clears_the_flag(s: Stage<'_>) -> Outcome {
    for state in [State::Scheduled, State::Retry] {
        let id = state.as_str();
        s.reach(state, task(id)).await?;
        cancel(&s, id).await?;
        s.broker().run_now(key(QUEUE, id)).await?;
        assert_eq!(s.take().await?.key, key(QUEUE, id));
    }
    Ok(())
}

pub(crate) async fn reschedule_keeps_the_flag(s: Stage<'_>) -> Outcome {
    s.reach(State::Retry, task("a")).await?;
    cancel(&s, "a").await?;
    s.broker().reschedule(key(QUEUE, "a"), poolwright_core::When::Now).await?;
    assert!(s.claim(1).await?.is_empty());
    assert_eq!(s.find("a").await?, None);
    Ok(())
}

pub(crate) async fn an_extension_tells_of_the_request(s: Stage<'_>) -> Outcome {
    let taken = s.running(task("a")).await?;
    cancel(&s, "a").await?;
    for _ in 0..2 {
        s.elapse(5).await;
        assert_eq!(s.extend(&taken, LEASE).await?, Extension::Cancelled(s.now() + LEASE));
    }
    Ok(())
}

pub(crate) async fn whoever_takes_over_sees_the_flag(s: Stage<'_>) -> Outcome {
    s.running(task("a")).await?;
    cancel(&s, "a").await?;
    s.elapse(60).await;
    let taken = s.take_over().await?;
    assert!(taken[0].cancel_requested);
    assert_eq!(s.extend(&taken[0], LEASE).await?, Extension::Cancelled(s.now() + LEASE));
    Ok(())
}

pub(crate) async fn a_flag_dies_with_its_task(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a")).await?;
    cancel(&s, "a").await?;
    s.broker().delete(key(QUEUE, "a")).await?;
    s.enqueue(task("a")).await?;
    assert_eq!(s.take().await?.key, key(QUEUE, "a"), "the new task was not asked to end");
    Ok(())
}

pub(crate) async fn a_paused_queue_discards_nothing(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b"])).await?;
    cancel(&s, "a").await?;
    s.broker().pause(queue(QUEUE), "no".into()).await?;
    let reply = s.broker().claim(claim(s.claim_id(), 9, &[QUEUE])).await?;
    assert_eq!((reply.claims.len(), reply.discarded), (0, 0));
    assert_eq!(s.state("a").await?, Some(State::Pending));
    Ok(())
}

pub(crate) async fn discarding_what_is_flagged_needs_a_slot(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a")).await?;
    cancel(&s, "a").await?;
    let reply = s.broker().claim(claim(s.claim_id(), 0, &[QUEUE])).await?;
    assert_eq!(reply.discarded, 0);
    assert_eq!(s.state("a").await?, Some(State::Pending));
    Ok(())
}
