//! Systems side by side: rounds in which each is measured once, one after the other, and the ratios of their medians.

pub(crate) mod bar;
pub(crate) mod ratio;
mod rows;
mod table;

use std::collections::BTreeMap;

use anyhow::Result;

use crate::args::Args;
use crate::bench::Bench;
use crate::machine;
use crate::outcome::Outcome;
use crate::server::Server;
use ratio::Spread;
use rows::{Row, Sample};
use table::Line;

/// What was measured: for each sample one outcome a round.
pub(crate) type Measured = BTreeMap<Sample, Vec<Outcome>>;

/// Measures what the rows need and prints them.
pub(crate) async fn run(args: &Args) -> Result<()> {
    let bench = Bench::of(args);
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
    if args.markdown {
        println!("{}\n", conditions(args, &measured).await?);
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

/// Machine and rounds, in a sentence each.
async fn conditions(args: &Args, measured: &Measured) -> Result<String> {
    let server = Server::start(args.broker.as_deref()).await?;
    let machine = machine::describe(&server).await?;
    server.end().await?;
    let others: Vec<f64> = measured.values().flatten().map(Outcome::others).collect();
    let others = Spread::of(&others).map_or(0.0, |spread| spread.median * 100.0);
    Ok(format!("{machine}. Rounds: {}. Others used {others:.0} % of the machine (median).", args.rounds))
}

/// What has to be measured in a round, each once: systems of one load follow each other, so that they meet the same machine.
fn samples(rows: &[Row]) -> Vec<Sample> {
    let mut samples: Vec<Sample> = rows.iter().flat_map(Row::samples).collect();
    samples.sort_unstable();
    samples.dedup();
    samples
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Scenario;
    use crate::load::Load;
    use crate::outcome::Metric;
    use crate::system::System;

    #[test]
    fn what_several_rows_need_is_measured_once_and_systems_of_one_load_follow_each_other() {
        let drains: Vec<Row> =
            rows::all().into_iter().filter(|row| row.scenario == Scenario::Drain).collect();
        let samples = samples(&drains);
        let fifty = Load::Drain { workers: 50, subjects: false };
        let at = samples.iter().position(|sample| *sample == (fifty, System::Ours)).unwrap();
        assert_eq!(
            samples[at..at + 3],
            [System::Ours, System::Asynq, System::Bare].map(|system| (fifty, system))
        );
        assert!(samples.is_sorted() && samples.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_row_shows_its_ratio_with_spread_and_marks() {
        let rows: Vec<Row> = rows::all().into_iter().take(1).collect();
        let (ours, other) = (rows[0].of, rows[0].over.unwrap());
        let outcome = |(load, system), rate| Outcome::new(load, system, 0.0).with(Metric::Rate, rate);
        let of = |sample, rates: [f64; 3]| (sample, rates.map(|rate| outcome(sample, rate)).to_vec());
        let measured = Measured::from([of(ours, [50.0, 60.0, 44.0]), of(other, [10.0, 10.0, 10.0])]);
        let lines: Vec<Line<'_>> = rows.iter().filter_map(|row| Line::of(row, &measured)).collect();
        let table = table::markdown(&lines);
        let row = "| drain, 50 workers | 5.00 × [4.40–6.00] | ≥ 4: holds | ≥ 6: on the edge | 50 / 10 tasks/s (asynq) |\n";
        assert!(table.ends_with(row), "{table}");
    }
}
