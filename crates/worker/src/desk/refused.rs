//! Results that the store refuses, each for itself: laid aside, and said again after longer and longer pauses.
//!
//! They keep their leases and their workers, as everything does that is not stored. But nothing else waits with them: neither
//! other results nor claims.

use std::pin::Pin;

use futures_util::poll;
use tokio::time::{Sleep, sleep};

use crate::backoff::Backoff;
use crate::settle::Open;

/// What was refused, and when it is said again.
///
/// Bounded by the workers: each result keeps its permit.
pub(super) struct Refused {
    results: Vec<Open>,
    backoff: Backoff,
    /// The pause before they are said again.
    pause: Option<Pin<Box<Sleep>>>,
    is_due: bool,
}

impl Refused {
    pub(super) const fn new(backoff: Backoff) -> Self {
        Self { results: Vec::new(), backoff, pause: None, is_due: false }
    }

    /// Lays them aside. `again`: they were said once more, with all that had been laid aside before.
    pub(super) fn keep(&mut self, results: Vec<Open>, again: bool) {
        if results.is_empty() {
            if again && self.results.is_empty() {
                self.backoff.reset();
            }
            return;
        }
        self.results.extend(results);
        // Whoever comes later goes with those who wait already.
        if self.pause.is_none() && !self.is_due {
            self.pause = Some(Box::pin(sleep(self.backoff.next())));
        }
    }

    /// Looks whether the pause is over.
    pub(super) async fn look(&mut self) {
        if let Some(pause) = &mut self.pause
            && poll!(pause).is_ready()
        {
            (self.pause, self.is_due) = (None, true);
        }
    }

    /// Waits for the end of the pause; for ever, if there is none.
    pub(super) async fn due(&mut self) {
        match &mut self.pause {
            Some(pause) => pause.await,
            None => std::future::pending().await,
        }
        (self.pause, self.is_due) = (None, true);
    }

    /// What is to be said again now, at most so many; the others follow at once.
    pub(super) fn take_due(&mut self, most: usize) -> Option<Vec<Open>> {
        if !self.is_due {
            return None;
        }
        let results: Vec<_> = self.results.drain(..most.min(self.results.len())).collect();
        self.is_due = !self.results.is_empty();
        Some(results)
    }
}
