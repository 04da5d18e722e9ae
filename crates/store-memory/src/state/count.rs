//! How many attempts ended, and how many of them badly: by UTC day and in total.

use std::collections::BTreeMap;

use poolwright_broker::{DayStats, HISTORY_DAYS_MAX};
use poolwright_core::Timestamp;

/// The counters of one queue.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) total: Tally,
    days: BTreeMap<i64, Tally>,
}

/// Two numbers that grow together.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) processed: u64,
    pub(crate) failed: u64,
}

impl Tally {
    fn add(&mut self, failed: bool) {
        self.processed += 1;
        self.failed += u64::from(failed);
    }
}

impl Counters {
    /// An attempt ended.
    pub(crate) fn count(&mut self, failed: bool, now: Timestamp) {
        self.total.add(failed);
        self.days.entry(now.day()).or_default().add(failed);
        // A day was added at most, so a day goes at most.
        if self.days.len() > HISTORY_DAYS_MAX as usize {
            self.days.pop_first();
        }
    }

    /// What this day came to.
    pub(crate) fn of(&self, day: i64) -> Tally {
        self.days.get(&day).copied().unwrap_or_default()
    }

    /// The last days, today first.
    pub(crate) fn history(&self, days: u32, now: Timestamp) -> Vec<DayStats> {
        let days = i64::from(days.min(HISTORY_DAYS_MAX));
        (0..days)
            .map(|ago| {
                let day = now.day() - ago;
                let Tally { processed, failed } = self.of(day);
                DayStats { day, processed, failed }
            })
            .collect()
    }
}
