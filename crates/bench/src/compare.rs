//! Systems side by side: rounds in which each is measured once, one after the other, and the ratios of their medians.

mod bar;
mod ratio;
mod rows;
mod table;

use std::collections::BTreeMap;

use anyhow::Result;

use crate::args::Args;
use crate::bench::Bench;
use crate::outcome::Outcome;
use rows::{Row, Sample};
use table::Line;

/// What was measured: for each sample one outcome a round.
pub(crate) type Measured = BTreeMap<Sample, Vec<Outcome>>;

/// Measures what the rows need and prints them.
pub(crate) async fn run(args: &Args) -> Result<()> {
    let bench = Bench { broker: args.broker.clone(), tasks: args.tasks };
    let is_wanted = |row: &Row| args.only.is_empty() || args.only.contains(&row.scenario);
    let rows: Vec<Row> = rows::all().into_iter().filter(is_wanted).collect();
    let mut measured = Measured::new();
    for round in 1..=args.rounds.max(1) {
        for sample in samples(&rows) {
            let (load, system) = sample;
            let outcome = bench.quiet(load, system).await?;
            eprintln!("round {round}: {outcome}");
            measured.entry(sample).or_default().push(outcome);
        }
    }
    let lines: Vec<Line<'_>> = rows.iter().filter_map(|row| Line::of(row, &measured)).collect();
    if args.json {
        println!("{}", serde_json::Value::from_iter(lines.iter().map(Line::to_json)));
    } else if args.markdown {
        print!("{}", table::markdown(&lines));
    } else {
        lines.iter().for_each(|line| println!("{line}"));
    }
    Ok(())
}

/// What has to be measured in a round, each once: systems of one load follow each other, so that they meet the same machine.
fn samples(rows: &[Row]) -> Vec<Sample> {
    let mut samples: Vec<Sample> = rows.iter().flat_map(Row::samples).collect();
    samples.sort_unstable();
    samples.dedup();
    samples
}
