//! Scenarios on Redis: producer, worker and server are processes of their own, and any system can play the parts.

mod drain;
mod due;
mod enqueue;
mod idle;
mod long;
mod memory;
mod peak;
mod pickup;
mod steady;
mod watched;

use anyhow::Result;

use crate::load::Load;
use crate::outcome::Outcome;
use crate::server::Server;
use crate::system::System;

/// What is measured: where, what, on whom, and how much of it.
#[derive(Clone, Copy)]
pub(crate) struct Case<'s> {
    /// Fresh and empty.
    pub(crate) server: &'s Server,
    pub(crate) load: Load,
    pub(crate) system: System,
    /// How many tasks; each scenario has a default of its own.
    pub(crate) tasks: Option<usize>,
    /// Workers of scenarios that do not name a number of their own.
    pub(crate) workers: u32,
    /// How long what has no end goes on.
    pub(crate) seconds: u32,
}

impl Case<'_> {
    fn tasks(&self, default: usize) -> usize {
        self.tasks.unwrap_or(default)
    }

    fn outcome(&self, others: f64) -> Outcome {
        Outcome::new(self.load, self.system, others)
    }
}

/// Measures once.
pub(crate) async fn run(case: Case<'_>) -> Result<Outcome> {
    match case.load {
        Load::Enqueue { shape } => enqueue::run(case, shape).await,
        Load::Drain { workers, subjects } => drain::whole(case, workers, subjects).await,
        Load::Backlog { pending, workers } => drain::part(case, pending, workers).await,
        Load::Steady { rate } => steady::run(case, rate).await,
        Load::Peak => peak::run(case).await,
        Load::Pickup { producer } => pickup::run(case, producer).await,
        Load::Due => due::together(case).await,
        Load::DueLone => due::alone(case).await,
        Load::Long { active, order } => long::run(case, active, order).await,
        Load::Idle => idle::run(case).await,
        Load::Memory => memory::run(case).await,
    }
}
