//! How many tasks a second one process works off, from its start until the last handler ran.

use std::time::Duration;

use anyhow::{Result, bail};

use super::enqueue;
use crate::load::Load;
use crate::meter::Meter;
use crate::outcome::{Metric, Outcome};
use crate::part::QUEUE;
use crate::processor;
use crate::server::Server;
use crate::system::System;

/// How long the results of the last handlers may take to reach the store.
const LOOKS_MAX: usize = 500;
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What is drained by whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drain {
    pub(crate) tasks: usize,
    pub(crate) workers: u32,
    pub(crate) subjects: bool,
}

/// Fills the queue and empties it.
pub(crate) async fn run(server: &Server, load: Load, system: System, drain: Drain) -> Result<Outcome> {
    let Drain { tasks, workers, subjects } = drain;
    enqueue::fill(server, system, tasks, subjects).await?;
    let args = [("workers", workers.to_string()), ("tasks", tasks.to_string())];
    let mut worker = system.start("work", server, &args).await?;
    let meter = Meter::start(server, &[worker.pid()]).await?;
    let took = worker.run().await?;
    let spent = meter.stop().await?;
    let resident = processor::resident(worker.pid())?;
    settled(server, tasks).await?;
    worker.end().await?;
    Ok(Outcome::new(load, system, spent.others)
        .rate(tasks, took)
        .each(Metric::WorkerTime, spent.processes[0], tasks)
        .each(Metric::StoreTime, spent.store, tasks)
        .memory(Metric::WorkerMemory, resident))
}

/// Waits until all that was handled is settled and counted; else something was lost on the way.
async fn settled(server: &Server, tasks: usize) -> Result<()> {
    let mut seen = server.progress(QUEUE).await?;
    for _ in 0..LOOKS_MAX {
        if seen.processed == tasks as u64 && seen.active == 0 {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
        seen = server.progress(QUEUE).await?;
    }
    bail!("{tasks} tasks were handled, and the store says {seen:?}")
}
