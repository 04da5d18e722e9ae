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
//! | `lateness` | how late tasks began |
//! | `meter`, `processor`, `machine` | processor time and memory, ours and the rest of the machine's |
//! | `part/*` | what a process of ours does in a scenario; `peers/asynq/*` is the same in Go |
//! | `compare/*` | rounds, ratios, bars and the table |
//! | `scenario/sqlite/*` | SQLite, in one process |

mod args;
mod bench;
mod child;
mod compare;
mod lateness;
mod load;
mod machine;
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
use load::{Load, Order, Shape};
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
    let bench = Bench::of(args);
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
    let (system, workers) = (args.system, args.workers);
    let by_bare =
        matches!(args.scenario, Scenario::Enqueue | Scenario::Drain | Scenario::Backlog | Scenario::Memory);
    anyhow::ensure!(
        (system != System::Bare || by_bare) && args.producer != Some(System::Bare),
        "the bare scripts enqueue and drain, and nothing else"
    );
    let loads = match args.scenario {
        Scenario::Enqueue if system == System::Bare => enqueue(&[Shape::One, Shape::Batches]),
        Scenario::Enqueue => enqueue(&[Shape::One, Shape::Callers, Shape::Batches]),
        Scenario::EnqueueBare => return Ok((enqueue(&[Shape::One, Shape::Batches]), System::Bare)),
        Scenario::Drain => vec![Load::Drain { workers, subjects: args.subjects > 0 }],
        Scenario::DrainBare => return Ok((vec![Load::Drain { workers, subjects: false }], System::Bare)),
        Scenario::Backlog => [50_000, 1_000_000].map(|pending| Load::Backlog { pending, workers }).to_vec(),
        Scenario::Steady => match args.rate {
            Some(rate) => vec![Load::Steady { rate }],
            None => [500, 2_000, 4_000].map(|rate| Load::Steady { rate }).to_vec(),
        },
        Scenario::Peak => vec![Load::Peak],
        Scenario::Pickup => vec![Load::Pickup { producer: args.producer.unwrap_or(system) }],
        Scenario::Due => vec![Load::Due],
        Scenario::DueLone => vec![Load::DueLone],
        Scenario::Long => long(),
        Scenario::Idle => vec![Load::Idle],
        Scenario::Memory => vec![Load::Memory],
        other => anyhow::bail!("{} is a scenario on SQLite: say --broker sqlite", other.word()),
    };
    Ok((loads, system))
}

fn enqueue(shapes: &[Shape]) -> Vec<Load> {
    shapes.iter().map(|&shape| Load::Enqueue { shape }).collect()
}

fn long() -> Vec<Load> {
    let of = |active| [Order::InOrder, Order::Random].map(|order| Load::Long { active, order });
    [of(100), of(12_000)].concat()
}
