//! Payloads that say when their task was to run, and how late handlers were.
//!
//! A payload of 100 bytes begins with a time in microseconds since 1970 and the task's number, eight bytes each. All processes
//! of a scenario read the same clock, that of this machine.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Context as _, Result};
use poolwright_core::Clock as _;
use poolwright_core::clock::SystemClock;

use super::PAYLOAD;

/// Now, in microseconds since 1970.
pub(crate) fn now() -> i64 {
    SystemClock.now().as_micros()
}

/// A payload with this time and number.
pub(crate) fn payload(time: i64, number: usize) -> [u8; 100] {
    let mut bytes = PAYLOAD;
    bytes[..8].copy_from_slice(&time.to_be_bytes());
    bytes[8..16].copy_from_slice(&(number as u64).to_be_bytes());
    bytes
}

/// How late each task was, by its number, in microseconds.
#[derive(Debug)]
pub(crate) struct Stamps(Vec<AtomicI64>);

/// A task that has not run.
const NEVER: i64 = i64::MIN;

impl Stamps {
    /// For so many tasks.
    pub(crate) fn new(tasks: usize) -> Self {
        Self((0..tasks).map(|_| AtomicI64::new(NEVER)).collect())
    }

    /// Notes that the task of this payload begins now.
    pub(crate) fn note(&self, payload: &[u8]) -> Result<()> {
        let now = now();
        let of = |from: usize| Some(payload.get(from..from + 8)?.try_into().ok()).flatten();
        let (time, number) = of(0).zip(of(8)).context("the payload has no stamp")?;
        let number = usize::try_from(u64::from_be_bytes(number))?;
        let place = self.0.get(number).context("the payload's number is too large")?;
        place.store(now - i64::from_be_bytes(time), Ordering::Relaxed);
        Ok(())
    }

    /// Writes them into a file, eight bytes each, the lowest first.
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        let bytes: Vec<u8> =
            self.0.iter().flat_map(|late| late.load(Ordering::Relaxed).to_le_bytes()).collect();
        std::fs::write(file, bytes).context("cannot write how late tasks were")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lateness::Lateness;

    #[test]
    fn what_a_handler_notes_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let (stamps, file) = (Stamps::new(2), dir.path().join("late"));
        stamps.note(&payload(now() - 5_000, 1)).unwrap();
        stamps.note(&payload(now() + 60_000_000, 0)).unwrap();
        stamps.write(&file).unwrap();
        let late = Lateness::read(&file).unwrap();
        assert_eq!(late.early(), 1);
        assert!(late.ms().unwrap()[3] >= 5.0);
    }

    #[test]
    fn a_task_that_never_ran_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("late");
        Stamps::new(1).write(&file).unwrap();
        assert!(Lateness::read(&file).is_err());
    }
}
