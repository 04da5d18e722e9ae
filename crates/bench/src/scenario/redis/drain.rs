//! How many tasks a second one process works off, from its start until the last handler ran.

use std::time::Duration;

use anyhow::{Result, bail};

use super::{Case, enqueue};
use crate::meter::Meter;
use crate::outcome::{Metric, Outcome};
use crate::part::QUEUE;
use crate::processor;
use crate::server::{Progress, Server};

/// How often, and how many times, the store is asked whether the last results have reached it.
const LOOK_EVERY: Duration = Duration::from_millis(10);
const LOOKS_MAX: usize = 500;

/// Fills a queue and empties it.
pub(crate) async fn whole(case: Case<'_>, workers: u32, subjects: bool) -> Result<Outcome> {
    let tasks = case.tasks(50_000);
    enqueue::fill(case.server, case.system, tasks, subjects).await?;
    run(case, tasks, workers, |seen| seen.processed == tasks as u64 && seen.active == 0).await
}

/// Fills a queue with so many and works off the first 50,000.
pub(crate) async fn part(case: Case<'_>, pending: usize, workers: u32) -> Result<Outcome> {
    let tasks = case.tasks(50_000);
    enqueue::fill(case.server, case.system, pending.max(tasks), false).await?;
    run(case, tasks, workers, |seen| seen.processed >= tasks as u64).await
}

async fn run(case: Case<'_>, tasks: usize, workers: u32, all: impl Fn(&Progress) -> bool) -> Result<Outcome> {
    let args = [("workers", workers.to_string()), ("tasks", tasks.to_string())];
    let mut worker = case.system.start("work", case.server, &args).await?;
    let meter = Meter::start(case.server, &[worker.pid()]).await?;
    let took = worker.run().await?;
    let spent = meter.stop().await?;
    let resident = processor::resident(worker.pid())?;
    until(case.server, all).await?;
    worker.end().await?;
    Ok(case
        .outcome(spent.others)
        .rate(tasks, took)
        .each(Metric::WorkerTime, spent.processes[0], tasks)
        .each(Metric::StoreTime, spent.store, tasks)
        .memory(Metric::WorkerMemory, resident))
}

/// Waits until all that was handled is settled and counted; else something was lost on the way.
pub(crate) async fn until(server: &Server, holds: impl Fn(&Progress) -> bool) -> Result<()> {
    let mut seen = server.progress(QUEUE).await?;
    for _ in 0..LOOKS_MAX {
        if holds(&seen) {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
        seen = server.progress(QUEUE).await?;
    }
    bail!("handlers have run, and their tasks have not ended: {seen:?}")
}
