//! All scenarios in interleaved rounds, and their ratios.

use std::sync::Arc;

use anyhow::Result;

use super::figure::Figure;
use super::world::World;
use super::{drain, enqueue, idle, isolation, pickup};
use crate::args::Args;

/// A ratio over the rounds: median, least and largest.
fn ratio(name: &str, over: &[f64], under: &[f64]) -> Figure {
    let mut ratios: Vec<f64> = over.iter().zip(under).map(|(over, under)| over / under).collect();
    ratios.sort_by(f64::total_cmp);
    let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
    Figure::share(format!("{name} [{least:.2}-{most:.2}]"), median(&ratios), "×")
}

fn median(sorted: &[f64]) -> f64 {
    sorted[sorted.len() / 2]
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
    figures.push(ratio("enqueue in batches / bare", &ours[0], &bare[0]));
    figures.push(ratio("single by 50 callers / batches", &ours[1], &ours[0]));
    // With two calls under way a call carries half of the workers' tasks at most: that is the same batch size.
    figures.push(ratio("drain / bare, batches of half the workers", &ours[2], &bare[2]));
    figures.push(ratio("drain / bare, batches of all the workers", &ours[2], &bare[1]));
    Ok(figures)
}
