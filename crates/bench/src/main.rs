//! Measures Poolwright: on Redis beside the real asynq, on SQLite beside a bare loop.
//!
//! `cargo run --release -p poolwright-bench -- compare` runs all scenarios in interleaved rounds and prints ratios with
//! their spread; `-- SCENARIO` runs one. Machines are noisy: only ratios of one run mean anything.
//!
//! | File | Its one duty |
//! | --- | --- |
//! | `args` | the command line |
//! | `load`, `system`, `outcome` | what is measured, on whom, and what was found |
//! | `bench`, `scenario/redis/*` | one measurement: a server, processes, a scenario |
//! | `server`, `child`, `peers` | the Redis, the processes, other systems' programs |
//! | `meter`, `processor` | processor time and memory, ours and the rest of the machine's |
//! | `part/*` | what a process of ours does in a scenario; `peers/asynq/*` is the same in Go |
//! | `compare/*` | rounds, ratios, bars and the table |
//! | `scenario/sqlite/*` | SQLite, in one process |

mod args;
mod bench;
mod child;
mod compare;
mod load;
mod meter;
mod outcome;
mod part;
mod peers;
mod processor;
mod scenario;
mod server;
mod system;

use anyhow::Result;
use clap::Parser;

use args::{Args, Scenario};
use bench::Bench;
use load::{Load, Shape};
use outcome::Outcome;
use system::System;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let mut args = std::env::args().skip(1).peekable();
    if args.next_if(|first| first == part::WORD).is_some() {
        return runtime.block_on(part::play(args));
    }
    let args = Args::parse();
    runtime.block_on(async {
        match args.scenario {
            _ if args.is_sqlite() => sqlite(&args).await,
            Scenario::Compare => compare::run(&args).await,
            _ => redis(&args).await,
        }
    })
}

async fn sqlite(args: &Args) -> Result<()> {
    let figures = scenario::sqlite::run(args).await?;
    if args.json {
        println!("{}", serde_json::Value::from_iter(figures.iter().map(scenario::sqlite::Figure::to_json)));
    } else {
        figures.iter().for_each(|figure| println!("{figure}"));
    }
    Ok(())
}

async fn redis(args: &Args) -> Result<()> {
    let bench = Bench { broker: args.broker.clone(), tasks: args.tasks };
    let (loads, system) = loads(args)?;
    let mut outcomes = Vec::new();
    for load in loads {
        let outcome = bench.measure(load, system).await?;
        if !args.json {
            println!("{outcome}");
        }
        outcomes.push(outcome);
    }
    if args.json {
        println!("{}", serde_json::Value::from_iter(outcomes.iter().map(Outcome::to_json)));
    }
    Ok(())
}

/// The measurements of a scenario, and on whom.
fn loads(args: &Args) -> Result<(Vec<Load>, System)> {
    let enqueue = |shapes: &[Shape]| shapes.iter().map(|&shape| Load::Enqueue { shape }).collect();
    let drain = vec![Load::Drain { workers: args.workers, subjects: args.subjects > 0 }];
    let of = match args.scenario {
        Scenario::Enqueue if args.system == System::Bare => enqueue(&[Shape::One, Shape::Batches]),
        Scenario::Enqueue => enqueue(&[Shape::One, Shape::Callers, Shape::Batches]),
        Scenario::EnqueueBare => return Ok((enqueue(&[Shape::One, Shape::Batches]), System::Bare)),
        Scenario::Drain => drain,
        Scenario::DrainBare => return Ok((drain, System::Bare)),
        other => anyhow::bail!("{} is a scenario on SQLite: say --broker sqlite", other.word()),
    };
    Ok((of, args.system))
}
