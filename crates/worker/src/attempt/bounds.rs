//! The second bound around every attempt: time out, drop, stall, give up.
//!
//! One timer for all attempts, set to the earliest bound. A bound that was never reached costs nothing but one look at
//! the roster when the timer fires for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use poolwright_core::Timestamp;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::stage::Patience;
use crate::site::Site;

/// The longest nap while attempts have bounds, so that a clock that was set is noticed.
const NAP_MAX: Duration = Duration::from_secs(1);

/// When somebody must look at the attempts next.
#[derive(Debug)]
pub(crate) struct Alarm {
    micros: AtomicI64,
    moved: Notify,
}

impl Default for Alarm {
    fn default() -> Self {
        Self { micros: AtomicI64::new(i64::MAX), moved: Notify::new() }
    }
}

impl Alarm {
    /// Rings then, unless it rings earlier anyway.
    pub(crate) fn set(&self, at: Timestamp) {
        if self.micros.fetch_min(at.as_micros(), Ordering::AcqRel) > at.as_micros() {
            self.moved.notify_one();
        }
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_micros(self.micros.load(Ordering::Acquire))
    }

    fn clear(&self) {
        self.micros.store(i64::MAX, Ordering::Release);
    }
}

/// Looks at the attempts whenever the alarm rings.
pub(crate) async fn run(site: Arc<Site>) {
    let patience = Patience::of(&site.options);
    loop {
        let at = site.alarm.at();
        let nap = async {
            match at {
                Timestamp::MAX => std::future::pending().await,
                at => sleep(at.after(site.clock.now()).min(NAP_MAX)).await,
            }
        };
        tokio::select! {
            () = site.stops.ending.cancelled() => return,
            () = site.alarm.moved.notified() => {}
            () = nap => {}
        }
        let now = site.clock.now();
        if site.alarm.at() > now {
            continue;
        }
        // Cleared before looking: what is set meanwhile is not lost.
        site.alarm.clear();
        for attempt in site.roster.all() {
            if let Some(next) = attempt.look(&site, now, patience) {
                site.alarm.set(next);
            }
        }
    }
}
