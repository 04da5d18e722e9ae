//! Tasks are sent and run at a given rate: how long they wait from enqueue until their handler begins.

use std::time::Duration;

use anyhow::Result;

use super::Case;
use super::watched::Watched;
use crate::lateness::Lateness;
use crate::meter::{Meter, Spent};
use crate::outcome::{Metric, Outcome, count};

/// A producer that is later than this share, and this time, did not keep its rate.
const LATE_SHARE: f64 = 0.02;
const LATE: Duration = Duration::from_millis(100);

/// The wait may grow, from the middle third to the last one, by so much of a third's length: 95 % of the rate is carried.
const GROWTH_SHARE: f64 = 0.05;

/// What came of one rate.
pub(crate) struct Run {
    pub(crate) tasks: usize,
    /// How long the producer took.
    took: Duration,
    pub(crate) late: Lateness,
    pub(crate) spent: Spent,
}

/// One rate, and whether it is carried.
pub(crate) async fn run(case: Case<'_>, rate: u32) -> Result<Outcome> {
    let run = at(case, rate, case.seconds).await?;
    Ok(case
        .outcome(run.spent.others)
        .with(Metric::Carried, if run.is_carried(rate) { 1.0 } else { 0.0 })
        .rate(run.tasks, run.took)
        .late(&run.late)?
        .each(Metric::ProducerTime, run.spent.processes[0], run.tasks)
        .each(Metric::WorkerTime, run.spent.processes[1], run.tasks)
        .each(Metric::StoreTime, run.spent.store, run.tasks))
}

/// Sends at this rate for so long.
pub(crate) async fn at(case: Case<'_>, rate: u32, seconds: u32) -> Result<Run> {
    let tasks = (rate * seconds) as usize;
    let mut worker = Watched::start(case, tasks).await?;
    let args = [("tasks", tasks.to_string()), ("rate", rate.to_string())];
    let mut producer = case.system.start("pace", case.server, &args).await?;
    let meter = Meter::start(case.server, &[producer.pid(), worker.pid()]).await?;
    let took = producer.run().await?;
    let late = worker.done().await?;
    let spent = meter.stop().await?;
    producer.end().await?;
    worker.end().await?;
    Ok(Run { tasks, took, late, spent })
}

impl Run {
    /// Producer, store and worker all kept up.
    pub(crate) fn is_carried(&self, rate: u32) -> bool {
        let wanted = count(self.tasks) / f64::from(rate);
        let in_time = self.took.as_secs_f64() <= wanted * (1.0 + LATE_SHARE) + LATE.as_secs_f64();
        in_time && self.late.growth() <= GROWTH_SHARE * wanted / 3.0 * 1_000.0
    }
}
