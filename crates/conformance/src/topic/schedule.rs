//! Due times: nothing early, everything in its order.

use poolwright_broker::Promoted;
use poolwright_core::{State, Timestamp};

use crate::Outcome;
use crate::builders::{QUEUE, queue, queues, secs, task};
use crate::observe::{assert_same, fresh};
use crate::stage::{Stage, ids};

pub(crate) async fn nothing_is_due_early(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").after(60)).await?;
    s.elapse(59).await;
    let promoted = s.promote().await?;
    assert_eq!(promoted.tasks, 0);
    s.assert_time(promoted.next_due, s.now() + secs(1));
    assert!(s.claim(1).await?.is_empty());
    s.elapse(1 + s.harness().precision().as_secs()).await;
    assert_eq!(s.promote().await?, Promoted { tasks: 1, next_due: None });
    assert_eq!(ids(&s.claim(1).await?), ["a"]);
    Ok(())
}

pub(crate) async fn a_due_task_waits_for_its_promotion(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").after(5)).await?;
    s.elapse(10).await;
    assert!(s.claim(1).await?.is_empty());
    assert_eq!(s.state("a").await?, Some(State::Scheduled));
    Ok(())
}

pub(crate) async fn a_promoted_task_is_as_one_that_was_never_delayed(s: Stage<'_>) -> Outcome {
    let given = task("a").after(60).build();
    s.enqueue(given.clone()).await?;
    let enqueued_at = s.now();
    s.elapse(100).await;
    s.promote().await?;
    let mut expected = fresh(&given, enqueued_at);
    expected.state = State::Pending;
    expected.due = None;
    expected.pending_since = Some(s.now());
    assert_same(&s.the("a").await?, &expected);
    Ok(())
}

pub(crate) async fn due_tasks_go_to_the_end_by_due_time_and_then_by_id(s: Stage<'_>) -> Outcome {
    for (id, after) in [("late", 30), ("c", 20), ("a", 20), ("b", 20), ("early", 10)] {
        s.enqueue(task(id).after(after)).await?;
    }
    s.elapse(40).await;
    s.enqueue(task("before")).await?;
    assert_eq!(s.promote().await?.tasks, 5);
    s.enqueue(task("after")).await?;
    assert_eq!(ids(&s.claim(9).await?), ["before", "early", "a", "b", "c", "late", "after"]);
    Ok(())
}

pub(crate) async fn retries_are_promoted_among_the_scheduled_by_due_time(s: Stage<'_>) -> Outcome {
    s.settled(task("retry-20"), crate::builders::retry(20)).await?;
    s.enqueue(task("scheduled-10").after(10)).await?;
    s.enqueue(task("scheduled-30").after(30)).await?;
    s.elapse(40).await;
    assert_eq!(s.promote().await?.tasks, 3);
    assert_eq!(ids(&s.claim(9).await?), ["scheduled-10", "retry-20", "scheduled-30"]);
    Ok(())
}

pub(crate) async fn a_limited_promotion_takes_the_earliest_and_names_the_next(s: Stage<'_>) -> Outcome {
    for (id, after) in [("c", 30), ("a", 10), ("b", 20), ("d", 100)] {
        s.enqueue(task(id).after(after)).await?;
    }
    let start = s.now();
    s.elapse(50).await;
    let promoted = s.broker().promote_due(queues(&[QUEUE]), 2).await?;
    assert_eq!(promoted.tasks, 2);
    s.assert_time(promoted.next_due, start + secs(30));
    assert_eq!(ids(&s.claim(9).await?), ["a", "b"]);
    assert_eq!(s.broker().promote_due(queues(&[QUEUE]), 0).await?.tasks, 0);
    let promoted = s.promote().await?;
    assert_eq!(promoted.tasks, 1);
    s.assert_time(promoted.next_due, start + secs(100));
    Ok(())
}

pub(crate) async fn promotion_looks_at_the_named_queues_only(s: Stage<'_>) -> Outcome {
    for name in ["x", "y", "z"] {
        s.enqueue(task("a").queue(name).after(10)).await?;
    }
    s.enqueue(task("b").queue("y").after(500)).await?;
    let start = s.now();
    s.elapse(20).await;
    let promoted = s.broker().promote_due(queues(&["x", "y", "unknown"]), 10).await?;
    assert_eq!(promoted.tasks, 2);
    s.assert_time(promoted.next_due, start + secs(500));
    assert_eq!((s.stats_of("z").await?.scheduled, s.stats_of("z").await?.pending), (1, 0));
    assert_eq!(s.broker().promote_due(vec![], 10).await?, Promoted::default());
    Ok(())
}

pub(crate) async fn a_paused_queue_promotes_as_any_other(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").after(10)).await?;
    s.broker().pause(queue(QUEUE), "no".into()).await?;
    s.elapse(20).await;
    assert_eq!(s.promote().await?.tasks, 1);
    Ok(())
}

pub(crate) async fn a_due_time_far_away_is_kept(s: Stage<'_>) -> Outcome {
    // The year 3000: beyond 32 bits of seconds, within what every store can write.
    let far = Timestamp::from_secs(32_503_680_000);
    s.enqueue(task("a").at(far)).await?;
    s.assert_time(s.the("a").await?.due, far);
    s.assert_time(s.promote().await?.next_due, far);
    Ok(())
}
