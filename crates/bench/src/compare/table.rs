//! How rows are shown.

use std::fmt::{self, Write as _};

use serde_json::{Value, json};

use super::Measured;
use super::bar::Bar;
use super::ratio::Spread;
use super::rows::{Row, Sample};

/// A row with what was measured.
pub(crate) struct Line<'r> {
    row: &'r Row,
    figure: Spread,
    /// The median of each sample.
    medians: Vec<(Sample, f64)>,
    rounds: usize,
}

impl<'r> Line<'r> {
    /// None when nothing was measured for it.
    pub(crate) fn of(row: &'r Row, measured: &Measured) -> Option<Self> {
        let figure = row.figure(measured)?;
        let median = |sample| Some((sample, Spread::of(&row.values(sample, measured))?.median));
        let medians = row.samples().map(median).collect::<Option<_>>()?;
        Some(Self { row, figure, medians, rounds: row.values(row.of, measured).len() })
    }

    /// As one JSON object.
    pub(crate) fn to_json(&self) -> Value {
        let Spread { median, least, most, .. } = self.figure;
        let samples = self.medians.iter().map(|((load, system), median)| {
            json!({ "load": load.to_string(), "system": system.to_string(), "median": median })
        });
        let bar = |bar: Option<Bar>| {
            bar.map(|bar| json!({ "bar": bar.to_string(), "mark": bar.judge(&self.figure).to_string() }))
        };
        json!({
            "row": self.row.title, "metric": self.row.metric.key(), "is_ratio": self.row.over.is_some(),
            "median": median, "least": least, "most": most, "rounds": self.rounds,
            "samples": samples.collect::<Vec<_>>(), "must": bar(self.row.must), "goal": bar(self.row.goal),
        })
    }

    /// `6.1 × [5.8–6.4]`, or the number with its unit.
    fn figure(&self) -> String {
        let Spread { median, least, most, .. } = self.figure;
        let unit = if self.row.over.is_some() { "×" } else { self.row.metric.unit() };
        let show = |value: f64| if value < 10.0 { format!("{value:.2}") } else { format!("{value:.1}") };
        if self.rounds == 1 {
            return format!("{} {unit}", show(median));
        }
        format!("{} {unit} [{}–{}]", show(median), show(least), show(most))
    }

    /// What both sides of a ratio were.
    fn both(&self) -> String {
        if self.medians.len() < 2 {
            return String::new();
        }
        let of = |at: usize| self.row.metric.amount(self.medians[at].1);
        let other = self.medians[1].0.1;
        format!("{} / {} {} ({other})", of(0), of(1), self.row.metric.unit())
    }
}

/// `≥ 4 ×: holds`.
fn judged(bar: Option<Bar>, figure: &Spread) -> String {
    bar.map(|bar| format!("{bar}: {}", bar.judge(figure))).unwrap_or_default()
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (must, goal) = (judged(self.row.must, &self.figure), judged(self.row.goal, &self.figure));
        write!(
            f,
            "{:<52} {:<24} must {must:<22} goal {goal:<22} {}",
            self.row.title,
            self.figure(),
            self.both()
        )
    }
}

/// A table for a page.
pub(crate) fn markdown(lines: &[Line<'_>]) -> String {
    let mut table =
        "| Scenario | Measured | Must | Goal | Ours / the other |\n| --- | --- | --- | --- | --- |\n"
            .to_owned();
    for line in lines {
        let (must, goal) = (judged(line.row.must, &line.figure), judged(line.row.goal, &line.figure));
        let row = format!("| {} | {} | {must} | {goal} | {} |", line.row.title, line.figure(), line.both());
        writeln!(table, "{row}").expect("a string takes every line");
    }
    table
}
