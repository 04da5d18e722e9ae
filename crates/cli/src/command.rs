//! The commands, one a file.

mod acted;
mod archive;
mod cancel;
mod check;
mod dead_letters;
mod delete;
mod demo;
mod enqueue;
mod history;
mod pause;
mod pools;
mod queues;
mod resume;
mod run_now;
mod schema;
mod search;
mod servers;
mod task;
mod tasks;

use crate::args::{Command, DemoCommand};
use crate::failure::Failure;
use crate::place::Place;
use crate::print::Output;

/// Runs one command.
pub(crate) async fn run(command: Command, place: &Place, out: &mut Output) -> Result<(), Failure> {
    match command {
        Command::Check => check::run(place, out).await,
        Command::Schema => schema::run(out),
        Command::Demo(mut demo) => match demo.command.take() {
            None => demo::run(demo, place, out).await,
            Some(DemoCommand::Search(search)) => search::run(&search, out),
        },
        Command::Enqueue(enqueue) => enqueue::run(*enqueue, place, out).await,
        Command::Queues => queues::run(place, out).await,
        Command::Tasks(tasks) => tasks::run(tasks, place, out).await,
        Command::Task(at) => task::run(&at, place, out).await,
        Command::RunNow(at) => run_now::run(&at, place, out).await,
        Command::Cancel(at) => cancel::run(&at, place, out).await,
        Command::Archive(archive) => archive::run(&archive, place, out).await,
        Command::Delete(at) => delete::run(&at, place, out).await,
        Command::Pause(pause) => pause::run(&pause, place, out).await,
        Command::Resume(at) => resume::run(&at, place, out).await,
        Command::Pools => pools::run(place, out).await,
        Command::Servers => servers::run(place, out).await,
        Command::History(history) => history::run(&history, place, out).await,
        Command::DeadLetters { command } => dead_letters::run(command, place, out).await,
    }
}
