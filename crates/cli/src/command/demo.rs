//! `demo`: six pools work through folders of files.
//!
//! It is a demonstration of the preset, so a `queues.toml` that happens to be here does not count; one that is named does.

use std::path::PathBuf;

use poolwright_demo::{Error, RunOptions, View};

use crate::args::Demo;
use crate::failure::Failure;
use crate::place::Place;
use crate::print::Output;
use crate::text;

/// Where the demo keeps its library, its wiki and its sample.
pub(crate) const HOME: &str = ".poolwright/demo";

pub(crate) async fn run(demo: Demo, place: &Place, out: &mut Output) -> Result<(), Failure> {
    place.check_urls()?;
    let options = RunOptions {
        folders: demo.folders,
        broker: place.broker().to_owned(),
        ledger: place.ledger().map(str::to_owned),
        config: place.named_file().map(PathBuf::from),
        home: PathBuf::from(HOME),
        pools: demo.pools,
        retry_failed: demo.retry_failed,
        // It is drawn on stderr, so it stands in the way of no result.
        view: View::Bar,
    };
    let summary = Box::pin(poolwright_demo::run(options)).await?;
    out.result(&summary, |_| text::harmless(&summary.to_string()))?;
    if summary.interrupted {
        return Err(Failure::Failed("stopped before its end; the same command goes on".to_owned()));
    }
    Ok(())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            // What cannot be read before anything runs is a folder that was named.
            Error::Read { .. } => Self::Misused(error.to_string()),
            Error::Orchestrator(error) => (*error).into(),
            Error::Enqueue(error) => (*error).into(),
            Error::Inspect(error) => (*error).into(),
            other => Self::Failed(other.to_string()),
        }
    }
}
