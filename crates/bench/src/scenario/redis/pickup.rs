//! From enqueue to the start of the handler on an idle system, with random gaps of 20 to 200 ms.

use anyhow::Result;

use super::Case;
use super::watched::Watched;
use crate::meter::Meter;
use crate::outcome::Outcome;
use crate::system::System;

/// One by one, sent by this producer.
pub(crate) async fn run(case: Case<'_>, producer: System) -> Result<Outcome> {
    let tasks = case.tasks(150);
    let mut worker = Watched::start(case, tasks).await?;
    let args = [("tasks", tasks.to_string()), ("rate", "0".to_owned())];
    let mut producer = producer.start("pace", case.server, &args).await?;
    let meter = Meter::start(case.server, &[producer.pid(), worker.pid()]).await?;
    producer.run().await?;
    let late = worker.done().await?;
    let spent = meter.stop().await?;
    producer.end().await?;
    worker.end().await?;
    case.outcome(spent.others).late(&late)
}
