//! Keeps the leases of everything this process holds: one call for all, at a third of the lease.
//!
//! Invariant: an attempt's lease is extended until its settlement is stored, also while the store is away and results
//! wait. Whatever the store answers about a lease is acted upon here and nowhere else.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use poolwright_broker::{Error, Extension};
use poolwright_core::Timestamp;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::attempt::Attempt;
use crate::attempt::stage::Stop;
use crate::backoff::Backoff;
use crate::site::Site;

/// When all leases were last known to be ours.
#[derive(Debug)]
pub(crate) struct Leases {
    renewed_micros: AtomicI64,
    asked: Notify,
}

impl Leases {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { renewed_micros: AtomicI64::new(now.as_micros()), asked: Notify::new() }
    }

    /// Asks the keeper not to wait for its time.
    pub(crate) fn renew_now(&self) {
        self.asked.notify_one();
    }

    /// How long ago all leases were renewed.
    pub(crate) fn age(&self, now: Timestamp) -> Duration {
        now.since(Timestamp::from_micros(self.renewed_micros.load(Ordering::Acquire)))
    }

    fn renewed(&self, now: Timestamp) {
        self.renewed_micros.store(now.as_micros(), Ordering::Release);
    }
}

/// Renews all leases until the worker has ended.
pub(crate) async fn run(site: Arc<Site>) {
    let lease = site.options.lease;
    // Faster than other loops: a lease has only two more thirds.
    let mut backoff = Backoff::new(lease / 50, lease / 6, site.chance.clone());
    let mut pause = lease / 3;
    loop {
        tokio::select! {
            () = site.stops.ending.cancelled() => return,
            () = site.leases.asked.notified() => {}
            () = sleep(pause) => {}
        }
        let begun = site.clock.now();
        pause = match renew(&site, site.roster.owners()).await {
            Ok(()) => {
                site.leases.renewed(begun);
                backoff.reset();
                lease / 3
            }
            Err(error) => {
                tracing::debug!(%error, "the leases were not extended");
                backoff.next()
            }
        };
    }
}

/// Extends the leases of these attempts, and asks those to end that were cancelled or have lost theirs.
pub(crate) async fn renew(site: &Site, attempts: Vec<Arc<Attempt>>) -> Result<(), Error> {
    if attempts.is_empty() {
        return Ok(());
    }
    let lease = site.options.lease;
    let held = attempts.iter().map(|attempt| attempt.held()).collect();
    let answers = site.call_within(lease / 3, site.broker.extend(held, lease)).await?;
    for (attempt, answer) in attempts.iter().zip(answers) {
        match answer {
            Extension::Kept(_) => {}
            Extension::Cancelled(_) => attempt.ask(site, Stop::Cancelled),
            // One that is over is being settled, and the settlement's own answer says what became of it.
            Extension::Lost => attempt.ask(site, Stop::Lost),
        }
    }
    Ok(())
}
