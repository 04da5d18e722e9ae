//! Group `poison`: a record that does not decode is set aside and stands in nobody's way.

use poolwright_broker::Find;
use poolwright_core::{State, Subject};

use crate::Outcome;
use crate::builders::{LEASE, QUEUE, key, queue, task, tasks};
use crate::stage::{Stage, ids};

pub(crate) async fn a_claim_sets_poison_aside_and_takes_the_next(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b", "c"])).await?;
    s.harness().poison(&key(QUEUE, "b")).await;
    assert_eq!(ids(&s.claim(2).await?), ["a", "c"]);
    let stats = s.stats().await?;
    assert_eq!((stats.quarantined, stats.pending, stats.active), (1, 0, 2));
    let aside = s.broker().quarantine(queue(QUEUE), 10).await?;
    assert_eq!(aside.len(), 1);
    assert_eq!((aside[0].queue.as_str(), aside[0].id.as_str(), aside[0].at), (QUEUE, "b", s.now()));
    assert!(!aside[0].reason.is_empty() && !aside[0].raw.is_empty(), "{aside:?}");
    assert!(s.broker().quarantine(queue(QUEUE), 0).await?.is_empty());
    Ok(())
}

pub(crate) async fn poison_leaves_neither_lock_nor_index_entry(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").unique("lock", 1_000).subject("doc", "1")).await?;
    s.harness().poison(&key(QUEUE, "a")).await;
    assert!(s.claim(1).await?.is_empty());
    s.enqueue(task("b").unique("lock", 1_000)).await?;
    assert!(s.broker().find(Find::Subject(Subject::new("doc", "1")), 9).await?.tasks.is_empty());
    Ok(())
}

pub(crate) async fn a_promotion_is_not_stopped_by_poison(s: Stage<'_>) -> Outcome {
    for id in ["a", "b", "c"] {
        s.enqueue(task(id).after(10)).await?;
    }
    s.harness().poison(&key(QUEUE, "b")).await;
    s.elapse(20).await;
    s.promote().await?;
    assert_eq!(ids(&s.claim(9).await?), ["a", "c"]);
    assert_eq!(s.promote().await?.next_due, None);
    assert_eq!(s.stats().await?.quarantined, 1);
    Ok(())
}

pub(crate) async fn a_take_over_is_not_stopped_by_poison(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b", "c"])).await?;
    s.claim(3).await?;
    s.harness().poison(&key(QUEUE, "b")).await;
    s.elapse(LEASE.as_secs()).await;
    assert_eq!(ids(&s.take_over().await?), ["a", "c"]);
    assert_eq!(s.stats().await?.quarantined, 1);
    Ok(())
}

pub(crate) async fn a_page_is_not_stopped_by_poison(s: Stage<'_>) -> Outcome {
    s.enqueue_all(tasks(["a", "b", "c"])).await?;
    s.harness().poison(&key(QUEUE, "b")).await;
    assert_eq!(s.ids(State::Pending).await?, ["c", "a"]);
    Ok(())
}

pub(crate) async fn quarantine_comes_latest_first_and_goes_with_its_queue(s: Stage<'_>) -> Outcome {
    for id in ["a", "b"] {
        s.elapse(1).await;
        s.enqueue(task(id)).await?;
        s.harness().poison(&key(QUEUE, id)).await;
        assert!(s.claim(1).await?.is_empty());
    }
    let aside = s.broker().quarantine(queue(QUEUE), 10).await?;
    assert_eq!(aside.iter().map(|record| record.id.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    s.broker().remove_queue(queue(QUEUE), true).await?;
    assert!(s.broker().quarantine(queue(QUEUE), 10).await?.is_empty());
    Ok(())
}
