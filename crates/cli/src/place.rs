//! Where things are: the file of queues, the store of tasks, the ledger; by option, variable or default.
//!
//! Invariant: only a command that enqueues makes a store, and says so; to all others one that is not there is a failure.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use poolwright::core::clock::SystemClock;
use poolwright::core::settings::NoSettings;
use poolwright::core::{Chance, SettingsSource, Timestamp};
use poolwright::inspector::Letters;
use poolwright::registry::{Loader, Warning};
use poolwright::{Client, LEDGER, Stores, TaskInspector, Topology};

use crate::args::Common;
use crate::failure::Failure;
use crate::print;

/// The store of tasks when nobody names one. Its directory is made with it.
const BROKER: &str = "sqlite://.poolwright/tasks.db";

/// The file of queues when nobody names one.
const FILE: &str = "queues.toml";

/// What holds when nobody names a file and there is none here.
const PRESET: &str = include_str!("../../../queues.toml");
const PRESET_NAME: &str = "built-in preset";

/// A store that ends with the program.
const MEMORY: &str = "memory:";

/// Where things are. Nothing is opened yet.
#[derive(Debug)]
pub(crate) struct Place {
    /// None: the built-in preset.
    file: Option<PathBuf>,
    /// The file was named, by option or variable; else it was found here.
    is_named: bool,
    broker: String,
    /// None: beside the tasks.
    ledger: Option<String>,
}

/// What is open while a command works.
#[derive(Debug)]
pub(crate) struct Open {
    topology: Topology,
    stores: Stores,
    /// The URL of a ledger that is not there.
    missing_ledger: Option<String>,
}

impl Place {
    /// As the options say.
    ///
    /// An empty one is refused: it comes from a script whose variable is not set, and the default in its stead would be
    /// a store that nobody meant.
    pub(crate) fn of(common: &Common) -> Result<Self, Failure> {
        refuse_empty(common)?;
        let named = common.config.clone().map(PathBuf::from);
        // A file that cannot be looked at is tried, so that reading it tells why.
        let here = || Path::new(FILE).try_exists().unwrap_or(true).then(|| PathBuf::from(FILE));
        let broker = common.broker.clone().unwrap_or_else(|| BROKER.to_owned());
        let beside = || Stores::keeps_tasks_alone(&broker).then(|| LEDGER.to_owned());
        Ok(Self {
            is_named: named.is_some(),
            file: named.or_else(here),
            ledger: common.ledger.clone().or_else(beside),
            broker,
        })
    }

    /// The file of queues; none stands for the built-in preset.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The file of queues where somebody named it.
    pub(crate) fn named_file(&self) -> Option<&Path> {
        self.file().filter(|_| self.is_named)
    }

    /// The URL of the store of tasks.
    pub(crate) fn broker(&self) -> &str {
        &self.broker
    }

    /// The URL of the ledger where it is not beside the tasks.
    pub(crate) fn ledger(&self) -> Option<&str> {
        self.ledger.as_deref()
    }

    /// Says where the queues come from when nobody would expect it.
    pub(crate) fn say_preset(&self) {
        if self.file.is_none() {
            print::note(format!(
                "there is no {FILE} here, the {PRESET_NAME} is used; --config names another file"
            ));
        }
    }

    /// The pools, queues and types, with the environment and these settings over the file.
    pub(crate) fn read(&self, settings: &dyn SettingsSource) -> Result<(Topology, Vec<Warning>), Failure> {
        let loader = Loader::from_process().settings(settings);
        Ok(match &self.file {
            Some(path) => loader.load(path)?,
            None => loader.parse(PRESET_NAME, PRESET)?,
        })
    }

    /// The settings of the ledger; none where there is no ledger yet.
    pub(crate) async fn settings(&self) -> Result<BTreeMap<String, String>, Failure> {
        let url = self.ledger.as_deref().unwrap_or(&self.broker);
        if !is_there(url)? {
            return Ok(BTreeMap::new());
        }
        let stores = Stores::open(url, None).await?;
        let settings = stores.ledger.snapshot().await;
        close(&stores).await;
        Ok(settings?)
    }

    /// Refuses URLs that are none of a store. Nothing is opened.
    pub(crate) fn check_urls(&self) -> Result<(), Failure> {
        is_there(&self.broker)?;
        self.ledger.as_deref().map_or(Ok(()), |url| is_there(url).map(drop))
    }

    /// Works on a store that must be there.
    pub(crate) async fn look<T>(
        &self,
        work: impl AsyncFnOnce(&Open) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        // A file with mistakes is refused first.
        let read = self.read(&NoSettings)?;
        let url = &self.broker;
        if url != MEMORY && !is_there(url)? {
            return Err(Failure::Failed(format!(
                "there is no store at {url}; `poolwright enqueue` and `poolwright demo` make one, --broker or POOLWRIGHT_BROKER_URL names another"
            )));
        }
        self.work(read, work).await
    }

    /// Works on a store that is made when it is not there; after `check` has found no fault in what it is
    /// made for.
    pub(crate) async fn make<T>(
        &self,
        check: impl FnOnce(&Topology) -> Result<(), Failure>,
        work: impl AsyncFnOnce(&Open) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let read = self.read(&NoSettings)?;
        check(&read.0)?;
        self.work(read, work).await
    }

    async fn work<T>(
        &self,
        read: (Topology, Vec<Warning>),
        work: impl AsyncFnOnce(&Open) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.say_preset();
        let open = self.open(read).await?;
        let done = work(&open).await;
        close(&open.stores).await;
        done
    }

    async fn open(&self, (mut topology, mut warnings): (Topology, Vec<Warning>)) -> Result<Open, Failure> {
        if self.broker == MEMORY {
            return Err(Failure::Misused(format!(
                "what is in `{MEMORY}` ends with this program; name a file, such as --broker {BROKER}"
            )));
        }
        self.check_urls()?;
        let ledger = self.ledger.as_deref().filter(|url| *url != self.broker);
        let missing_ledger = match ledger {
            Some(url) if !is_there(url)? => Some(url.to_owned()),
            _ => None,
        };
        let ledger = ledger.filter(|_| missing_ledger.is_none());
        let is_new = !is_there(&self.broker)?;
        let stores = match &missing_ledger {
            // Whoever only looks makes no file for records; nothing asks this one.
            Some(_) => {
                let ledger = Stores::memory(Arc::new(SystemClock), Chance::from_entropy()).ledger;
                Stores { broker: Stores::open_broker(&self.broker).await?, ledger }
            }
            None => Stores::open(&self.broker, ledger).await?,
        };
        if is_new {
            // Whoever has mistaken the place would otherwise wait for workers that look elsewhere.
            print::note(format!("made a new broker file {}", file_of(&stores)));
        }
        if missing_ledger.is_none() {
            let settings = stores.ledger.snapshot().await?;
            if !settings.is_empty() {
                (topology, warnings) = self.read(&settings)?;
            }
        }
        warnings.iter().for_each(print::warning);
        Ok(Open { topology, stores, missing_ledger })
    }
}

impl Open {
    /// Pools, queues and types.
    pub(crate) const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The time by the store's clock.
    pub(crate) fn now(&self) -> Timestamp {
        self.stores.broker.now()
    }

    /// Submits.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.stores.broker.clone(), self.topology.clone())
    }

    /// Looks and acts.
    pub(crate) fn inspector(&self) -> TaskInspector {
        TaskInspector::new(self.stores.broker.clone(), self.topology.clone())
    }

    /// The dead letters, where there is a ledger.
    pub(crate) fn letters(&self) -> Result<Letters, Failure> {
        match &self.missing_ledger {
            Some(url) => Err(Failure::Failed(format!(
                "there is no ledger at {url}; workers make it when they start, and --ledger or POOLWRIGHT_LEDGER_URL names another"
            ))),
            None => Ok(self.inspector().dead_letters(self.stores.ledger.clone())),
        }
    }
}

fn refuse_empty(common: &Common) -> Result<(), Failure> {
    let is_empty = |text: &Option<String>| text.as_deref().is_some_and(|text| text.trim().is_empty());
    let file_is_empty = common.config.as_deref().is_some_and(OsStr::is_empty);
    let said = [
        (is_empty(&common.broker), "--broker", "POOLWRIGHT_BROKER_URL", "URL"),
        (is_empty(&common.ledger), "--ledger", "POOLWRIGHT_LEDGER_URL", "URL"),
        (file_is_empty, "--config", "POOLWRIGHT_CONFIG", "file"),
    ];
    match said.into_iter().find(|(is_empty, ..)| *is_empty) {
        Some((_, option, variable, what)) => Err(Failure::Misused(format!(
            "{option} or {variable} is empty, expected a {what}; leave out the option and unset the variable to use the default"
        ))),
        None => Ok(()),
    }
}

/// Whether there is a store; a URL that is none of a store was written wrongly.
fn is_there(url: &str) -> Result<bool, Failure> {
    Stores::is_there(url).map_err(|why| Failure::Misused(why.to_string()))
}

/// The path that the store gives.
fn file_of(stores: &Stores) -> String {
    let described = stores.broker.describe();
    described.strip_prefix("sqlite:").map(str::to_owned).unwrap_or(described)
}

/// What was answered is committed, so a store that does not close well has lost nothing.
async fn close(stores: &Stores) {
    if let Err(why) = stores.broker.close().await {
        print::warning(format!("the store did not close well: {why}"));
    }
}
