//! All scenarios in interleaved rounds, and their ratios.

use std::sync::Arc;

use anyhow::{Context as _, Result};

use super::figure::Figure;
use super::world::World;
use super::{drain, enqueue, idle, isolation, pickup};
use crate::args::Args;
use crate::compare::bar::Bar;
use crate::compare::ratio::Spread;

/// What a share of the bare loop's rate must be, and should be.
const MUST: Bar = Bar::AtLeast(0.6);
const GOAL: Bar = Bar::AtLeast(0.8);

/// A ratio of medians over the rounds, with the least and the largest.
fn ratio(name: &str, over: &[f64], under: &[f64]) -> Result<(Figure, Spread)> {
    let spread = Spread::of_ratio(over, under).context("there are no rounds")?;
    let title = format!("{name} [{:.2}-{:.2}]", spread.least, spread.most);
    Ok((Figure::share(title, spread.median, "×"), spread))
}

/// The same, held against the bars.
fn judged(name: &str, over: &[f64], under: &[f64]) -> Result<Figure> {
    let (mut figure, spread) = ratio(name, over, under)?;
    figure.name =
        format!("{} must {MUST}: {}, goal {GOAL}: {}", figure.name, MUST.judge(&spread), GOAL.judge(&spread));
    Ok(figure)
}

/// Runs everything.
pub(crate) async fn all(world: &Arc<World>, args: &Args) -> Result<Vec<Figure>> {
    let mut figures = rates(world, args).await?;
    figures.push(pickup::in_process(world, 300).await?);
    figures.push(pickup::across(world, 300).await?);
    figures.extend(isolation::pickup(world, 300).await?);
    figures.push(idle::processor(world).await?);
    figures.extend(drain::backlog(world, 1_000_000, args.workers).await?);
    Ok(figures)
}

/// The rates: those of one round stand side by side before the next begins.
pub(crate) async fn rates(world: &Arc<World>, args: &Args) -> Result<Vec<Figure>> {
    let tasks = args.tasks.unwrap_or(50_000);
    let (mut ours, mut bare) = ([vec![], vec![], vec![]], [vec![], vec![], vec![]]);
    let mut figures = Vec::new();
    for round in 0..args.rounds.max(1) {
        let measured = [
            enqueue::bare(world, tasks)?,
            enqueue::batches(world, tasks).await?,
            enqueue::singles(world, tasks / 2).await?,
            drain::bare(world, tasks, args.workers as usize)?,
            drain::bare(world, tasks, args.workers as usize / 2)?,
            drain::from(world, tasks, tasks, args.workers).await?,
        ];
        bare[0].push(measured[0].value);
        ours[0].push(measured[1].value);
        ours[1].push(measured[2].value);
        bare[1].push(measured[3].value);
        bare[2].push(measured[4].value);
        ours[2].push(measured[5].value);
        for figure in &measured {
            eprintln!("round {}: {figure}", round + 1);
        }
        figures = measured.to_vec();
    }
    figures.push(judged("enqueue in batches / bare", &ours[0], &bare[0])?);
    figures.push(ratio("single by 50 callers / batches", &ours[1], &ours[0])?.0);
    // With two calls under way a call carries half of the workers' tasks at most: that is the same batch size.
    figures.push(judged("drain / bare, batches of half the workers", &ours[2], &bare[2])?);
    figures.push(ratio("drain / bare, batches of all the workers", &ours[2], &bare[1])?.0);
    Ok(figures)
}
