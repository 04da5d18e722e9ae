//! What a retry costs.

use poolwright_core::{Charge, Class, TaskRecord};

use crate::Outcome;
use crate::builders::{QUEUE, key, retry_as, task};
use crate::stage::Stage;

/// `retried`, `deferrals` and `crashes`.
const fn used(task: &TaskRecord) -> (u32, u32, u32) {
    (task.retried, task.deferrals, task.crashes)
}

pub(crate) async fn each_charge_uses_its_own(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a")).await?;
    for (charge, expected) in [
        (Charge::Retry, (1, 0, 0)),
        (Charge::Deferral, (1, 1, 0)),
        (Charge::Deferral, (1, 2, 0)),
        (Charge::Crash, (1, 2, 1)),
        (Charge::Nothing, (1, 2, 1)),
        (Charge::Retry, (2, 0, 1)),
        (Charge::Crash, (2, 0, 2)),
        (Charge::Deferral, (2, 1, 2)),
    ] {
        let taken = s.take().await?;
        s.settle(&taken, retry_as(0, Class::Transient, charge)).await?;
        assert_eq!(used(&s.the("a").await?), expected, "{charge:?}");
    }
    Ok(())
}

pub(crate) async fn a_delayed_retry_costs_the_same(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a")).await?;
    for (charge, expected) in
        [(Charge::Crash, (0, 0, 1)), (Charge::Deferral, (0, 1, 1)), (Charge::Retry, (1, 0, 1))]
    {
        let taken = s.take().await?;
        s.settle(&taken, retry_as(10, Class::Transient, charge)).await?;
        assert_eq!(used(&s.the("a").await?), expected, "{charge:?}");
        s.elapse(20).await;
        s.promote().await?;
        assert_eq!(used(&s.the("a").await?), expected, "a promotion changes no number");
    }
    Ok(())
}

pub(crate) async fn the_store_does_not_judge(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").max_retry(1)).await?;
    for used in 1..=4 {
        let taken = s.take().await?;
        s.settle(&taken, retry_as(0, Class::Transient, Charge::Retry)).await?;
        assert_eq!(s.the("a").await?.retried, used);
    }
    Ok(())
}

pub(crate) async fn the_last_failure_is_shown_whatever_it_cost(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a")).await?;
    for (class, charge) in [
        (Class::Transient, Charge::Retry),
        (Class::RateLimited, Charge::Deferral),
        (Class::Crashed, Charge::Crash),
        (Class::NoHandler, Charge::Nothing),
    ] {
        s.elapse(1).await;
        let taken = s.take().await?;
        s.settle(&taken, retry_as(0, class, charge)).await?;
        let failed = s.the("a").await?.failed.expect("a failure is noted");
        assert_eq!((failed.class, failed.at), (class, s.now()));
    }
    let taken = s.take().await?;
    assert_eq!(taken.failed.map(|failed| failed.class), Some(Class::NoHandler), "the next attempt sees it");
    Ok(())
}

pub(crate) async fn run_now_keeps_retries_and_forgets_deferrals_and_crashes(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a")).await?;
    for charge in [Charge::Retry, Charge::Deferral, Charge::Crash] {
        let taken = s.take().await?;
        let after = if charge == Charge::Crash { 60 } else { 0 };
        s.settle(&taken, retry_as(after, Class::Transient, charge)).await?;
    }
    assert_eq!(used(&s.the("a").await?), (1, 1, 1));
    s.broker().run_now(key(QUEUE, "a")).await?;
    assert_eq!(used(&s.the("a").await?), (1, 0, 0));
    Ok(())
}
