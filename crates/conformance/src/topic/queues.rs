//! Queues as a whole: pause, resume, removal.

use poolwright_broker::{Error, Find, How, Paused};
use poolwright_core::text::{ERROR_BYTES_MAX, error_text};
use poolwright_core::{State, Subject};

use crate::Outcome;
use crate::builders::{QUEUE, complete, key, queue, task};
use crate::stage::{STATES, Stage};

pub(crate) async fn a_pause_shows_why_and_since_when(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a")).await?;
    assert!(s.broker().pause(queue(QUEUE), "the key expired".into()).await?);
    let since = s.now();
    assert_eq!(s.stats().await?.paused, Some(Paused { reason: "the key expired".into(), since }));
    s.elapse(5).await;
    assert!(!s.broker().pause(queue(QUEUE), "it still is".into()).await?);
    assert_eq!(s.stats().await?.paused, Some(Paused { reason: "it still is".into(), since }));
    Ok(())
}

pub(crate) async fn resume_says_whether_it_was_paused(s: Stage<'_>) -> Outcome {
    assert!(!s.broker().resume(queue(QUEUE)).await?);
    s.broker().pause(queue(QUEUE), "no".into()).await?;
    assert!(s.broker().resume(queue(QUEUE)).await?);
    assert!(!s.broker().resume(queue(QUEUE)).await?);
    assert_eq!(s.stats().await?.paused, None);
    Ok(())
}

pub(crate) async fn a_queue_without_tasks_can_be_paused(s: Stage<'_>) -> Outcome {
    assert!(s.broker().pause(queue(QUEUE), "before anything".into()).await?);
    assert!(s.stats().await?.paused.is_some());
    s.enqueue(task("a")).await?;
    assert!(s.claim(1).await?.is_empty());
    assert!(s.stats_of("other").await?.paused.is_none());
    Ok(())
}

pub(crate) async fn a_long_reason_is_cut(s: Stage<'_>) -> Outcome {
    let reason = format!("\0{}", "ü".repeat(ERROR_BYTES_MAX));
    for _ in 0..2 {
        s.broker().pause(queue(QUEUE), reason.clone()).await?;
        assert_eq!(s.stats().await?.paused.map(|paused| paused.reason), Some(error_text(&reason)));
    }
    Ok(())
}

pub(crate) async fn an_unknown_queue_cannot_be_removed(s: Stage<'_>) -> Outcome {
    s.broker().pause(queue(QUEUE), "no task was ever here".into()).await?;
    for force in [false, true] {
        let refused = s.broker().remove_queue(queue(QUEUE), force).await;
        assert_eq!(refused, Err(Error::NoQueue { queue: queue(QUEUE) }));
    }
    Ok(())
}

pub(crate) async fn a_queue_with_tasks_is_removed_by_force_only(s: Stage<'_>) -> Outcome {
    for state in STATES.into_iter().filter(|state| *state != State::Active) {
        s.reach(state, task(state.as_str())).await?;
        let refused = s.broker().remove_queue(queue(QUEUE), false).await;
        assert_eq!(refused, Err(Error::NotEmpty { queue: queue(QUEUE), tasks: 1, active: 0 }), "{state}");
        assert!(s.find(state.as_str()).await?.is_some());
        assert_eq!(s.broker().remove_queue(queue(QUEUE), true).await?, 1, "{state}");
    }
    Ok(())
}

pub(crate) async fn a_queue_with_a_running_task_is_not_removed(s: Stage<'_>) -> Outcome {
    let running = s.running(task("a")).await?;
    s.enqueue(task("b")).await?;
    for force in [false, true] {
        let refused = s.broker().remove_queue(queue(QUEUE), force).await;
        assert_eq!(refused, Err(Error::NotEmpty { queue: queue(QUEUE), tasks: 2, active: 1 }));
    }
    assert_eq!(s.settle(&running, complete()).await?.state, None);
    assert_eq!(s.broker().remove_queue(queue(QUEUE), true).await?, 1);
    Ok(())
}

pub(crate) async fn an_empty_queue_is_removed(s: Stage<'_>) -> Outcome {
    s.settled(task("a"), complete()).await?;
    assert_eq!(s.broker().remove_queue(queue(QUEUE), false).await?, 0);
    assert!(s.broker().queues().await?.is_empty());
    Ok(())
}

pub(crate) async fn a_removed_queue_leaves_nothing_behind(s: Stage<'_>) -> Outcome {
    for state in STATES.into_iter().filter(|state| *state != State::Active) {
        s.reach(state, task(state.as_str()).unique(state.as_str(), 1_000).subject("doc", "1")).await?;
    }
    s.broker().pause(queue(QUEUE), "no".into()).await?;
    s.enqueue(task("kept").queue("other").unique("pending", 1_000).subject("doc", "1")).await?;
    let other = s.stats_of("other").await?;
    assert_eq!(s.broker().remove_queue(queue(QUEUE), true).await?, 5);

    assert_eq!(s.stats().await?, poolwright_broker::QueueStats::empty(queue(QUEUE)));
    assert_eq!(s.broker().queues().await?, [queue("other")]);
    assert!(s.broker().history(queue(QUEUE), 3).await?.iter().all(|day| day.processed == 0));
    assert!(s.broker().unrecorded(vec![queue(QUEUE)], 9).await?.is_empty());
    let found = s.broker().find(Find::Subject(Subject::new("doc", "1")), 9).await?;
    assert_eq!(found.tasks.iter().map(|(key, ..)| key.clone()).collect::<Vec<_>>(), [key("other", "kept")]);
    assert_eq!(s.stats_of("other").await?, other);
    for state in STATES {
        assert_eq!(s.find(state.as_str()).await?, None, "{state}");
        let again = task(state.as_str()).unique(state.as_str(), 1_000);
        assert_eq!(s.enqueue(again).await?.how, How::Stored, "{state}: id and lock are free");
    }
    assert_eq!(s.claim(9).await?.len(), 6, "the new queue is not paused");
    Ok(())
}
