//! What a worker costs that has nothing to do: six pools over eleven queues.

use std::time::Duration;

use anyhow::Result;

use super::Case;
use crate::meter::Meter;
use crate::outcome::{Metric, Outcome, count};
use crate::processor;

/// The start is not part of it.
const SETTLED: Duration = Duration::from_secs(5);

/// Watches it for a while, and then counts its requests for as long, since counting costs Redis something.
pub(crate) async fn run(case: Case<'_>) -> Result<Outcome> {
    let watched = Duration::from_secs(case.seconds.into());
    let mut worker = case.system.start("idle", case.server, &[]).await?;
    worker.say("go").await?;
    worker.hear("started").await?;
    tokio::time::sleep(SETTLED).await;
    let meter = Meter::start(case.server, &[worker.pid()]).await?;
    let before = case.server.reads().await?;
    tokio::time::sleep(watched).await;
    // The second question is one of them.
    let reads = case.server.reads().await?.saturating_sub(before + 1);
    let spent = meter.stop().await?;
    let requests = case.server.requests(watched).await?;
    let a_second = |number| count(number) / watched.as_secs_f64();
    let resident = processor::resident(worker.pid())?;
    worker.end().await?;
    Ok(case
        .outcome(spent.others)
        .with(Metric::Requests, a_second(requests))
        .with(Metric::Reads, a_second(usize::try_from(reads)?))
        .share(Metric::WorkerShare, spent.processes[0], spent.wall)
        .share(Metric::StoreShare, spent.store, spent.wall)
        .memory(Metric::WorkerMemory, resident))
}
