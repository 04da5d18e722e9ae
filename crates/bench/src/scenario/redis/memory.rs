//! How many bytes of Redis a pending task takes.

use anyhow::Result;

use super::{Case, enqueue};
use crate::outcome::{Metric, Outcome, count};

/// Fills a queue and looks at Redis before and after.
pub(crate) async fn run(case: Case<'_>) -> Result<Outcome> {
    let tasks = case.tasks(100_000);
    // Scripts and buffers are there from then on.
    enqueue::fill(case.server, case.system, 1_000, false).await?;
    let before = case.server.memory().await?;
    enqueue::fill(case.server, case.system, tasks, false).await?;
    let grown = case.server.memory().await?.saturating_sub(before);
    let bytes = count(usize::try_from(grown)?) / count(tasks);
    Ok(case.outcome(0.0).with(Metric::TaskMemory, bytes))
}
