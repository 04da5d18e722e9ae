//! Tasks that are due later: many in one second, and single ones.

use anyhow::{Result, ensure};

use super::Case;
use super::watched::Watched;
use crate::meter::Meter;
use crate::outcome::{Metric, Outcome, count};
use crate::part::now;

/// Time for enqueueing before the first is due, in seconds.
const LEAD_SECS: i64 = 20;
const LEAD_LONE_SECS: i64 = 5;

/// 50,000 in one second: until the last has begun.
pub(crate) async fn together(case: Case<'_>) -> Result<Outcome> {
    run(case, case.tasks(50_000), LEAD_SECS, 0).await
}

/// One a second: how late each is past its second.
pub(crate) async fn alone(case: Case<'_>) -> Result<Outcome> {
    run(case, case.tasks(30), LEAD_LONE_SECS, 1).await
}

async fn run(case: Case<'_>, tasks: usize, lead_secs: i64, apart: i64) -> Result<Outcome> {
    let mut worker = Watched::start(case, tasks).await?;
    let at = now() / 1_000_000 + lead_secs;
    let args = [("tasks", tasks.to_string()), ("at", at.to_string()), ("apart", apart.to_string())];
    let mut producer = case.system.start("schedule", case.server, &args).await?;
    producer.run().await?;
    producer.end().await?;
    ensure!(
        now() < at * 1_000_000,
        "{tasks} tasks were not enqueued within {lead_secs} s, before the first was due"
    );
    let meter = Meter::start(case.server, &[worker.pid()]).await?;
    let late = worker.done().await?;
    let spent = meter.stop().await?;
    worker.end().await?;
    let outcome = case.outcome(spent.others).with(Metric::Early, count(late.early())).late(&late)?;
    if apart > 0 {
        return Ok(outcome);
    }
    let all_run = late.ms()?[3] / 1_000.0;
    Ok(outcome.with(Metric::AllRun, all_run).each(Metric::WorkerTime, spent.processes[0], tasks).each(
        Metric::StoreTime,
        spent.store,
        tasks,
    ))
}
