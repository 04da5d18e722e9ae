//! Measures Poolwright, and holds every figure against a bare loop that ran beside it.
//!
//! `cargo run --release -p poolwright-bench -- compare` runs all scenarios in interleaved rounds and prints ratios with
//! their spread; `-- SCENARIO` runs one. Machines are noisy: only ratios of one run mean anything.

mod bare;
mod compare;
mod figure;
mod scenario;
mod world;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use figure::Figure;

/// Scenarios on the SQLite store; 100-byte payloads, handlers that do nothing.
#[derive(Debug, Clone, Parser)]
#[command(name = "poolwright-bench", version)]
struct Args {
    /// What to measure.
    scenario: Scenario,
    /// How many tasks; each scenario has a default of its own.
    #[arg(long)]
    tasks: Option<usize>,
    /// Workers of the pool that drains.
    #[arg(long, default_value_t = 50)]
    workers: u32,
    /// What a commit waits for: `normal` or `full`.
    #[arg(long, default_value = "normal")]
    synchronous: String,
    /// Rounds of `rates` and `compare`; the median counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Where the files go; a temporary directory by default.
    #[arg(long)]
    dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// One caller, batches of 100.
    Enqueue,
    /// 50 callers, one task each call.
    Single,
    /// A preloaded queue, emptied by one process.
    Drain,
    /// The same without a worker: one caller that settles and claims `--workers` at a time.
    DrainByStore,
    /// The bare loop that `drain` is held against.
    DrainBare,
    /// From enqueue to the start of the handler on an idle system, in one process.
    Pickup,
    /// The same from another process.
    PickupAcross,
    /// Draining from a million pending against draining from 50 thousand.
    Backlog,
    /// Processor time of an idle worker with six pools.
    Idle,
    /// Pick-up in one pool while another is saturated, against the same when all is calm.
    Isolation,
    /// Enqueue, single and drain in rounds, interleaved with the bare loop; prints ratios.
    Rates,
    /// `rates`, then all the others.
    Compare,
    /// The other process of `pickup-across`.
    #[value(hide = true)]
    Produce,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let figures = runtime.block_on(run(&args))?;
    match args.json {
        true => println!("{}", serde_json::Value::from_iter(figures.iter().map(Figure::to_json))),
        false => figures.iter().for_each(|figure| println!("{figure}")),
    }
    Ok(())
}

async fn run(args: &Args) -> Result<Vec<Figure>> {
    let world = Arc::new(world::World::new(args.dir.clone(), &args.synchronous)?);
    let tasks = |default| args.tasks.unwrap_or(default);
    let figure = match args.scenario {
        Scenario::Enqueue => scenario::enqueue::batches(&world, tasks(50_000)).await?,
        Scenario::Single => scenario::enqueue::singles(&world, tasks(20_000)).await?,
        Scenario::Drain => scenario::drain::from(&world, tasks(50_000), tasks(50_000), args.workers).await?,
        Scenario::DrainByStore => {
            scenario::drain::by_store(&world, tasks(50_000), args.workers as usize).await?
        }
        Scenario::DrainBare => scenario::drain::bare(&world, tasks(50_000), args.workers as usize)?,
        Scenario::Pickup => scenario::pickup::in_process(&world, tasks(300)).await?,
        Scenario::PickupAcross => scenario::pickup::across(&world, tasks(300)).await?,
        Scenario::Backlog => return scenario::drain::backlog(&world, tasks(1_000_000), args.workers).await,
        Scenario::Idle => scenario::idle::processor(&world).await?,
        Scenario::Isolation => return scenario::isolation::pickup(&world, tasks(300)).await,
        Scenario::Rates => return compare::rates(&world, args).await,
        Scenario::Compare => return compare::all(&world, args).await,
        Scenario::Produce => {
            scenario::pickup::produce(&world, tasks(300)).await?;
            return Ok(Vec::new());
        }
    };
    Ok(vec![figure])
}
