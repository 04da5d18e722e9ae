//! Completed tasks: kept with their results, and swept when their time is over.

use poolwright_broker::{Find, Swept};
use poolwright_core::{State, Subject};

use crate::Outcome;
use crate::builders::{keep, secs, task};
use crate::stage::{Stage, ids};

pub(crate) async fn a_completed_task_is_swept_when_its_time_is_over_and_not_before(s: Stage<'_>) -> Outcome {
    s.settled(task("a").subject("doc", "1"), keep(60, b"r")).await?;
    s.elapse(59).await;
    assert_eq!(s.sweep_expired().await?, Swept::default());
    assert_eq!(s.the("a").await?.result, Some("r".into()));
    s.elapse(1).await;
    assert_eq!(s.sweep_expired().await?, Swept { expired: 1, trimmed: 0, more: false });
    assert_eq!(s.find("a").await?, None);
    assert!(s.broker().find(Find::Subject(Subject::new("doc", "1")), 9).await?.tasks.is_empty());
    assert_eq!(s.sweep_expired().await?, Swept::default(), "a second sweep finds nothing");
    Ok(())
}

pub(crate) async fn each_completed_task_has_a_time_of_its_own(s: Stage<'_>) -> Outcome {
    for (id, kept) in [("long", 600), ("short", 10), ("middle", 60)] {
        s.settled(task(id), keep(kept, b"")).await?;
    }
    s.elapse(60).await;
    assert_eq!(s.sweep_expired().await?.expired, 2);
    assert_eq!(s.ids(State::Completed).await?, ["long"]);
    Ok(())
}

pub(crate) async fn the_limits_of_the_archive_touch_no_completed_task(s: Stage<'_>) -> Outcome {
    s.settled(task("a"), keep(60, b"")).await?;
    s.elapse(30).await;
    assert_eq!(s.sweep(0, secs(0), false).await?, Swept::default());
    assert_eq!(s.state("a").await?, Some(State::Completed));
    Ok(())
}

pub(crate) async fn a_sweep_looks_at_the_named_queues_only(s: Stage<'_>) -> Outcome {
    s.settled(task("a"), keep(10, b"")).await?;
    s.settled(task("b").queue("other"), keep(10, b"")).await?;
    s.elapse(20).await;
    assert_eq!(s.broker().sweep(vec![]).await?, Swept::default());
    assert_eq!(s.sweep_expired().await?.expired, 1);
    assert_eq!(s.stats_of("other").await?.completed, 1);
    Ok(())
}

pub(crate) async fn many_expired_tasks_are_swept_in_bounded_steps(s: Stage<'_>) -> Outcome {
    const MANY: u64 = 2_500;
    s.enqueue_all((0..MANY).map(|n| task(&format!("t{n}")).build()).collect()).await?;
    let taken = s.claim(u32::MAX).await?;
    let settlements = taken.iter().map(|task| (crate::stage::held(task), keep(10, b""))).collect();
    for outcome in s.broker().settle(settlements).await? {
        outcome?;
    }
    s.settled(task("later"), keep(500, b"")).await?;
    s.elapse(60).await;
    let first = s.sweep_expired().await?;
    assert!(first.more && (1..MANY).contains(&first.expired), "one call is bounded: {first:?}");
    let mut expired = first.expired;
    loop {
        let swept = s.sweep_expired().await?;
        expired += swept.expired;
        if !swept.more {
            break;
        }
        assert!(swept.expired > 0, "a sweep that says there is more gets on");
    }
    assert_eq!(expired, MANY);
    assert_eq!(s.ids(State::Completed).await?, ["later"]);
    Ok(())
}

pub(crate) async fn a_completed_task_run_again_is_completed_again(s: Stage<'_>) -> Outcome {
    s.settled(task("a"), keep(60, b"first")).await?;
    s.broker().run_now(crate::builders::key("q", "a")).await?;
    s.elapse(100).await;
    assert_eq!(s.sweep_expired().await?, Swept::default(), "it is not completed any more");
    let taken = s.take().await?;
    assert_eq!((taken.completed_at, taken.expires_at), (None, None));
    s.settle(&taken, keep(60, b"second")).await?;
    assert_eq!(s.the("a").await?.result, Some("second".into()));
    assert_eq!(ids(&s.page(State::Completed, 9).await?.tasks), ["a"]);
    Ok(())
}
