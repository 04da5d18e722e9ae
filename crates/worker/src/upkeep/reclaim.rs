//! Takes over the tasks of workers that died, and asks the judge what becomes of them.
//!
//! A lease that ran out while nobody could extend it is no sign of death. So take-over holds back for one lease after the
//! store was away, whenever this process finds that its own leases are old, and when the clock leaps (it was set, or the
//! machine was suspended): extends go first, here and, by the same rule, everywhere else.
//!
//! Invariant: nothing is taken over while this process's own leases are not fresh, also not by a request that was sent
//! while they were and got stuck on its way.

use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::{Error, Held, TakeOver};
use poolwright_core::verdict::judge;
use poolwright_core::{Class, End, TaskRecord, Timestamp};
use tokio::time::sleep;

use crate::settle;
use crate::site::Site;

/// How many tasks are taken over in one call.
const LIMIT: u32 = 100;

/// Takes over until the worker has ended.
pub(crate) async fn run(site: Arc<Site>) {
    tokio::select! {
        () = site.stops.ending.cancelled() => {}
        () = reclaim(&site) => {}
    }
}

async fn reclaim(site: &Site) {
    let (every, lease) = (site.options.reclaim_every, site.options.lease);
    let mut outages = site.contact.outages();
    // Processes that were started together need not look together.
    sleep(every.mul_f64(site.chance.roll())).await;
    let mut looked = site.clock.now();
    let mut shown = looked;
    loop {
        let now = site.clock.now();
        // Set back, the clock may show leases of the living as too far ahead to be true, until they are extended.
        let leapt = now < shown || has_leapt(looked, now, every, lease);
        let age = site.leases.age(now);
        (looked, shown) = (now, now);
        if !site.contact.is_away() {
            if outages != site.contact.outages() || age > lease || leapt {
                outages = site.contact.outages();
                tracing::info!("take-over holds back for one lease, so that extends go first");
                site.leases.renew_now();
                looked = now + lease;
                sleep(lease).await;
                continue;
            }
            if age > lease / 3 * 2 {
                site.leases.renew_now();
            } else {
                match take_over(site).await {
                    // Our own leases are looked at again before the next ones are taken.
                    Ok(more) if more => continue,
                    Ok(_) => {}
                    Err(error) => tracing::debug!(%error, "expired leases were not taken over"),
                }
            }
        }
        sleep(every).await;
    }
}

/// More time has passed since the last look than a rest and a call explain. Our own leases may be fresh again by now, but
/// those of others need not be.
fn has_leapt(looked: Timestamp, now: Timestamp, every: Duration, lease: Duration) -> bool {
    now.since(looked) > every + lease / 3
}

/// The first of those that have expired by now; true when there may be more.
async fn take_over(site: &Site) -> Result<bool, Error> {
    // Our own leases are younger than two thirds. What has not been done within the last one must not be done at all: by
    // then they may have run out behind whatever holds up the store.
    let (lease, soon) = (site.options.lease, site.options.lease / 3);
    let not_after = site.broker.now() + soon;
    let request = TakeOver { queues: site.queues.clone(), limit: LIMIT, lease, not_after };
    let dead = site.call_within(soon, site.broker.take_over(request)).await?;
    let more = dead.len() >= LIMIT as usize;
    if !dead.is_empty() {
        bury(site, dead).await?;
    }
    Ok(more)
}

/// Judges and settles. If that fails the new leases expire in their turn, and whoever sees it does the same.
async fn bury(site: &Site, dead: Vec<TaskRecord>) -> Result<(), Error> {
    site.counters.crashed_taken_over.add(dead.len() as u64);
    let verdict = |task: TaskRecord| {
        let held = Held::of(&task)?;
        // Whoever cancelled it wanted its end, and got it in another way.
        let class = if task.cancel_requested { Class::Cancelled } else { Class::Crashed };
        let error = "its worker died or lost contact: the lease expired".to_owned();
        let end = End::Failed { class, after: None, error };
        let policy = site.rules.of(&task.task_type);
        let settlement = judge(end, &task.attempt(), policy, site.broker.now(), site.chance.roll());
        tell!(warn, &task, crashes = task.crashes, "taken over from a worker that died or lost contact");
        Some((task, held, settlement))
    };
    let verdicts: Vec<_> = dead.into_iter().filter_map(verdict).collect();
    let settlements = verdicts.iter().map(|(_, held, settlement)| (held.clone(), settlement.clone()));
    let outcomes = site.call(site.broker.settle(settlements.collect())).await?;
    for ((task, _, settlement), outcome) in verdicts.iter().zip(outcomes) {
        match outcome {
            Ok(settled) => {
                settle::count(site, task, settlement);
                settle::mourn(site, task, settlement, settled, || None);
            }
            Err(error) => tell!(debug, task, %error, "somebody else settled it meanwhile"),
        }
    }
    site.changed.notify_waiters();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leap_is_more_than_a_rest_and_a_call() {
        let (looked, secs) = (Timestamp::from_secs(1_000), Duration::from_secs);
        let leapt = |after| has_leapt(looked, looked + after, secs(1), secs(9));
        assert!(!leapt(secs(1)) && !leapt(secs(4)));
        assert!(leapt(secs(5)) && leapt(secs(43_200)));
        assert!(
            !has_leapt(looked, looked - secs(60), secs(1), secs(9)),
            "a clock that was set back is seen by what it showed last, not by when a look was due"
        );
    }
}
