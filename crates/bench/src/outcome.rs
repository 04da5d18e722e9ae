//! What one measurement found: numbers with their units, and how quiet the machine was.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::lateness::Lateness;
use crate::load::Load;
use crate::system::System;

macro_rules! metrics {
    ($($(#[doc = $doc:literal])+ $metric:ident = $key:literal, $name:literal, $unit:literal;)+) => {
        /// A kind of number; its order is that of a line.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Metric { $($(#[doc = $doc])+ $metric,)+ }

        impl Metric {
            /// Its name in JSON.
            pub(crate) const fn key(self) -> &'static str {
                match self { $(Self::$metric => $key,)+ }
            }

            /// What it is called in a table.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$metric => $name,)+ }
            }

            /// Its unit.
            pub(crate) const fn unit(self) -> &'static str {
                match self { $(Self::$metric => $unit,)+ }
            }
        }
    };
}

metrics! {
    /// Tasks a second.
    Rate = "tasks_per_s", "rate", "tasks/s";
    /// 1 when producer, store and worker all kept the rate, else 0.
    Carried = "carried", "kept up", "";
    /// From the second in which all were due until the last one began.
    AllRun = "all_run_s", "all run", "s";
    /// Tasks that began before their time.
    Early = "early", "early", "tasks";
    /// Half of the tasks began no later than this.
    P50 = "p50_ms", "p50", "ms";
    /// 95 % did.
    P95 = "p95_ms", "p95", "ms";
    /// 99 % did.
    P99 = "p99_ms", "p99", "ms";
    /// All did.
    Latest = "max_ms", "max", "ms";
    /// Processor time of the process that enqueues, for each task.
    ProducerTime = "producer_us_per_task", "producer", "µs/task";
    /// Processor time of the process that works, for each task.
    WorkerTime = "worker_us_per_task", "worker", "µs/task";
    /// Processor time of Redis, for each task.
    StoreTime = "redis_us_per_task", "redis", "µs/task";
    /// Commands that a worker sends to Redis without having work; those inside scripts are not counted.
    Requests = "requests_per_s", "requests", "a second";
    /// Times that Redis reads from a worker's connections meanwhile: commands that arrive together are one.
    Reads = "reads_per_s", "reads", "a second";
    /// Processor time of a worker without work.
    WorkerShare = "worker_percent", "worker", "% of a core";
    /// Processor time of Redis meanwhile.
    StoreShare = "redis_percent", "redis", "% of a core";
    /// Resident memory of the worker.
    WorkerMemory = "worker_mib", "memory of the worker", "MiB";
    /// Memory of Redis for each pending task.
    TaskMemory = "redis_bytes_per_task", "memory of redis", "bytes/task";
}

impl Metric {
    /// A number of this kind as people read it.
    pub(crate) fn amount(self, value: f64) -> String {
        match self {
            Self::Carried => (if value > 0.0 { "yes" } else { "no" }).to_owned(),
            Self::Rate | Self::Early | Self::TaskMemory => format!("{value:.0}"),
            _ if value < 10.0 => format!("{value:.2}"),
            _ => format!("{value:.1}"),
        }
    }

    fn show(self, value: f64) -> String {
        let amount = self.amount(value);
        match self {
            Self::Rate => format!("{amount:>7} {}", self.unit()),
            _ => format!("{} {amount} {}", self.name(), self.unit()).trim_end().to_owned(),
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

    /// Adds how late tasks began.
    pub(crate) fn late(self, late: &Lateness) -> Result<Self> {
        let [p50, p95, p99, max] = late.ms()?;
        Ok(self
            .with(Metric::P50, p50)
            .with(Metric::P95, p95)
            .with(Metric::P99, p99)
            .with(Metric::Latest, max))
    }

    /// Adds a share of a core.
    #[must_use]
    pub(crate) fn share(self, metric: Metric, spent: Duration, wall: Duration) -> Self {
        self.with(metric, 100.0 * spent.as_secs_f64() / wall.as_secs_f64())
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
