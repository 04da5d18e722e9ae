//! How late tasks began, read from the file that a worker wrote.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use hdrhistogram::Histogram;

/// By the tasks' numbers, in microseconds; what began early is negative.
#[derive(Debug)]
pub(crate) struct Lateness(Vec<i64>);

impl Lateness {
    /// Reads a file of eight bytes each, the lowest first.
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let bytes = std::fs::read(file).with_context(|| format!("{} is not there", file.display()))?;
        let late =
            bytes.chunks_exact(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap_or_default()));
        let late: Vec<i64> = late.collect();
        let missing = late.iter().filter(|late| **late == i64::MIN).count();
        ensure!(missing == 0, "{missing} of {} tasks did not run", late.len());
        Ok(Self(late))
    }

    /// How many began before their time.
    pub(crate) fn early(&self) -> usize {
        self.0.iter().filter(|late| **late < 0).count()
    }

    /// Milliseconds at p50, p95, p99 and at most.
    pub(crate) fn ms(&self) -> Result<[f64; 4]> {
        let mut micros: Histogram<u64> = Histogram::new(3)?;
        for late in &self.0 {
            micros.record(u64::try_from(*late).unwrap_or(0))?;
        }
        #[allow(clippy::cast_precision_loss, reason = "latencies are far below 2^52 microseconds")]
        let ms = |micros: u64| micros as f64 / 1_000.0;
        let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|quantile| ms(micros.value_at_quantile(quantile)));
        Ok([p50, p95, p99, ms(micros.max())])
    }

    /// By how many milliseconds the last third of the tasks was later than the middle one, on average. A worker that
    /// carries its load is as late at the end as before, however late that is.
    pub(crate) fn growth(&self) -> f64 {
        let third = self.0.len() / 3;
        if third == 0 {
            return 0.0;
        }
        let mean = |late: &[i64]| {
            #[allow(
                clippy::cast_precision_loss,
                reason = "sums of latencies are far below 2^52 microseconds"
            )]
            let mean = late.iter().sum::<i64>() as f64 / late.len() as f64;
            mean / 1_000.0
        };
        mean(&self.0[2 * third..]) - mean(&self.0[third..2 * third])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_lateness_does_not_grow_and_a_queue_that_builds_up_does() {
        assert!(Lateness(vec![500_000; 90]).growth().abs() < 1e-9);
        let building: Vec<i64> = (0..90).map(|number| number * 10_000).collect();
        assert!((Lateness(building).growth() - 300.0).abs() < 1e-6);
        assert!(Lateness(vec![1]).growth().abs() < 1e-9);
    }

    #[test]
    fn early_tasks_are_counted_and_take_no_part_in_the_percentiles() {
        let late = Lateness(vec![-1, 1_000, 2_000, 100_000]);
        assert_eq!(late.early(), 1);
        let [p50, _, p99, max] = late.ms().unwrap();
        assert!((0.9..1.1).contains(&p50) && p99 >= 99.0 && max >= 99.0, "{p50} {p99} {max}");
    }
}
