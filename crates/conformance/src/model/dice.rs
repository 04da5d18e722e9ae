//! The random choices of a run, and the small world they are made from.

use std::time::Duration;

use poolwright_core::{Chance, QueueName, Scope, Subject, TaskKey, Timestamp, When};

use crate::builders::{key, queue};

pub(super) const QUEUES: [&str; 3] = ["x", "y", "z"];
pub(super) const IDS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
pub(super) const LOCKS: [&str; 3] = ["lock 1", "lock 2", "lock 3"];
pub(super) const SUBJECTS: [&str; 3] = ["1", "2", "3"];

/// Random choices that follow from a seed.
pub(super) struct Dice {
    chance: Chance,
    whole_seconds: bool,
}

impl Dice {
    pub(super) fn new(seed: u64, whole_seconds: bool) -> Self {
        Self { chance: Chance::seeded(seed), whole_seconds }
    }

    /// A number below `bound`.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.chance.next() % bound
    }

    /// True so many times of a hundred.
    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        let at = self.below(from.len() as u64);
        from[usize::try_from(at).expect("is below a length")].clone()
    }

    /// A place in a list of this length, mostly near its end: the latest is the most interesting.
    pub(super) fn place(&mut self, length: usize) -> Option<usize> {
        let back = if self.percent(60) { 4 } else { length };
        let back = self.below(back.clamp(1, length.max(1)) as u64);
        length.checked_sub(1 + usize::try_from(back).expect("is below a length"))
    }

    /// At most so many seconds, now and then none at all.
    pub(super) fn time(&mut self, seconds_max: u64) -> Duration {
        if self.percent(10) {
            return Duration::ZERO;
        }
        if self.whole_seconds || self.percent(50) {
            return Duration::from_secs(self.below(seconds_max + 1));
        }
        Duration::from_micros(self.below(seconds_max * 1_000_000))
    }

    pub(super) fn when(&mut self, now: Timestamp) -> When {
        match self.below(5) {
            0 => When::After(self.time(60)),
            1 => When::At(now + self.time(60)),
            2 => When::At(now - self.time(60)),
            _ => When::Now,
        }
    }

    pub(super) fn queue(&mut self) -> QueueName {
        queue(self.pick(&QUEUES))
    }

    pub(super) fn key(&mut self) -> TaskKey {
        key(self.pick(&QUEUES), self.pick(&IDS))
    }

    pub(super) fn keys(&mut self, most: u64) -> Vec<TaskKey> {
        (0..=self.below(most)).map(|_| self.key()).collect()
    }

    pub(super) fn subjects(&mut self) -> Vec<Subject> {
        (0..self.below(3)).map(|_| Subject::new("doc", self.pick(&SUBJECTS))).collect()
    }

    pub(super) fn scopes(&mut self) -> Vec<Scope> {
        (0..self.below(2)).map(|_| Scope::new("base", self.pick(&SUBJECTS))).collect()
    }

    /// A text of a few letters.
    pub(super) fn word(&mut self) -> String {
        self.pick(&["one", "zwei", "trois", "四", ""]).to_owned()
    }

    /// One number for each thing that must be told apart: payloads, claim ids, seeds.
    pub(super) fn number(&mut self) -> u64 {
        // 53 bits, since the story prints it and some stores keep it in signed or floating columns.
        self.chance.next() >> 11
    }
}
