//! What one measurement found: numbers with their units, and how quiet the machine was.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::load::Load;
use crate::system::System;

/// A kind of number; its order is that of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Metric {
    /// Tasks a second.
    Rate,
    /// Processor time of the process that enqueues, for each task.
    ProducerTime,
    /// Processor time of the process that works, for each task.
    WorkerTime,
    /// Processor time of Redis, for each task.
    StoreTime,
    /// Resident memory of the worker.
    WorkerMemory,
}

impl Metric {
    /// Its name in JSON.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Rate => "tasks_per_s",
            Self::ProducerTime => "producer_us_per_task",
            Self::WorkerTime => "worker_us_per_task",
            Self::StoreTime => "redis_us_per_task",
            Self::WorkerMemory => "worker_mib",
        }
    }

    /// What it is called in a table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::ProducerTime => "producer",
            Self::WorkerTime => "worker",
            Self::StoreTime => "redis",
            Self::WorkerMemory => "memory of the worker",
        }
    }

    /// Its unit.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::Rate => "tasks/s",
            Self::ProducerTime | Self::WorkerTime | Self::StoreTime => "µs/task",
            Self::WorkerMemory => "MiB",
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            Self::Rate => format!("{value:>8.0} {}", self.unit()),
            _ => format!("{} {value:.1} {}", self.name(), self.unit()),
        }
    }
}

/// One measurement.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    load: Load,
    system: System,
    numbers: BTreeMap<Metric, f64>,
    others: f64,
}

impl Outcome {
    /// Nothing yet; `others` is the share of the machine that neither system nor store used meanwhile.
    pub(crate) const fn new(load: Load, system: System, others: f64) -> Self {
        Self { load, system, numbers: BTreeMap::new(), others }
    }

    /// Adds a number.
    #[must_use]
    pub(crate) fn with(mut self, metric: Metric, value: f64) -> Self {
        self.numbers.insert(metric, value);
        self
    }

    /// Adds so many tasks in so much time.
    #[must_use]
    pub(crate) fn rate(self, tasks: usize, took: Duration) -> Self {
        let rate = count(tasks) / took.as_secs_f64();
        self.with(Metric::Rate, rate)
    }

    /// Adds a processor time for each task.
    #[must_use]
    pub(crate) fn each(self, metric: Metric, spent: Duration, tasks: usize) -> Self {
        let micros = spent.as_secs_f64() * 1e6 / count(tasks);
        self.with(metric, micros)
    }

    /// Adds an amount of memory.
    #[must_use]
    pub(crate) fn memory(self, metric: Metric, bytes: u64) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "no process has 2^52 bytes")]
        let mib = bytes as f64 / f64::from(1 << 20);
        self.with(metric, mib)
    }

    /// A number; none when this scenario does not measure it.
    pub(crate) fn get(&self, metric: Metric) -> Option<f64> {
        self.numbers.get(&metric).copied()
    }

    /// The share of the machine that others used.
    pub(crate) const fn others(&self) -> f64 {
        self.others
    }

    /// As one JSON object.
    pub(crate) fn to_json(&self) -> Value {
        let numbers = self.numbers.iter().map(|(metric, value)| (metric.key().to_owned(), json!(value)));
        let mut object = Value::Object(numbers.collect());
        object["scenario"] = json!(self.load.to_string());
        object["system"] = json!(self.system.to_string());
        object["others"] = json!(self.others);
        object
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.numbers.iter().map(|(metric, value)| metric.show(*value)).collect();
        let title = format!("{} · {}", self.load, self.system);
        write!(f, "{title:<44} {}   (others {:.0} %)", numbers.join("  "), self.others * 100.0)
    }
}

/// A count as a number to divide by.
#[allow(clippy::cast_precision_loss, reason = "task counts are far below 2^52")]
pub(crate) const fn count(tasks: usize) -> f64 {
    tasks as f64
}
