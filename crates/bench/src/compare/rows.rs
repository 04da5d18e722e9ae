//! What is to be reached: each row a figure, its bar that must hold, and its goal.

use super::Measured;
use super::bar::Bar::{self, AtLeast, AtMost};
use super::ratio::Spread;
use crate::args::Scenario;
use crate::load::{Load, Order, Shape};
use crate::outcome::Metric;
use crate::system::System::{self, Asynq, Bare, Ours};

/// What is measured once a round.
pub(crate) type Sample = (Load, System);

/// One row of the table.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// Asked for by this word.
    pub(crate) scenario: Scenario,
    /// What it says.
    pub(crate) title: String,
    /// Its kind of number.
    pub(crate) metric: Metric,
    /// Ours.
    pub(crate) of: Sample,
    /// What it is divided by; none: the number itself counts.
    pub(crate) over: Option<Sample>,
    /// What must be reached.
    pub(crate) must: Option<Bar>,
    /// What should be reached.
    pub(crate) goal: Option<Bar>,
}

impl Row {
    /// What has to be measured for it.
    pub(crate) fn samples(&self) -> impl Iterator<Item = Sample> {
        [Some(self.of), self.over].into_iter().flatten()
    }

    /// Its figure: the ratio, or the number itself.
    pub(crate) fn figure(&self, measured: &Measured) -> Option<Spread> {
        let of = self.values(self.of, measured);
        match self.over {
            Some(over) => Spread::of_ratio(&of, &self.values(over, measured)),
            None => Spread::of(&of),
        }
    }

    /// What the rounds gave for a sample.
    pub(crate) fn values(&self, sample: Sample, measured: &Measured) -> Vec<f64> {
        let outcomes = measured.get(&sample).into_iter().flatten();
        outcomes.filter_map(|outcome| outcome.get(self.metric)).collect()
    }
}

/// A row that divides ours by another system's, for the same load.
fn beside(scenario: Scenario, load: Load, metric: Metric, other: System, bars: Bars) -> Row {
    let title = match metric {
        Metric::Rate => load.to_string(),
        metric => format!("{load}: {}", metric.name()),
    };
    Row { scenario, title, metric, of: (load, Ours), over: Some((load, other)), must: bars.0, goal: bars.1 }
}

/// A row of a number of ours that counts by itself.
fn alone(scenario: Scenario, load: Load, metric: Metric, bars: Bars) -> Row {
    let title = format!("{load}: {}", metric.name());
    Row { scenario, title, metric, of: (load, Ours), over: None, must: bars.0, goal: bars.1 }
}

type Bars = (Option<Bar>, Option<Bar>);

const fn at_least(must: f64, goal: f64) -> Bars {
    (Some(AtLeast(must)), Some(AtLeast(goal)))
}

const fn at_most(must: f64, goal: f64) -> Bars {
    (Some(AtMost(must)), Some(AtMost(goal)))
}

/// All of them.
pub(crate) fn all() -> Vec<Row> {
    [drain(), enqueue(), steady(), pickup(), due(), long(), idle(), backlog(), memory()].concat()
}

fn drain() -> Vec<Row> {
    let plain = |workers| Load::Drain { workers, subjects: false };
    let row = |workers, metric, other, bars| beside(Scenario::Drain, plain(workers), metric, other, bars);
    let subjects = Row {
        title: "drain, 50 workers: a subject a task against none".to_owned(),
        of: (Load::Drain { workers: 50, subjects: true }, Ours),
        over: Some((plain(50), Ours)),
        ..row(50, Metric::Rate, Ours, at_least(0.8, 0.9))
    };
    vec![
        row(50, Metric::Rate, Asynq, at_least(4.0, 6.0)),
        row(50, Metric::Rate, Bare, (None, Some(AtLeast(0.6)))),
        row(50, Metric::StoreTime, Asynq, at_most(0.3, 0.18)),
        row(50, Metric::WorkerTime, Asynq, at_most(0.25, 0.15)),
        row(10, Metric::Rate, Asynq, at_least(3.0, 4.0)),
        subjects,
    ]
}

fn enqueue() -> Vec<Row> {
    let row =
        |shape, other, bars| beside(Scenario::Enqueue, Load::Enqueue { shape }, Metric::Rate, other, bars);
    vec![
        row(Shape::One, Asynq, at_least(1.3, 1.5)),
        row(Shape::One, Bare, (None, None)),
        row(Shape::Callers, Asynq, at_least(2.0, 2.5)),
        row(Shape::Batches, Asynq, at_least(1.8, 2.2)),
        row(Shape::Batches, Bare, (None, None)),
    ]
}

fn steady() -> Vec<Row> {
    let of = |rate| beside(Scenario::Steady, Load::Steady { rate }, Metric::P99, Asynq, at_most(0.33, 0.1));
    let peak = beside(Scenario::Peak, Load::Peak, Metric::Rate, Asynq, at_least(3.0, 4.0));
    vec![of(500), of(2_000), of(4_000), peak]
}

fn pickup() -> Vec<Row> {
    let of = |producer, metric, bars| alone(Scenario::Pickup, Load::Pickup { producer }, metric, bars);
    let both = |producer| {
        [of(producer, Metric::P50, at_most(2.0, 1.0)), of(producer, Metric::P99, at_most(10.0, 4.0))]
    };
    let asynq = beside(Scenario::Pickup, Load::Pickup { producer: Asynq }, Metric::P50, Asynq, (None, None));
    [both(Ours).to_vec(), both(Asynq).to_vec(), vec![asynq]].concat()
}

fn due() -> Vec<Row> {
    vec![
        beside(Scenario::Due, Load::Due, Metric::AllRun, Asynq, at_most(0.3, 0.15)),
        alone(Scenario::Due, Load::Due, Metric::Early, at_most(0.0, 0.0)),
        alone(Scenario::DueLone, Load::DueLone, Metric::P99, at_most(100.0, 20.0)),
        beside(Scenario::DueLone, Load::DueLone, Metric::P99, Asynq, (None, None)),
    ]
}

fn long() -> Vec<Row> {
    let load = |active, order| Load::Long { active, order };
    let many = |order, bars| beside(Scenario::Long, load(12_000, order), Metric::StoreTime, Asynq, bars);
    let flat = Row {
        title: "12000 active, ending in order, against 100: redis".to_owned(),
        over: Some((load(100, Order::InOrder), Ours)),
        ..many(Order::InOrder, at_most(1.3, 1.1))
    };
    let asynqs = Row { title: "the same, asynq".to_owned(), ..flat.clone() };
    let asynqs = Row {
        of: (load(12_000, Order::InOrder), Asynq),
        over: Some((load(100, Order::InOrder), Asynq)),
        must: None,
        goal: None,
        ..asynqs
    };
    vec![flat, asynqs, many(Order::InOrder, (None, None)), many(Order::Random, at_most(0.4, 0.2))]
}

fn idle() -> Vec<Row> {
    let of = |metric, bars| alone(Scenario::Idle, Load::Idle, metric, bars);
    vec![
        of(Metric::Requests, at_most(6.0, 3.0)),
        of(Metric::Reads, (None, None)),
        of(Metric::WorkerShare, at_most(0.5, 0.5)),
        of(Metric::WorkerMemory, at_most(20.0, 20.0)),
        beside(Scenario::Idle, Load::Idle, Metric::Requests, Asynq, (None, None)),
    ]
}

fn backlog() -> Vec<Row> {
    let load = |pending| Load::Backlog { pending, workers: 50 };
    vec![Row {
        title: "drain from 1,000,000 pending against 50,000".to_owned(),
        over: Some((load(50_000), Ours)),
        ..beside(Scenario::Backlog, load(1_000_000), Metric::Rate, Ours, at_least(0.9, 1.0))
    }]
}

fn memory() -> Vec<Row> {
    vec![beside(Scenario::Memory, Load::Memory, Metric::TaskMemory, Asynq, at_most(1.0, 1.0))]
}
