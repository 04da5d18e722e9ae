//! `run_again`: what an enqueue does while its task waits or runs.

use poolwright_broker::{Error, Find, How};
use poolwright_core::{Class, NewTask, Settlement, State, Subject, TaskRecord};

use crate::Outcome;
use crate::builders::{QUEUE, archive, complete, hold, keep, key, queue, retry, retry_as, secs, task};
use crate::observe::{assert_same, fresh};
use crate::stage::{Stage, lease_lost};

/// The follow-up that most cases send.
fn again() -> NewTask {
    task("a").payload("again").run_again().build()
}

/// A running task that has a follow-up.
async fn with_follow_up(s: &Stage<'_>, follow_up: NewTask) -> Result<TaskRecord, crate::Failed> {
    let running = s.running(task("a").payload("first")).await?;
    assert_eq!(s.enqueue(follow_up).await?.how, How::RunsAgain);
    Ok(running)
}

pub(crate) async fn one_that_waits_will_do(s: Stage<'_>) -> Outcome {
    for state in [State::Scheduled, State::Retry, State::Pending] {
        let id = state.as_str();
        let before = s.reach(state, task(id).payload("first")).await?;
        let outcome = s.enqueue(task(id).payload("second").after(5).run_again()).await?;
        assert_eq!((outcome.state, outcome.how), (state, How::Coalesced));
        assert_same(&s.the(id).await?, &before);
    }
    Ok(())
}

pub(crate) async fn one_that_runs_is_marked_and_left_alone(s: Stage<'_>) -> Outcome {
    let running = with_follow_up(&s, task("a").subject("doc", "2").run_again().build()).await?;
    let expected = TaskRecord { runs_again: true, ..running.clone() };
    assert_eq!(s.the("a").await?, expected);
    let stats = s.stats().await?;
    assert_eq!((stats.active, stats.size()), (1, 1), "a follow-up is not counted");
    let found = s.broker().find(Find::Subject(Subject::new("doc", "2")), 9).await?;
    assert!(found.tasks.is_empty(), "a follow-up is not found");
    Ok(())
}

pub(crate) async fn the_follow_up_starts_from_zero_when_the_task_ends(s: Stage<'_>) -> Outcome {
    for (settlement, ended) in [
        (complete(), None),
        (keep(600, b"r"), Some(State::Completed)),
        (archive(), Some(State::Archived)),
        (Settlement::Discard, None),
    ] {
        let running = with_follow_up(&s, again()).await?;
        s.elapse(7).await;
        let settled = s.settle(&running, settlement.clone()).await?;
        assert_eq!(settled.state, ended, "{settlement:?}: the state in which the run ended");
        assert_same(&s.the("a").await?, &fresh(&again(), s.now()));
        assert_eq!(s.the("a").await?.token, None);
        assert_eq!(s.stats().await?.size(), 1, "{settlement:?}: nothing else is left");
        s.broker().delete(key(QUEUE, "a")).await?;
    }
    Ok(())
}

pub(crate) async fn the_run_before_a_follow_up_is_counted(s: Stage<'_>) -> Outcome {
    let running = with_follow_up(&s, again()).await?;
    s.settle(&running, archive()).await?;
    let second = s.take().await?;
    assert_eq!(second.payload, "again");
    s.settle(&second, complete()).await?;
    let stats = s.stats().await?;
    assert_eq!((stats.processed, stats.failed, stats.size()), (2, 1, 0));
    Ok(())
}

pub(crate) async fn its_delay_counts_from_the_end_of_the_run(s: Stage<'_>) -> Outcome {
    let running = with_follow_up(&s, task("a").after(60).run_again().build()).await?;
    s.elapse(500).await;
    s.settle(&running, complete()).await?;
    let seen = s.the("a").await?;
    assert_eq!((seen.state, seen.enqueued_at), (State::Scheduled, s.now()));
    s.assert_time(seen.due, s.now() + secs(60));
    Ok(())
}

pub(crate) async fn its_absolute_time_stays_what_it_was(s: Stage<'_>) -> Outcome {
    let time = s.now() + secs(60);
    let running = with_follow_up(&s, task("a").at(time).run_again().build()).await?;
    s.elapse(10).await;
    s.settle(&running, complete()).await?;
    s.assert_time(s.the("a").await?.due, time);
    Ok(())
}

pub(crate) async fn the_latest_wish_wins(s: Stage<'_>) -> Outcome {
    let running = with_follow_up(&s, again()).await?;
    for wish in ["third", "fourth"] {
        assert_eq!(s.enqueue(task("a").payload(wish).run_again()).await?.how, How::RunsAgain);
    }
    s.settle(&running, complete()).await?;
    assert_eq!(s.take().await?.payload, "fourth");
    assert!(s.claim(1).await?.is_empty(), "it runs once more, not three times");
    Ok(())
}

pub(crate) async fn retry_release_and_hold_are_no_end(s: Stage<'_>) -> Outcome {
    let mut running = with_follow_up(&s, again()).await?;
    for settlement in [retry(0), Settlement::Release, hold("no"), retry(60)] {
        s.settle(&running, settlement.clone()).await?;
        let seen = s.the("a").await?;
        assert!(seen.runs_again && seen.payload == "first", "{settlement:?}");
        s.broker().resume(queue(QUEUE)).await?;
        s.elapse(70).await;
        s.promote().await?;
        running = s.take().await?;
        assert!(running.runs_again && running.payload == "first", "{settlement:?}");
    }
    s.settle(&running, complete()).await?;
    assert_eq!(s.take().await?.payload, "again");
    Ok(())
}

pub(crate) async fn it_survives_a_take_over(s: Stage<'_>) -> Outcome {
    with_follow_up(&s, again()).await?;
    s.elapse(60).await;
    let taken = s.take_over().await?.remove(0);
    assert!(taken.runs_again);
    s.settle(&taken, archive()).await?;
    assert_eq!(s.take().await?.payload, "again");
    Ok(())
}

pub(crate) async fn a_waiting_task_with_a_follow_up_still_coalesces(s: Stage<'_>) -> Outcome {
    let running = with_follow_up(&s, again()).await?;
    s.settle(&running, retry(0)).await?;
    assert_eq!(s.enqueue(task("a").payload("third").run_again()).await?.how, How::Coalesced);
    let running = s.take().await?;
    s.settle(&running, complete()).await?;
    assert_eq!(s.the("a").await?.payload, "again", "the follow-up is the one it had");
    Ok(())
}

pub(crate) async fn it_goes_to_the_end_of_its_queue(s: Stage<'_>) -> Outcome {
    let running = with_follow_up(&s, again()).await?;
    s.enqueue(task("b")).await?;
    s.settle(&running, complete()).await?;
    assert_eq!(crate::stage::ids(&s.claim(9).await?), ["b", "a"]);
    Ok(())
}

pub(crate) async fn it_takes_over_the_lock_of_its_own_task(s: Stage<'_>) -> Outcome {
    let running = s.running(task("a").unique("lock", 1_000)).await?;
    s.enqueue(task("a").unique("lock", 1_000).run_again()).await?;
    s.settle(&running, complete()).await?;
    assert!(s.the("a").await?.unique.is_some());
    let refused = s.enqueue(task("b").unique("lock", 10)).await;
    assert_eq!(refused, Err(Error::DuplicateUnique { holder: key(QUEUE, "a") }));
    Ok(())
}

pub(crate) async fn it_runs_without_a_lock_that_another_holds(s: Stage<'_>) -> Outcome {
    let running = s.running(task("a")).await?;
    s.enqueue(task("b").after(500).unique("lock", 1_000)).await?;
    let outcome = s.enqueue(task("a").unique("lock", 1_000).run_again()).await?;
    assert_eq!(outcome.how, How::RunsAgain, "a follow-up's lock is not looked at yet");
    s.settle(&running, complete()).await?;
    let second = s.take().await?;
    assert_eq!(second.unique, None);
    s.settle(&second, complete()).await?;
    let refused = s.enqueue(task("c").unique("lock", 10)).await;
    assert_eq!(refused, Err(Error::DuplicateUnique { holder: key(QUEUE, "b") }));
    Ok(())
}

pub(crate) async fn a_waiting_follow_up_holds_no_lock(s: Stage<'_>) -> Outcome {
    with_follow_up(&s, task("a").unique("lock", 1_000).run_again().build()).await?;
    assert_eq!(s.enqueue(task("b").unique("lock", 10)).await?.how, How::Stored);
    Ok(())
}

pub(crate) async fn it_brings_its_own_subjects(s: Stage<'_>) -> Outcome {
    let running = s.running(task("a").subject("doc", "1").subject("doc", "both")).await?;
    s.enqueue(task("a").subject("doc", "2").subject("doc", "both").run_again()).await?;
    s.settle(&running, complete()).await?;
    for (id, count) in [("1", 0), ("2", 1), ("both", 1)] {
        let found = s.broker().find(Find::Subject(Subject::new("doc", id)), 9).await?;
        assert_eq!(found.tasks.len(), count, "doc/{id}");
    }
    Ok(())
}

pub(crate) async fn what_an_operator_ends_takes_its_follow_up_along(s: Stage<'_>) -> Outcome {
    let running = with_follow_up(&s, again()).await?;
    s.settle(&running, retry(60)).await?;
    s.broker().archive(key(QUEUE, "a"), "no".into()).await?;
    let archived = s.the("a").await?;
    assert_eq!((archived.state, archived.runs_again), (State::Archived, false));
    s.broker().run_now(key(QUEUE, "a")).await?;
    let rerun = s.take().await?;
    s.settle(&rerun, complete()).await?;
    assert_eq!(s.find("a").await?, None);

    let running = with_follow_up(&s, again()).await?;
    s.settle(&running, retry(60)).await?;
    s.broker().delete(key(QUEUE, "a")).await?;
    assert_eq!(s.find("a").await?, None);
    Ok(())
}

pub(crate) async fn run_now_and_reschedule_leave_it_waiting(s: Stage<'_>) -> Outcome {
    let running = with_follow_up(&s, again()).await?;
    s.settle(&running, retry(60)).await?;
    s.broker().reschedule(key(QUEUE, "a"), poolwright_core::When::After(secs(90))).await?;
    s.broker().run_now(key(QUEUE, "a")).await?;
    let rerun = s.take().await?;
    assert!(rerun.runs_again);
    s.settle(&rerun, complete()).await?;
    assert_eq!(s.take().await?.payload, "again");
    Ok(())
}

pub(crate) async fn a_waiting_task_that_would_be_discarded_is_replaced(s: Stage<'_>) -> Outcome {
    for state in [State::Scheduled, State::Retry, State::Pending] {
        let id = state.as_str();
        s.reach(state, task(id).unique(id, 1_000).subject("doc", "old")).await?;
        s.broker().request_cancel(vec![key(QUEUE, id)]).await?;
        let wish = task(id).payload("new").unique(id, 1_000).run_again().build();
        let outcome = s.enqueue(wish.clone()).await?;
        assert_eq!((outcome.state, outcome.how), (State::Pending, How::Replaced), "{state}");
        assert_same(&s.the(id).await?, &fresh(&wish, s.now()));
        let taken = s.take().await?;
        assert_eq!(taken.key, key(QUEUE, id), "{state}");
    }
    assert!(s.broker().find(Find::Subject(Subject::new("doc", "old")), 9).await?.tasks.is_empty());
    Ok(())
}

pub(crate) async fn the_other_words_refuse_a_flagged_task_as_any_other(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a")).await?;
    s.broker().request_cancel(vec![key(QUEUE, "a")]).await?;
    for on_conflict in [poolwright_core::OnConflict::Reject, poolwright_core::OnConflict::ReplaceFinished] {
        let refused = s.enqueue(task("a").on_conflict(on_conflict)).await;
        assert_eq!(refused, Err(Error::DuplicateId { key: key(QUEUE, "a"), state: State::Pending }));
    }
    Ok(())
}

pub(crate) async fn a_cancelled_run_is_followed_all_the_same(s: Stage<'_>) -> Outcome {
    let running = with_follow_up(&s, again()).await?;
    s.broker().request_cancel(vec![key(QUEUE, "a")]).await?;
    s.settle(&running, Settlement::Discard).await?;
    assert!(!s.the("a").await?.cancel_requested, "the flag was for the run that ended");
    assert_eq!(s.take().await?.payload, "again");
    Ok(())
}

pub(crate) async fn a_claim_that_discards_a_flagged_task_starts_its_follow_up(s: Stage<'_>) -> Outcome {
    let running = with_follow_up(&s, again()).await?;
    s.settle(&running, Settlement::Release).await?;
    s.broker().request_cancel(vec![key(QUEUE, "a")]).await?;
    let taken = s.take().await?;
    assert_eq!((taken.payload.as_ref(), taken.cancel_requested), (&b"again"[..], false));
    Ok(())
}

pub(crate) async fn a_settlement_repeated_after_it_started_is_refused(s: Stage<'_>) -> Outcome {
    let running = with_follow_up(&s, again()).await?;
    s.settle(&running, keep(600, b"r")).await?;
    assert_eq!(s.settle(&running, keep(600, b"r")).await, Err(lease_lost("a")));
    assert_same(&s.the("a").await?, &fresh(&again(), s.now()));
    Ok(())
}

pub(crate) async fn the_other_words_leave_a_running_task_without_follow_up(s: Stage<'_>) -> Outcome {
    let running = s.running(task("a")).await?;
    assert!(s.enqueue(task("a")).await.is_err());
    assert!(!s.the("a").await?.runs_again);
    s.settle(&running, retry_as(0, Class::Transient, poolwright_core::Charge::Retry)).await?;
    let running = s.take().await?;
    s.settle(&running, complete()).await?;
    assert_eq!(s.find("a").await?, None);
    Ok(())
}
