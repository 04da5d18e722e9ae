//! A process of a story: a worker to be stopped and killed, or a producer.
//!
//! It says on its standard output what happens, one JSON object a line, each written at once and whole. `open` and `open ID` on
//! its standard input open the gates of its stage; when the input closes, whoever started it is gone, and it ends.

#![allow(clippy::unwrap_used, reason = "a process of a test may panic")]

use std::convert::Infallible;
use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::Arc;

use acceptance::plan::{Line, Plan, Role, Told};
use acceptance::stage::{Stage, act};
use poolwright::prelude::*;

/// The exit code of a process whose story is gone.
const ORPHANED: i32 = 9;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let plan = std::env::args().nth(1).expect("a plan as the only argument");
    let plan: Plan = serde_json::from_str(&plan).unwrap();
    let done = match plan.role.clone() {
        Role::Work { types } => Box::pin(work(&plan, types)).await,
        Role::Produce { .. } => Box::pin(produce(&plan)).await,
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the pools until it is asked to end; false when the worker failed.
async fn work(plan: &Plan, mut types: Vec<String>) -> bool {
    let stage = Stage::new(|event| say(&Line::Played(event)));
    listen(Some(Arc::clone(&stage)));
    let (topology, _) = Topology::load(&plan.config).unwrap();
    if types.is_empty() {
        types = topology.types().iter().map(|rules| rules.name.to_string()).collect();
    }
    let mut orchestrator = Orchestrator::load(&plan.config).unwrap().broker(&plan.broker).state(stage);
    if let Some(ledger) = &plan.ledger {
        orchestrator = orchestrator.ledger(ledger);
    }
    let orchestrator =
        types.iter().fold(orchestrator, |orchestrator, name| orchestrator.handle_as(name, act));
    let app = orchestrator.start().await.unwrap();
    let report = tokio::select! {
        // In this order, so that signals are heard before anybody knows that there is a process to send them to.
        biased;
        report = app.worker().until_signal() => report.unwrap(),
        never = tell(&app) => match never {},
    };
    say(&Line::Told(Told { unsettled: report.unsettled, ..Told::from(&report.status) }));
    app.shutdown().await.is_ok()
}

/// Says that the worker is up, and then each change of its numbers.
async fn tell(app: &Running) -> Infallible {
    say(&Line::Up { server: app.worker().id().to_string() });
    let mut last = Told::default();
    loop {
        let status = app.until(|status| Told::from(status) != last).await;
        last = Told::from(&status);
        say(&Line::Told(last.clone()));
    }
}

/// Enqueues one task after the other.
async fn produce(plan: &Plan) -> bool {
    let Role::Produce { task_type, prefix, count, part, delay } = &plan.role else { return false };
    listen(None);
    let (topology, _) = Topology::load(&plan.config).unwrap();
    let client = Client::connect(&plan.broker, &topology).await.unwrap();
    for at in 0..*count {
        client.raw(task_type, part.bytes()).id(format!("{prefix}{at}")).delay(*delay).send().await.unwrap();
        say(&Line::Sent(at as u64 + 1));
    }
    client.broker().close().await.unwrap();
    true
}

/// Follows what is said on standard input, on a thread of its own that ends with the process.
fn listen(stage: Option<Arc<Stage>>) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let line = line.unwrap();
            match (line.split_once(' '), &stage) {
                (Some(("open", id)), Some(stage)) => stage.open(id),
                (None, Some(stage)) if line == "open" => stage.open_all(),
                _ => panic!("unknown words: {line}"),
            }
        }
        std::process::exit(ORPHANED);
    });
}

/// Says one line, in one write.
fn say(line: &Line) {
    let mut text = serde_json::to_vec(line).unwrap();
    text.push(b'\n');
    let mut out = std::io::stdout().lock();
    // Where nobody listens any more, standard input closes as well, and that ends the process.
    let _ = out.write_all(&text).and_then(|()| out.flush());
}
