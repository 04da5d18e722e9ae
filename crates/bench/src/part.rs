//! The parts that a process of ours plays: hidden commands of the same program, started by scenarios.

mod bare;
mod enqueue;
mod hold;
mod idle;
mod pace;
mod schedule;
mod stage;
mod stamp;
mod work;

use anyhow::Result;
use clap::Parser;

pub(crate) use stamp::now;

/// The first argument of a process that plays a part.
pub(crate) const WORD: &str = "part";

/// The queue of all scenarios with one queue.
pub(crate) const QUEUE: &str = "bench";

/// The task type of all scenarios.
const TASK: &str = "bench:task";

/// The payload: 100 bytes, no JSON, so that nobody parses it.
const PAYLOAD: [u8; 100] = [b'x'; 100];

/// A part with what it needs to know. Programs of other systems take the same.
#[derive(Debug, Parser)]
#[command(name = "part", no_binary_name = true)]
enum Part {
    /// Enqueues as fast as the answers come.
    Enqueue(enqueue::Enqueue),
    /// Enqueues at a rate, or with random gaps.
    Pace(pace::Pace),
    /// Enqueues what is due later.
    Schedule(schedule::Schedule),
    /// Runs tasks until so many are handled.
    Work(work::Work),
    /// Runs many tasks at once that wait for a word before they end.
    Hold(hold::Hold),
    /// Runs nothing.
    Idle(idle::Idle),
    /// The least that an enqueue costs.
    BareEnqueue(bare::Enqueue),
    /// The least that claims and completions cost.
    BareWork(bare::Work),
}

/// Plays the part of these arguments, in a task of its own, as code of a program that serves others is.
pub(crate) async fn play(args: impl Iterator<Item = String>) -> Result<()> {
    let part = Part::parse_from(args);
    tokio::spawn(act(part)).await?
}

async fn act(part: Part) -> Result<()> {
    match part {
        Part::Enqueue(part) => part.play().await,
        Part::Pace(part) => part.play().await,
        Part::Schedule(part) => part.play().await,
        Part::Work(part) => part.play().await,
        Part::Hold(part) => part.play().await,
        Part::Idle(part) => part.play().await,
        Part::BareEnqueue(part) => part.play().await,
        Part::BareWork(part) => part.play().await,
    }
}
