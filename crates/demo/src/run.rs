//! The public entry: runs the pipeline over folders until all work has ended, and searches what it found.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use poolwright::core::clock::SystemClock;
use poolwright::core::{Clock, OnConflict, Timestamp};
use poolwright::ledger::Ledger;
use poolwright::prelude::*;
use poolwright::registry::Topology;
use poolwright::{Running, Stores};

use crate::desk::{Desk, library_at};
use crate::handlers::{Failures, register};
use crate::id::{BaseId, SourceId};
use crate::library::{Hit, Library};
use crate::over::over;
use crate::payload::DatasourceSync;
use crate::summary::{End, Summary};
use crate::view::{View, note, show};
use crate::{Error, preset, sample};

/// What a run is about.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The folders; none: `docs` below the present folder if there is one, and a sample that is unpacked below `home`.
    pub folders: Vec<PathBuf>,
    /// The store of the tasks, as [`Orchestrator::broker`] takes it.
    pub broker: String,
    /// The store of the dead letters; none: beside the tasks.
    pub ledger: Option<String>,
    /// The file of queues; none: the shipped preset with shorter delays, retries and leases. A file of the user's is
    /// taken as it is, but for the delays of the wiki.
    pub config: Option<PathBuf>,
    /// Where library, wiki and sample lie. The same home goes on where the last run ended.
    pub home: PathBuf,
    /// The pools to run here; none: all. With some of them, another process has to run the others for the run to end.
    pub pools: Option<Vec<String>>,
    /// Begins again what failed before, though its files did not change.
    pub retry_failed: bool,
    /// What the person at the terminal sees.
    pub view: View,
}

impl RunOptions {
    /// Everything below `home`, the built-in preset, all pools, nothing shown.
    #[must_use]
    pub fn at(home: impl Into<PathBuf>) -> Self {
        let home = home.into();
        let tasks = home.join("tasks.db").display().to_string().replace('%', "%25").replace('?', "%3F");
        Self {
            folders: Vec::new(),
            broker: format!("sqlite://{tasks}"),
            ledger: None,
            config: None,
            home,
            pools: None,
            retry_failed: false,
            view: View::Quiet,
        }
    }
}

/// Runs the pipeline until all work on the folders has ended, dead letters included, or until SIGTERM or Ctrl-C, which
/// lets running tasks end; a second one ends at once.
///
/// # Errors
/// [`Error::Read`] for a folder that is not there, [`Error::Orchestrator`] for a file of queues with mistakes, pools that
/// do not exist or a store that does not open, and what the library says when it does not open or can be used no more:
/// damaged, deleted or replaced meanwhile, or failing again and again. What is wrong with a single file is no error but a
/// dead letter of the [`Summary`].
pub async fn run(mut options: RunOptions) -> Result<Summary, Error> {
    // First, so that a folder that is not there leaves nothing behind.
    let (folders, home) = (std::mem::take(&mut options.folders), options.home.clone());
    let folders = blocking(move || sources(folders, &home)).await?;
    let stores = open(&options).await?;
    let ended = Box::pin(run_on(&stores, folders, options)).await;
    let closed = stores.broker.close().await.map_err(|error| poolwright::Error::from(error).into());
    ended.and_then(|summary| closed.map(|()| summary))
}

/// The stores; says when it had to make a file for the tasks.
async fn open(options: &RunOptions) -> Result<Stores, Error> {
    let is_there = || Stores::is_there(&options.broker);
    let was_there = is_there()?;
    let stores = Stores::open(&options.broker, options.ledger.as_deref()).await?;
    // One in memory is not there before and not after.
    if !was_there && is_there()? {
        let described = stores.broker.describe();
        let file = described.strip_prefix("sqlite:").unwrap_or(&described);
        note(options.view, &format!("made a new broker file {file}"));
    }
    Ok(stores)
}

/// The chunks in the library of `home` that hold these words, the best first, at most `limit`.
///
/// # Errors
/// [`Error::NoLibrary`] when nothing was ever read there; what the library says when it does not open.
pub fn search(home: &Path, words: &str, limit: u32) -> Result<Vec<Hit>, Error> {
    let path = library_at(home);
    // Of one that cannot be looked at, opening it tells why.
    if matches!(path.metadata(), Err(why) if why.kind() == io::ErrorKind::NotFound) {
        return Err(Error::NoLibrary { path: path.display().to_string() });
    }
    Library::open(&path)?.search(words, limit)
}

async fn run_on(stores: &Stores, folders: Vec<SourceId>, options: RunOptions) -> Result<Summary, Error> {
    let RunOptions { config, home, pools, retry_failed, view, .. } = options;
    let settings = stores.ledger.snapshot().await.map_err(poolwright::Error::from)?;
    let topology = preset::topology(config.as_deref(), &settings)?;
    let (ledger, again) = (stores.ledger.clone(), if retry_failed { folders.clone() } else { Vec::new() });
    let desk = blocking(move || prepare(&home, ledger, &again)).await?;

    let running = start(stores, topology, pools, &desk).await?;
    let started = SystemClock.now();
    let went = Box::pin(work(&running, &desk, &folders, view, started)).await;
    let took = SystemClock.now().since(started);
    // Whatever went wrong, what runs may end and is given back if it does not.
    let report = running.shutdown().await?;
    let (interrupted, other_tasks) = went?;
    let end = End { counts: report.status.counts, took, interrupted, other_tasks };
    blocking(move || Summary::gather(&desk, folders, &end)).await
}

/// Opens what lies below `home`, and begins again what failed in these folders.
fn prepare(home: &Path, ledger: Arc<dyn Ledger>, again: &[SourceId]) -> Result<Desk, Error> {
    let desk = Desk::open(home, ledger)?;
    for source in again {
        // The sync finds it as unfinished.
        desk.library().retry_failed(source)?;
    }
    Ok(desk)
}

/// The folders as absolute paths, each once.
fn sources(mut folders: Vec<PathBuf>, home: &Path) -> Result<Vec<SourceId>, Error> {
    if folders.is_empty() {
        let docs = PathBuf::from("docs");
        let sample = home.join("sample");
        sample::unpack(&sample)?;
        folders.extend(docs.is_dir().then_some(docs));
        folders.push(sample);
    }
    let mut sources = Vec::new();
    for folder in folders {
        let path = folder.canonicalize().map_err(|e| Error::read(&folder, e))?;
        if !path.is_dir() {
            return Err(Error::read(&folder, io::ErrorKind::NotADirectory.into()));
        }
        let Some(text) = path.to_str() else {
            return Err(Error::read(&folder, io::Error::other("its path is not valid UTF-8")));
        };
        let source = SourceId::from(text.to_owned());
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    Ok(sources)
}

async fn start(
    stores: &Stores,
    topology: Topology,
    pools: Option<Vec<String>>,
    desk: &Desk,
) -> Result<Running, Error> {
    let client = Client::new(stores.broker.clone(), topology.clone());
    let failures = Failures::new(desk.clone(), client);
    let mut orchestrator =
        Orchestrator::new(topology).stores(stores.clone()).state(desk.clone()).on_dead_letter(failures);
    if let Some(pools) = pools {
        orchestrator = orchestrator.pools(pools);
    }
    Ok(register(orchestrator).start().await?)
}

/// Asks for a sync of each folder and waits for the end. Tells whether it was interrupted, and how many tasks of others
/// are in the queues.
async fn work(
    running: &Running,
    desk: &Desk,
    folders: &[SourceId],
    view: View,
    started: Timestamp,
) -> Result<(bool, u64), Error> {
    let client = running.client();
    for source in folders {
        let sync = DatasourceSync::of(source);
        let request = client.task(&sync).id(sync.id());
        // One that a dead process left running is followed by another.
        request.on_conflict(OnConflict::RunAgain).send().await?;
    }
    let bases: Vec<BaseId> = folders.iter().map(BaseId::of).collect();
    tokio::select! {
        others = over(running, &bases, desk) => Ok((false, others?)),
        report = running.worker().until_signal() => {
            report.map_err(poolwright::Error::from)?;
            Ok((true, 0))
        }
        never = show(view, running, desk, started) => match never {},
    }
}

/// Runs work that blocks on a thread for it.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}
