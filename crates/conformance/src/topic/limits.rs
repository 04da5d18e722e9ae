//! Durations without end: they mean "for ever" and overflow nothing. A lease alone has a longest one.

use std::time::Duration;

use poolwright_broker::{Error, Extension, PoolBeat, ServerBeat, ServerId};
use poolwright_core::{Charge, Class, Settlement, State, Timestamp, UniqueLock, When};

use crate::Outcome;
use crate::builders::{QUEUE, claim, key, secs, task};
use crate::stage::{Stage, ids};

/// Later than any clock of these tests gets: the year 2200.
const FAR: Timestamp = Timestamp::from_secs(7_258_118_400);

const CENTURY: Duration = secs(3_155_760_000);

fn assert_far(what: &str, time: Option<Timestamp>) {
    assert!(time.is_some_and(|time| time > FAR), "{what} is {time:?}");
}

pub(crate) async fn a_delay_without_end_waits_for_ever(s: Stage<'_>) -> Outcome {
    for (id, when) in [("a", When::After(Duration::MAX)), ("b", When::At(Timestamp::MAX))] {
        assert_eq!(s.enqueue(task(id).when(when)).await?.state, State::Scheduled);
        assert_far("due", s.the(id).await?.due);
    }
    s.elapse(CENTURY.as_secs()).await;
    let promoted = s.promote().await?;
    assert_eq!(promoted.tasks, 0);
    assert_far("the next due time", promoted.next_due);
    Ok(())
}

pub(crate) async fn a_retry_without_end_waits_for_ever(s: Stage<'_>) -> Outcome {
    let settlement = Settlement::Retry {
        after: Duration::MAX,
        error: "wait".into(),
        class: Class::Snoozed,
        charge: Charge::Deferral,
    };
    s.settled(task("a"), settlement).await?;
    assert_far("due", s.the("a").await?.due);
    s.enqueue(task("b")).await?;
    s.broker().reschedule(key(QUEUE, "b"), When::After(Duration::MAX)).await?;
    assert_far("due", s.the("b").await?.due);
    Ok(())
}

pub(crate) async fn a_lease_without_end_overflows_nothing_and_is_no_lease(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a")).await?;
    let mut request = claim(s.claim_id(), 1, &[QUEUE]);
    request.lease = Duration::MAX;
    let taken = s.claim_as(request).await?;
    assert_far("the lease", taken[0].lease_until);
    s.elapse(CENTURY.as_secs()).await;
    match s.extend(&taken[0], Duration::MAX).await? {
        Extension::Kept(until) => assert_far("the extended lease", Some(until)),
        other => panic!("the lease is its holder's, got {other:?}"),
    }
    assert_eq!(ids(&s.take_over().await?), ["a"], "only a clock that is wrong writes such a lease");
    Ok(())
}

pub(crate) async fn a_retention_without_end_keeps_for_ever(s: Stage<'_>) -> Outcome {
    s.settled(task("a"), Settlement::Complete { retain_for: Duration::MAX, result: None }).await?;
    assert_far("the expiry", s.the("a").await?.expires_at);
    s.elapse(CENTURY.as_secs()).await;
    assert_eq!(s.sweep_expired().await?.expired, 0);
    assert_eq!(ids(&s.page(State::Completed, 9).await?.tasks), ["a"]);
    Ok(())
}

pub(crate) async fn a_lock_without_end_is_held_for_ever(s: Stage<'_>) -> Outcome {
    for (id, when) in [("a", When::Now), ("b", When::After(Duration::MAX))] {
        let mut given = task(id).when(when).build();
        given.unique = Some(UniqueLock::new(id, Duration::MAX));
        s.enqueue(given).await?;
    }
    s.elapse(CENTURY.as_secs()).await;
    for id in ["a", "b"] {
        let refused = s.enqueue(task("other").unique(id, 1)).await;
        assert_eq!(refused, Err(Error::DuplicateUnique { holder: key(QUEUE, id) }));
    }
    Ok(())
}

pub(crate) async fn limits_without_end_come_out_as_long_ones(s: Stage<'_>) -> Outcome {
    let mut given = task("a").timeout(Duration::MAX).deadline(Timestamp::MAX).max_retry(u32::MAX).build();
    given.retention = Duration::MAX;
    s.enqueue(given).await?;
    let taken = s.take().await?;
    assert!(taken.timeout > CENTURY && taken.retention > CENTURY, "{taken:?}");
    assert_eq!(taken.max_retry, u32::MAX);
    assert_far("the deadline", taken.deadline);
    Ok(())
}

pub(crate) async fn a_heartbeat_without_end_lasts(s: Stage<'_>) -> Outcome {
    let beat = ServerBeat {
        id: ServerId("a".into()),
        host: String::new(),
        pid: 0,
        started_at: Timestamp::EPOCH,
        beat_at: Timestamp::EPOCH,
        stopping: false,
        pools: Vec::<PoolBeat>::new(),
        tasks: Vec::new(),
    };
    s.broker().beat(beat, Duration::MAX).await?;
    s.elapse(CENTURY.as_secs()).await;
    assert_eq!(s.broker().servers().await?.len(), 1);
    Ok(())
}
