//! The archive: its limits, and the dead letters it waits for.

use poolwright_broker::{Find, Held, How, Swept};
use poolwright_core::{Class, State, Subject, TaskRecord, Token};
use std::time::Duration;

use crate::Outcome;
use crate::builders::{QUEUE, archive, key, queues, secs, task};
use crate::stage::{Stage, held, ids};

const NO_AGE: Duration = Duration::MAX;

/// Archives these tasks, a second apart.
async fn archive_all(s: &Stage<'_>, names: &[&str]) -> Result<Vec<TaskRecord>, crate::Failed> {
    let mut archived = Vec::new();
    for name in names {
        s.elapse(1).await;
        archived.push(s.settled(task(name).subject("doc", name), archive()).await?);
    }
    Ok(archived)
}

async fn unrecorded(s: &Stage<'_>) -> Result<Vec<String>, crate::Failed> {
    Ok(ids(&s.broker().unrecorded(queues(&[QUEUE]), 100).await?))
}

async fn record(s: &Stage<'_>, tasks: &[TaskRecord]) -> Outcome {
    Ok(s.broker().mark_recorded(tasks.iter().map(held).collect()).await?)
}

pub(crate) async fn the_oldest_beyond_the_limit_are_trimmed(s: Stage<'_>) -> Outcome {
    archive_all(&s, &["c", "a", "d", "b"]).await?;
    assert_eq!(s.sweep(4, NO_AGE, false).await?, Swept::default());
    assert_eq!(s.sweep(2, NO_AGE, false).await?, Swept { expired: 0, trimmed: 2, more: false });
    assert_eq!(s.ids(State::Archived).await?, ["b", "d"]);
    assert_eq!(s.sweep(0, NO_AGE, false).await?.trimmed, 2);
    assert_eq!(s.stats().await?.archived, 0);
    Ok(())
}

pub(crate) async fn those_that_are_too_old_are_trimmed(s: Stage<'_>) -> Outcome {
    archive_all(&s, &["a", "b", "c"]).await?;
    s.elapse(58).await;
    assert_eq!(s.sweep(100, secs(61), false).await?, Swept::default());
    assert_eq!(s.sweep(100, secs(60), false).await?.trimmed, 1);
    assert_eq!(s.ids(State::Archived).await?, ["c", "b"]);
    Ok(())
}

pub(crate) async fn a_trimmed_task_leaves_nothing_behind(s: Stage<'_>) -> Outcome {
    archive_all(&s, &["a"]).await?;
    s.sweep(0, NO_AGE, false).await?;
    assert_eq!(s.find("a").await?, None);
    assert!(s.broker().find(Find::Subject(Subject::new("doc", "a")), 9).await?.tasks.is_empty());
    assert!(unrecorded(&s).await?.is_empty());
    assert_eq!(s.enqueue(task("a")).await?.how, How::Stored, "its id is free");
    Ok(())
}

pub(crate) async fn trimming_touches_no_task_that_is_not_archived(s: Stage<'_>) -> Outcome {
    for state in crate::stage::STATES {
        s.reach(state, task(state.as_str())).await?;
    }
    assert_eq!(s.sweep(0, secs(0), false).await?, Swept { expired: 0, trimmed: 1, more: false });
    let stats = s.stats().await?;
    assert_eq!((stats.size(), stats.archived, stats.completed), (4, 0, 1));
    Ok(())
}

pub(crate) async fn what_is_not_recorded_is_spared_and_nothing_newer_goes_instead(s: Stage<'_>) -> Outcome {
    let tasks = archive_all(&s, &["a", "b", "c", "d"]).await?;
    record(&s, &[tasks[1].clone(), tasks[3].clone()]).await?;
    // Beyond the newest two are a and b; b is recorded.
    assert_eq!(s.sweep(2, NO_AGE, true).await?, Swept { expired: 0, trimmed: 1, more: false });
    assert_eq!(s.ids(State::Archived).await?, ["d", "c", "a"]);
    s.elapse(500).await;
    assert_eq!(s.sweep(100, secs(60), true).await?.trimmed, 1, "d is recorded, a and c are not");
    assert_eq!(s.ids(State::Archived).await?, ["c", "a"]);
    record(&s, &tasks).await?;
    assert_eq!(s.sweep(0, NO_AGE, true).await?.trimmed, 2);
    Ok(())
}

pub(crate) async fn an_unspared_archive_is_trimmed_recorded_or_not(s: Stage<'_>) -> Outcome {
    let tasks = archive_all(&s, &["a", "b"]).await?;
    record(&s, &tasks[1..]).await?;
    assert_eq!(s.sweep(0, NO_AGE, false).await?.trimmed, 2);
    Ok(())
}

pub(crate) async fn every_end_in_the_archive_wants_a_dead_letter(s: Stage<'_>) -> Outcome {
    let tasks = archive_all(&s, &["c", "a", "b"]).await?;
    assert_eq!(unrecorded(&s).await?, ["c", "a", "b"], "oldest first");
    assert_eq!(ids(&s.broker().unrecorded(queues(&[QUEUE]), 2).await?), ["c", "a"]);
    assert!(s.broker().unrecorded(queues(&["other"]), 9).await?.is_empty());
    let seen = s.broker().unrecorded(queues(&[QUEUE]), 1).await?.remove(0);
    assert_eq!(seen, s.the("c").await?, "the whole record, to write the letter from");

    record(&s, &tasks[1..2]).await?;
    assert_eq!(unrecorded(&s).await?, ["c", "b"]);
    record(&s, &tasks).await?;
    record(&s, &tasks).await?;
    assert!(unrecorded(&s).await?.is_empty());
    Ok(())
}

pub(crate) async fn only_the_letter_of_this_end_counts(s: Stage<'_>) -> Outcome {
    let first = archive_all(&s, &["a"]).await?;
    let strangers = vec![
        Held::new(key(QUEUE, "a"), Token::from_bytes([7; 16])),
        Held::new(key(QUEUE, "none"), Token::from_bytes([7; 16])),
        Held::new(key("none", "a"), Token::from_bytes([7; 16])),
    ];
    s.broker().mark_recorded(strangers).await?;
    assert_eq!(unrecorded(&s).await?, ["a"]);

    // The second end of the same task is another one.
    record(&s, &first).await?;
    s.broker().run_now(key(QUEUE, "a")).await?;
    assert!(unrecorded(&s).await?.is_empty());
    let second = s.take().await?;
    s.settle(&second, archive()).await?;
    assert_eq!(unrecorded(&s).await?, ["a"]);
    record(&s, &first).await?;
    assert_eq!(unrecorded(&s).await?, ["a"], "the earlier letter is not this one's");
    record(&s, &[second]).await?;
    assert!(unrecorded(&s).await?.is_empty());
    Ok(())
}

pub(crate) async fn a_letter_of_a_task_that_runs_again_is_passed_over(s: Stage<'_>) -> Outcome {
    let first = s.running(task("a")).await?;
    record(&s, std::slice::from_ref(&first)).await?;
    s.settle(&first, archive()).await?;
    assert_eq!(unrecorded(&s).await?, ["a"], "it was confirmed before there was anything to confirm");
    Ok(())
}

pub(crate) async fn an_operators_end_has_a_letter_with_a_key_of_its_own(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a")).await?;
    s.broker().archive(key(QUEUE, "a"), "not wanted".into()).await?;
    let first = s.the("a").await?;
    assert_eq!(unrecorded(&s).await?, ["a"]);
    assert_eq!(first.failed.as_ref().map(|failed| failed.class), Some(Class::Operator));
    record(&s, std::slice::from_ref(&first)).await?;
    assert!(unrecorded(&s).await?.is_empty());

    s.broker().run_now(key(QUEUE, "a")).await?;
    s.broker().archive(key(QUEUE, "a"), "still not wanted".into()).await?;
    assert_ne!(s.the("a").await?.token, first.token);
    assert_eq!(unrecorded(&s).await?, ["a"]);
    Ok(())
}

pub(crate) async fn completed_tasks_want_no_letter(s: Stage<'_>) -> Outcome {
    s.settled(task("a"), crate::builders::keep(600, b"")).await?;
    s.settled(task("b"), crate::builders::retry(60)).await?;
    s.settled(task("c"), poolwright_core::Settlement::Discard).await?;
    assert!(unrecorded(&s).await?.is_empty());
    Ok(())
}

pub(crate) async fn a_full_archive_is_trimmed_in_bounded_steps(s: Stage<'_>) -> Outcome {
    const MANY: u64 = 2_500;
    s.enqueue_all((0..MANY).map(|n| task(&format!("t{n}")).build()).collect()).await?;
    let taken = s.claim(u32::MAX).await?;
    for outcome in s.broker().settle(taken.iter().map(|task| (held(task), archive())).collect()).await? {
        outcome?;
    }
    let first = s.sweep(10, NO_AGE, false).await?;
    assert!(first.more && (1..MANY).contains(&first.trimmed), "one call is bounded: {first:?}");
    let mut trimmed = first.trimmed;
    loop {
        let swept = s.sweep(10, NO_AGE, false).await?;
        trimmed += swept.trimmed;
        if !swept.more {
            break;
        }
        assert!(swept.trimmed > 0, "a sweep that says there is more gets on");
    }
    assert_eq!((trimmed, s.stats().await?.archived), (MANY - 10, 10));
    Ok(())
}

pub(crate) async fn spared_tasks_alone_are_no_reason_to_sweep_again(s: Stage<'_>) -> Outcome {
    archive_all(&s, &["a", "b", "c"]).await?;
    assert_eq!(s.sweep(0, NO_AGE, true).await?, Swept::default());
    Ok(())
}

pub(crate) async fn an_end_whose_place_a_follow_up_took_is_not_here_to_be_recorded(s: Stage<'_>) -> Outcome {
    let running = s.running(task("a")).await?;
    s.enqueue(task("a").run_again()).await?;
    s.settle(&running, archive()).await?;
    assert!(unrecorded(&s).await?.is_empty());
    record(&s, &[running]).await?;
    let second = s.take().await?;
    s.settle(&second, archive()).await?;
    assert_eq!(unrecorded(&s).await?, ["a"], "the letter of the first run is not the second's");
    Ok(())
}
