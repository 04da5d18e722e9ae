//! Idle without polling: a pool whose queues were found empty is left alone until its watch says that something came.
//!
//! Order matters: the watch is made before the first claim, and the ring is taken before each claim. Whatever arrives
//! while a claim is under way rings again, and the pool is asked once more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use poolwright_broker::Watch;
use tokio::sync::Notify;

use crate::site::Site;

/// Something may have come for a pool.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    rung: AtomicBool,
    taken: Notify,
}

impl Wake {
    pub(crate) fn is_rung(&self) -> bool {
        self.rung.load(Ordering::Acquire)
    }

    /// Takes the ring: a claim follows.
    pub(crate) fn take(&self) {
        if self.rung.swap(false, Ordering::AcqRel) {
            self.taken.notify_one();
        }
    }

    fn ring(&self) {
        self.rung.store(true, Ordering::Release);
    }

    /// Returns when the ring was taken.
    async fn heard(&self) {
        while self.is_rung() {
            self.taken.notified().await;
        }
    }
}

/// Rings for one pool. While a ring waits to be taken the watch is not asked: it remembers, and a busy producer costs
/// one wake-up for each claim instead of one for each task.
pub(crate) async fn run(site: Arc<Site>, pool: usize, mut watch: Box<dyn Watch>) {
    let wake = &site.pools[pool].wake;
    let rings = async {
        loop {
            watch.changed().await;
            wake.ring();
            site.look.notify_one();
            wake.heard().await;
        }
    };
    tokio::select! {
        () = site.stops.ending.cancelled() => {}
        () = rings => {}
    }
}
