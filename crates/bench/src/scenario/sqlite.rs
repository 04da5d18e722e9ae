//! Scenarios on SQLite, and the bare loop that stands beside them.

mod bare;
mod drain;
mod enqueue;
mod figure;
mod idle;
mod isolation;
mod pickup;
mod rates;
mod world;

use std::sync::Arc;

use anyhow::{Result, bail};

use crate::args::{Args, Scenario};
pub(crate) use figure::Figure;

/// Runs the scenario of these arguments.
pub(crate) async fn run(args: &Args) -> Result<Vec<Figure>> {
    let world = Arc::new(world::World::new(args.dir.clone(), &args.synchronous)?);
    let tasks = |default| args.tasks.unwrap_or(default);
    let workers = args.workers;
    let figure = match args.scenario {
        Scenario::Enqueue => enqueue::batches(&world, tasks(50_000)).await?,
        Scenario::Single => enqueue::singles(&world, tasks(20_000)).await?,
        Scenario::Drain => drain::from(&world, tasks(50_000), tasks(50_000), workers).await?,
        Scenario::DrainByStore => drain::by_store(&world, tasks(50_000), workers as usize).await?,
        Scenario::DrainBare => drain::bare(&world, tasks(50_000), workers as usize)?,
        Scenario::Pickup => pickup::in_process(&world, tasks(300)).await?,
        Scenario::PickupAcross => pickup::across(&world, tasks(300)).await?,
        Scenario::Backlog => return drain::backlog(&world, tasks(1_000_000), workers).await,
        Scenario::Idle => idle::processor(&world).await?,
        Scenario::Isolation => return isolation::pickup(&world, tasks(300)).await,
        Scenario::Rates => return rates::rates(&world, args).await,
        Scenario::Compare => return rates::all(&world, args).await,
        Scenario::Produce => {
            pickup::produce(&world, tasks(300)).await?;
            return Ok(Vec::new());
        }
        other => bail!("{} is no scenario on SQLite", other.word()),
    };
    Ok(vec![figure])
}
