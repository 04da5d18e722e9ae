//! How many tasks a second are taken, every answer awaited.

use anyhow::{Result, ensure};

use super::Case;
use crate::load::Shape;
use crate::meter::Meter;
use crate::outcome::{Metric, Outcome};
use crate::part::QUEUE;
use crate::server::Server;
use crate::system::System;

/// Tasks in this shape.
pub(crate) async fn run(case: Case<'_>, shape: Shape) -> Result<Outcome> {
    let Case { server, system, .. } = case;
    let tasks = case.tasks(50_000);
    let args = [("tasks", tasks.to_string()), ("shape", word(shape).to_owned())];
    let mut producer = system.start("enqueue", server, &args).await?;
    let meter = Meter::start(server, &[producer.pid()]).await?;
    let took = producer.run().await?;
    let spent = meter.stop().await?;
    producer.end().await?;
    let pending = server.progress(QUEUE).await?.pending;
    ensure!(pending == tasks as u64, "{system} enqueued {tasks} tasks, and {pending} are there");
    Ok(case
        .outcome(spent.others)
        .rate(tasks, took)
        .each(Metric::ProducerTime, spent.processes[0], tasks)
        .each(Metric::StoreTime, spent.store, tasks))
}

/// Fills the queue with tasks as this system writes them; nothing is measured.
pub(crate) async fn fill(server: &Server, system: System, tasks: usize, subjects: bool) -> Result<()> {
    // The quickest way that each of them has.
    let shape = if system == System::Asynq { Shape::Callers } else { Shape::Batches };
    let args = [
        ("tasks", tasks.to_string()),
        ("shape", word(shape).to_owned()),
        ("subjects", u32::from(subjects).to_string()),
    ];
    let mut producer = system.start("enqueue", server, &args).await?;
    producer.run().await?;
    producer.end().await
}

const fn word(shape: Shape) -> &'static str {
    match shape {
        Shape::One => "one",
        Shape::Callers => "callers",
        Shape::Batches => "batches",
    }
}
