//! The program: reads its arguments, runs one command, and ends with the code that tells how it went.

mod ago;
mod args;
mod command;
mod failure;
mod place;
mod print;
mod table;
mod text;
mod value;

use std::io;
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::args::{Arguments, Command};
use crate::failure::Failure;
use crate::place::Place;
use crate::print::Output;

fn main() -> ExitCode {
    poolwright::middleware::panic::remember_places();
    match Arguments::try_parse() {
        Ok(arguments) => match run(arguments) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.tell(),
        },
        Err(refusal) => {
            // Help goes to stdout and mistakes to stderr; where nobody reads, nothing is left to do.
            let _ = refusal.print();
            ExitCode::from(u8::try_from(refusal.exit_code()).unwrap_or(2))
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    trace(&arguments.command);
    let place = Place::of(&arguments.common)?;
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|why| Failure::Failed(format!("the system gives no threads: {why}")))?;
    let mut out = Output::new(arguments.common.json);
    let done = runtime.block_on(Box::pin(command::run(arguments.command, &place, &mut out)));
    // What still waits here waits for a terminal or a pipe, and ends with the process.
    runtime.shutdown_background();
    done.and(out.flush())
}

/// Events on stderr: warnings, unless `RUST_LOG` says otherwise.
fn trace(command: &Command) {
    let default = match command {
        // Its report lists what failed; told one by one, it would tear the bar.
        Command::Demo(_) => "warn,poolwright_worker::settle=error",
        _ => "warn",
    };
    let said = std::env::var("RUST_LOG").ok().filter(|text| !text.trim().is_empty());
    let filter = EnvFilter::builder().parse_lossy(said.as_deref().unwrap_or(default));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(print::is_coloured(&io::stderr()))
        // It would report a closed stderr on stderr.
        .log_internal_errors(false)
        .init();
}
