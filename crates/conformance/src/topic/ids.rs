//! What `on_conflict` does with an id that is taken.

use poolwright_broker::{Error, Find, How};
use poolwright_core::{OnConflict, State, Subject};

use crate::Outcome;
use crate::builders::{QUEUE, keep, key, queues, task};
use crate::observe::{assert_same, fresh};
use crate::stage::{STATES, Stage};

pub(crate) async fn reject_refuses_an_id_in_every_state(s: Stage<'_>) -> Outcome {
    for state in STATES {
        let id = state.as_str();
        let before = s.reach(state, task(id).payload("first")).await?;
        let refused = s.enqueue(task(id).payload("second")).await;
        assert_eq!(refused, Err(Error::DuplicateId { key: key(QUEUE, id), state }));
        assert_same(&s.the(id).await?, &before);
    }
    Ok(())
}

pub(crate) async fn replace_finished_refuses_a_live_task(s: Stage<'_>) -> Outcome {
    for state in STATES.into_iter().filter(|state| state.is_live()) {
        let id = state.as_str();
        let before = s.reach(state, task(id)).await?;
        let refused = s.enqueue(task(id).on_conflict(OnConflict::ReplaceFinished)).await;
        assert_eq!(refused, Err(Error::DuplicateId { key: key(QUEUE, id), state }));
        assert_same(&s.the(id).await?, &before);
    }
    Ok(())
}

pub(crate) async fn a_finished_task_is_replaced_by_one_that_starts_from_zero(s: Stage<'_>) -> Outcome {
    for on_conflict in [OnConflict::ReplaceFinished, OnConflict::RunAgain] {
        for state in [State::Archived, State::Completed] {
            let id = format!("{on_conflict:?}-{state}");
            s.reach(state, task(&id).payload("first").retention(7)).await?;
            s.elapse(1).await;
            let second = task(&id).payload("second").on_conflict(on_conflict).after(60).build();
            let outcome = s.enqueue(second.clone()).await?;
            assert_eq!((outcome.state, outcome.how), (State::Scheduled, How::Replaced), "{id}");
            let seen = s.the(&id).await?;
            let mut expected = fresh(&second, s.now());
            expected.due = seen.due;
            assert_same(&seen, &expected);
            assert_eq!(seen.token, None, "{id}: nobody has claimed the new one");
        }
    }
    let stats = s.stats().await?;
    assert_eq!((stats.scheduled, stats.archived, stats.completed), (4, 0, 0));
    Ok(())
}

pub(crate) async fn a_replaced_task_leaves_the_index_and_wants_no_dead_letter(s: Stage<'_>) -> Outcome {
    s.reach(State::Archived, task("a").subject("doc", "old")).await?;
    s.enqueue(task("a").subject("doc", "new").on_conflict(OnConflict::ReplaceFinished)).await?;
    let old = s.broker().find(Find::Subject(Subject::new("doc", "old")), 10).await?;
    assert!(old.tasks.is_empty() && old.complete);
    assert_eq!(s.broker().find(Find::Subject(Subject::new("doc", "new")), 10).await?.tasks.len(), 1);
    assert!(s.broker().unrecorded(queues(&[QUEUE]), 10).await?.is_empty());
    Ok(())
}

pub(crate) async fn a_replacement_whose_lock_is_held_leaves_the_old_task(s: Stage<'_>) -> Outcome {
    let before = s.reach(State::Completed, task("a").subject("doc", "1")).await?;
    s.enqueue(task("holder").unique("lock", 60)).await?;
    let replacement = task("a").unique("lock", 60).on_conflict(OnConflict::ReplaceFinished);
    let refused = s.enqueue(replacement).await;
    assert_eq!(refused, Err(Error::DuplicateUnique { holder: key(QUEUE, "holder") }));
    assert_same(&s.the("a").await?, &before);
    assert_eq!(s.broker().find(Find::Subject(Subject::new("doc", "1")), 10).await?.tasks.len(), 1);
    Ok(())
}

pub(crate) async fn the_id_is_checked_before_the_lock(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").unique("lock", 60)).await?;
    let refused = s.enqueue(task("a").unique("lock", 60)).await;
    assert_eq!(refused, Err(Error::DuplicateId { key: key(QUEUE, "a"), state: State::Pending }));
    Ok(())
}

pub(crate) async fn an_id_is_free_again_when_its_task_is_gone(s: Stage<'_>) -> Outcome {
    s.settled(task("a"), crate::builders::complete()).await?;
    assert_eq!(s.enqueue(task("a")).await?.how, How::Stored);
    s.broker().delete(key(QUEUE, "a")).await?;
    assert_eq!(s.enqueue(task("a")).await?.how, How::Stored);
    Ok(())
}

pub(crate) async fn a_retained_task_keeps_its_id_until_it_is_swept(s: Stage<'_>) -> Outcome {
    s.settled(task("a"), keep(10, b"")).await?;
    s.elapse(11).await;
    let refused = s.enqueue(task("a")).await;
    assert_eq!(refused, Err(Error::DuplicateId { key: key(QUEUE, "a"), state: State::Completed }));
    s.sweep_expired().await?;
    assert_eq!(s.enqueue(task("a")).await?.how, How::Stored);
    Ok(())
}
