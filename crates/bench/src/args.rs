//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::system::System;

/// Measures Poolwright beside asynq on one Redis, or beside a bare loop on SQLite.
///
/// Payloads of 100 bytes, handlers that do nothing. Machines are noisy: only ratios of one run mean anything.
#[derive(Debug, Clone, Parser)]
#[command(name = "poolwright-bench", version)]
pub(crate) struct Args {
    /// What to measure.
    pub(crate) scenario: Scenario,
    /// With `compare`: these scenarios only; all by default.
    pub(crate) only: Vec<Scenario>,
    /// `redis://HOST:PORT/DB` or `redis+unix:///PATH` of an empty database, or `sqlite`. Default: a private Redis for
    /// each measurement, in memory.
    #[arg(long)]
    pub(crate) broker: Option<String>,
    /// Who is measured.
    #[arg(long, value_enum, default_value_t = System::Ours)]
    pub(crate) system: System,
    /// How many tasks; each scenario has a default of its own.
    #[arg(long)]
    pub(crate) tasks: Option<usize>,
    /// Workers of the pool; `compare` drains with 10 and 50.
    #[arg(long, default_value_t = 50)]
    pub(crate) workers: u32,
    /// 1: each task has a subject of its own.
    #[arg(long, default_value_t = 0)]
    pub(crate) subjects: u32,
    /// `steady`: tasks a second. Default: 500, 2,000 and 4,000, one after the other.
    #[arg(long)]
    pub(crate) rate: Option<u32>,
    /// `steady` and `idle`: how long.
    #[arg(long, default_value_t = 15)]
    pub(crate) seconds: u32,
    /// `pickup`: who enqueues. Default: the system that is measured.
    #[arg(long, value_enum)]
    pub(crate) producer: Option<System>,
    /// Rounds of `compare`; medians count.
    #[arg(long, default_value_t = 5)]
    pub(crate) rounds: usize,
    /// With `compare`: a measurement during which others used more than 15 % of the machine is made anew up to so
    /// many times, and the quietest is kept.
    #[arg(long, default_value_t = 2)]
    pub(crate) retries: usize,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// With `compare`: print a table in Markdown.
    #[arg(long)]
    pub(crate) markdown: bool,
    /// SQLite: what a commit waits for, `normal` or `full`.
    #[arg(long, default_value = "normal")]
    pub(crate) synchronous: String,
    /// SQLite: where the files go; a temporary directory by default.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
}

impl Args {
    /// The scenarios of SQLite are asked for.
    pub(crate) fn is_sqlite(&self) -> bool {
        self.broker.as_deref().is_some_and(|broker| broker.starts_with("sqlite"))
    }
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// How fast tasks are taken. Redis: by one caller, by 50, in batches of 100. SQLite: in batches.
    Enqueue,
    /// The same by bare scripts.
    EnqueueBare,
    /// A preloaded queue, emptied by one process.
    Drain,
    /// The same by bare scripts, or on SQLite by a bare loop.
    DrainBare,
    /// Tasks are sent and run at a rate: from enqueue to the start of the handler.
    Steady,
    /// The largest rate that `steady` carries.
    Peak,
    /// From enqueue to the start of the handler on an idle system, with random gaps.
    Pickup,
    /// 50,000 tasks that are due in one second: until all have begun.
    Due,
    /// Single tasks that are due, each in a second of its own.
    DueLone,
    /// 100 and 12,000 tasks active at once, ending in order and at random: what an end costs Redis.
    Long,
    /// Draining from a million pending against draining from 50 thousand.
    Backlog,
    /// What an idle worker with six pools costs.
    Idle,
    /// Bytes of Redis for a pending task.
    Memory,
    /// Systems side by side in interleaved rounds; prints ratios.
    Compare,
    /// SQLite: 50 callers, one task each call.
    Single,
    /// SQLite: drain without a worker; one caller that settles and claims `--workers` at a time.
    DrainByStore,
    /// SQLite: pick-up from another process.
    PickupAcross,
    /// SQLite: pick-up in one pool while another is saturated, against the same when all is calm.
    Isolation,
    /// SQLite: enqueue, single and drain in rounds, interleaved with the bare loop; prints ratios.
    Rates,
    /// SQLite: the other process of `pickup-across`.
    #[value(hide = true)]
    Produce,
}

impl Scenario {
    /// Its word on the command line.
    pub(crate) fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}
