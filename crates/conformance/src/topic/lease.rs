//! Leases: whose a task is, until when, and who takes it over.

use poolwright_broker::{Error, Extension, Held, LEASE_AHEAD_MAX, LEASE_MAX, TakeOver};
use poolwright_core::{Charge, Class, Settlement, State, TaskRecord, Timestamp, Token};

use crate::Outcome;
use crate::builders::{LEASE, QUEUE, complete, key, queue, queues, retry_as, secs, task};
use crate::observe::assert_same;
use crate::stage::{STATES, Stage, held, ids, lease_lost, not_found};

pub(crate) async fn an_expired_lease_is_its_holders_until_taken_over(s: Stage<'_>) -> Outcome {
    let first = s.running(task("a")).await?;
    let second = s.running(task("b")).await?;
    s.elapse(3_600).await;
    s.broker().progress(held(&first), 0.5, "late".into()).await?;
    s.broker().store_result(held(&first), "late".into()).await?;
    assert_eq!(s.extend(&first, LEASE).await?, Extension::Kept(s.now() + LEASE));
    assert_eq!(s.settle(&first, complete()).await?.state, None);
    assert_eq!(s.settle(&second, complete()).await?.state, None);
    Ok(())
}

pub(crate) async fn an_extension_makes_the_lease_last_from_now(s: Stage<'_>) -> Outcome {
    let taken = s.running(task("a")).await?;
    s.elapse(20).await;
    assert_eq!(s.extend(&taken, LEASE).await?, Extension::Kept(s.now() + LEASE));
    let expected = TaskRecord { lease_until: Some(s.now() + LEASE), ..taken.clone() };
    assert_same(&s.the("a").await?, &expected);
    // A shorter one is obeyed, too.
    assert_eq!(s.extend(&taken, secs(1)).await?, Extension::Kept(s.now() + secs(1)));
    s.elapse(1).await;
    assert_eq!(ids(&s.take_over().await?), ["a"]);
    Ok(())
}

pub(crate) async fn an_extended_task_is_not_taken_over(s: Stage<'_>) -> Outcome {
    let taken = s.running(task("a")).await?;
    for _ in 0..5 {
        s.elapse(20).await;
        s.extend(&taken, LEASE).await?;
        assert!(s.take_over().await?.is_empty());
    }
    Ok(())
}

pub(crate) async fn an_extension_of_what_is_not_ours_is_lost(s: Stage<'_>) -> Outcome {
    let token = Token::from_bytes([7; 16]);
    for state in STATES {
        s.reach(state, task(state.as_str())).await?;
        let held = Held::new(key(QUEUE, state.as_str()), token);
        assert_eq!(s.broker().extend(vec![held], LEASE).await?, [Extension::Lost], "{state}");
    }
    let unknown = vec![Held::new(key(QUEUE, "none"), token), Held::new(key("none", "none"), token)];
    assert_eq!(s.broker().extend(unknown, LEASE).await?, [Extension::Lost; 2]);
    Ok(())
}

pub(crate) async fn a_settled_attempt_has_no_lease_to_extend(s: Stage<'_>) -> Outcome {
    let taken = s.settled(task("a"), Settlement::Release).await?;
    assert_eq!(s.extend(&taken, LEASE).await?, Extension::Lost);
    let expected_pending = s.the("a").await?;
    assert_eq!((expected_pending.state, expected_pending.lease_until), (State::Pending, None));
    Ok(())
}

pub(crate) async fn a_task_is_taken_over_when_its_lease_ends_and_not_before(s: Stage<'_>) -> Outcome {
    let first = s.running(task("a")).await?;
    s.elapse(LEASE.as_secs() - 1).await;
    assert!(s.take_over().await?.is_empty());
    s.elapse(1).await;
    let taken = s.take_over().await?;
    assert_eq!(ids(&taken), ["a"]);
    assert_ne!(taken[0].token, first.token);
    let expected = TaskRecord { lease_until: Some(s.now() + LEASE), ..first };
    assert_same(&taken[0], &expected);
    assert_eq!(s.the("a").await?, taken[0], "what was taken over is what is stored");
    assert!(s.take_over().await?.is_empty(), "it has a lease again");
    Ok(())
}

pub(crate) async fn what_the_lost_attempt_said_stays(s: Stage<'_>) -> Outcome {
    let first = s.running(task("a")).await?;
    s.broker().progress(held(&first), 0.75, "almost".into()).await?;
    s.broker().store_result(held(&first), "part".into()).await?;
    s.elapse(60).await;
    let taken = s.take_over().await?;
    assert_eq!(taken[0].progress.as_ref().map(|progress| progress.done), Some(0.75));
    assert_eq!(taken[0].result, Some("part".into()));
    assert_eq!(taken[0].started_at, first.started_at);
    Ok(())
}

pub(crate) async fn a_token_is_worthless_after_a_take_over(s: Stage<'_>) -> Outcome {
    let first = s.running(task("a")).await?;
    s.elapse(60).await;
    let second = s.take_over().await?.remove(0);
    let before = s.the("a").await?;

    assert_eq!(s.extend(&first, LEASE).await?, Extension::Lost);
    assert_eq!(s.settle(&first, complete()).await, Err(lease_lost("a")));
    assert_eq!(s.broker().store_result(held(&first), "x".into()).await, Err(lease_lost("a")));
    assert_eq!(s.broker().progress(held(&first), 1.0, "x".into()).await, Err(lease_lost("a")));
    assert_eq!(s.the("a").await?, before);
    assert_eq!(s.stats().await?.processed, 0);

    assert_eq!(s.extend(&second, LEASE).await?, Extension::Kept(s.now() + LEASE));
    assert_eq!(s.settle(&second, complete()).await?.state, None);
    Ok(())
}

pub(crate) async fn a_late_settle_after_a_reclaim_is_refused(s: Stage<'_>) -> Outcome {
    let first = s.settled(task("a"), Settlement::Release).await?;
    let second = s.take().await?;
    for settlement in [complete(), Settlement::Release, Settlement::Discard, crate::builders::archive()] {
        assert_eq!(s.settle(&first, settlement).await, Err(lease_lost("a")));
    }
    assert_eq!(s.the("a").await?, second);
    Ok(())
}

pub(crate) async fn whoever_takes_over_may_die_too(s: Stage<'_>) -> Outcome {
    let mut tokens = vec![s.running(task("a")).await?.token];
    for _ in 0..3 {
        s.elapse(60).await;
        tokens.push(s.take_over().await?.remove(0).token);
    }
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 4);
    Ok(())
}

pub(crate) async fn a_take_over_alone_uses_nothing(s: Stage<'_>) -> Outcome {
    s.running(task("a")).await?;
    s.elapse(60).await;
    let taken = s.take_over().await?.remove(0);
    assert_eq!((taken.retried, taken.deferrals, taken.crashes, taken.failed.clone()), (0, 0, 0, None));
    s.settle(&taken, retry_as(0, Class::Crashed, Charge::Crash)).await?;
    assert_eq!(s.the("a").await?.crashes, 1);
    Ok(())
}

pub(crate) async fn a_take_over_takes_the_earliest_expired_within_its_limit(s: Stage<'_>) -> Outcome {
    for (id, lease) in [("c", 30), ("a", 10), ("d", 500), ("b", 20)] {
        let taken = s.running(task(id)).await?;
        s.extend(&taken, secs(lease)).await?;
    }
    s.elapse(60).await;
    let request =
        |limit| TakeOver { queues: queues(&[QUEUE]), limit, lease: LEASE, not_after: Timestamp::MAX };
    assert!(s.broker().take_over(request(0)).await?.is_empty());
    assert_eq!(ids(&s.broker().take_over(request(2)).await?), ["a", "b"]);
    assert_eq!(ids(&s.broker().take_over(request(9)).await?), ["c"]);
    Ok(())
}

pub(crate) async fn a_take_over_that_comes_too_late_takes_nothing(s: Stage<'_>) -> Outcome {
    let taken = s.running(task("a")).await?;
    let asked = s.now();
    s.elapse(60).await;
    let request = |not_after| TakeOver { queues: queues(&[QUEUE]), limit: 9, lease: LEASE, not_after };
    assert!(s.broker().take_over(request(asked)).await?.is_empty());
    assert_eq!(s.the("a").await?.token, taken.token);
    assert_eq!(ids(&s.broker().take_over(request(s.now())).await?), ["a"], "in time is in time");
    Ok(())
}

/// The clock of a case never goes back: a lease that nobody may ask for stands for one from before it was set back.
pub(crate) async fn a_lease_from_a_clock_that_was_ahead_is_taken_over(s: Stage<'_>) -> Outcome {
    let mut lost = Vec::new();
    for (id, lease) in [
        ("day", secs(25 * 3_600)),
        ("hours", LEASE_AHEAD_MAX + secs(3_600)),
        ("longest", LEASE_MAX),
        ("expired", secs(10)),
    ] {
        let taken = s.running(task(id)).await?;
        s.extend(&taken, lease).await?;
        lost.push(taken);
    }
    s.elapse(20).await;
    let request =
        |limit| TakeOver { queues: queues(&[QUEUE]), limit, lease: LEASE, not_after: Timestamp::MAX };
    assert_eq!(ids(&s.broker().take_over(request(2)).await?), ["expired", "hours"]);
    let taken = s.broker().take_over(request(9)).await?;
    assert_eq!(ids(&taken), ["day"], "the longest lease there is lasts");
    let expected = TaskRecord { lease_until: Some(s.now() + LEASE), ..lost[0].clone() };
    assert_same(&taken[0], &expected);
    assert_eq!(s.the("day").await?, taken[0], "what was taken over is what is stored");
    assert!(s.take_over().await?.is_empty(), "each has a lease by the right clock again");
    assert_eq!(s.settle(&lost[0], complete()).await, Err(lease_lost("day")));
    assert_eq!(s.settle(&lost[2], complete()).await?.state, None);
    Ok(())
}

/// As above, a longer lease stands for a clock that was set back after it was given.
pub(crate) async fn a_living_lease_outlives_a_small_step_back_of_the_clock(s: Stage<'_>) -> Outcome {
    let mut living = Vec::new();
    for (id, back) in [("half", secs(30 * 60)), ("whole", LEASE_AHEAD_MAX - LEASE_MAX)] {
        let taken = s.running(task(id)).await?;
        s.extend(&taken, LEASE_MAX + back).await?;
        living.push(taken);
    }
    assert!(s.take_over().await?.is_empty());
    for taken in &living {
        assert_eq!(s.settle(taken, complete()).await?.state, None);
    }
    Ok(())
}

pub(crate) async fn a_take_over_looks_at_the_named_queues_only_paused_or_not(s: Stage<'_>) -> Outcome {
    for name in ["x", "y", "z"] {
        s.running(task("a").queue(name)).await?;
    }
    s.broker().pause(queue("x"), "no".into()).await?;
    s.elapse(60).await;
    let request = TakeOver {
        queues: queues(&["x", "z", "unknown"]),
        limit: 9,
        lease: LEASE,
        not_after: Timestamp::MAX,
    };
    let mut taken: Vec<_> =
        s.broker().take_over(request).await?.into_iter().map(|task| task.key.queue).collect();
    taken.sort_unstable();
    assert_eq!(taken, queues(&["x", "z"]));
    Ok(())
}

pub(crate) async fn a_result_is_kept_with_the_running_task(s: Stage<'_>) -> Outcome {
    let taken = s.running(task("a")).await?;
    s.broker().store_result(held(&taken), "one".into()).await?;
    s.broker().store_result(held(&taken), "two".into()).await?;
    assert_eq!(s.the("a").await?.result, Some("two".into()));
    let stranger = Held::new(key(QUEUE, "a"), Token::from_bytes([9; 16]));
    assert_eq!(s.broker().store_result(stranger, "three".into()).await, Err(lease_lost("a")));
    assert_eq!(s.the("a").await?.result, Some("two".into()));
    Ok(())
}

pub(crate) async fn progress_is_noted_and_brought_within_its_bounds(s: Stage<'_>) -> Outcome {
    let taken = s.running(task("a")).await?;
    for (said, kept) in
        [(0.5, 0.5), (1.5, 1.0), (-3.0, 0.0), (f64::INFINITY, 1.0), (f64::NAN, 0.0), (0.1, 0.1)]
    {
        s.elapse(1).await;
        s.broker().progress(held(&taken), said, format!("said {said}")).await?;
        let seen = s.the("a").await?.progress.expect("it was noted");
        assert_eq!((seen.done, seen.note.as_str(), seen.at), (kept, &*format!("said {said}"), s.now()));
    }
    Ok(())
}

pub(crate) async fn what_is_not_there_or_not_ours_takes_no_result_and_no_progress(s: Stage<'_>) -> Outcome {
    let token = Token::from_bytes([7; 16]);
    for state in STATES {
        let id = state.as_str();
        s.reach(state, task(id)).await?;
        let held = Held::new(key(QUEUE, id), token);
        assert_eq!(s.broker().store_result(held.clone(), "x".into()).await, Err(lease_lost(id)));
        assert_eq!(s.broker().progress(held, 1.0, "x".into()).await, Err(lease_lost(id)));
    }
    let held = Held::new(key(QUEUE, "none"), token);
    assert_eq!(s.broker().store_result(held.clone(), "x".into()).await, Err(not_found("none")));
    assert_eq!(s.broker().progress(held, 1.0, "x".into()).await, Err(not_found("none")));
    let held = Held::new(key("none", "a"), token);
    let refused = s.broker().progress(held, 1.0, "x".into()).await;
    assert_eq!(refused, Err(Error::NotFound { key: key("none", "a") }));
    Ok(())
}
