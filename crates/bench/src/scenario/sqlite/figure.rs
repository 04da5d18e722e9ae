//! What a scenario gives: a rate, a distribution, or both.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};

/// One measurement.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// The scenario, and what ran in it.
    pub(crate) name: String,
    /// The number, larger is better for rates and smaller for the rest.
    pub(crate) value: f64,
    /// Its unit.
    pub(crate) unit: &'static str,
    /// Milliseconds at p50, p95, p99 and at most, for latencies.
    pub(crate) spread: Option<[f64; 4]>,
}

impl Figure {
    /// So many tasks in so much time.
    pub(crate) fn rate(name: impl Into<String>, tasks: usize, took: Duration) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "task counts are far below 2^52")]
        let value = tasks as f64 / took.as_secs_f64();
        Self { name: name.into(), value, unit: "tasks/s", spread: None }
    }

    /// A share or a ratio.
    pub(crate) fn share(name: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self { name: name.into(), value, unit, spread: None }
    }

    /// A distribution of microseconds; its value is the p50 in milliseconds.
    pub(crate) fn latency(name: impl Into<String>, micros: &Histogram<u64>) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "latencies are far below 2^52 microseconds")]
        let at = |quantile| micros.value_at_quantile(quantile) as f64 / 1_000.0;
        #[allow(clippy::cast_precision_loss, reason = "latencies are far below 2^52 microseconds")]
        let max = micros.max() as f64 / 1_000.0;
        let spread = [at(0.5), at(0.95), at(0.99), max];
        Self { name: name.into(), value: spread[0], unit: "ms p50", spread: Some(spread) }
    }

    /// The p99 in milliseconds, of a latency.
    pub(crate) fn p99(&self) -> f64 {
        self.spread.map_or(f64::NAN, |spread| spread[2])
    }

    /// As one JSON object.
    pub(crate) fn to_json(&self) -> Value {
        let mut object = json!({ "name": self.name, "value": self.value, "unit": self.unit });
        if let Some([p50, p95, p99, max]) = self.spread {
            object["ms"] = json!({ "p50": p50, "p95": p95, "p99": p99, "max": max });
        }
        object
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<44} {:>12.2} {}", self.name, self.value, self.unit)?;
        match self.spread {
            Some([_, p95, p99, max]) => write!(f, "   p95 {p95:.2}  p99 {p99:.2}  max {max:.2} ms"),
            None => Ok(()),
        }
    }
}
