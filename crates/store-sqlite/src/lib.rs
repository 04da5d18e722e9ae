//! The embedded store: broker and ledger on one SQLite file, for any number of processes on one machine.
//!
//! ```text
//!  trait file (submit, dispatch, upkeep, inspect, signal, ledger)
//!      │ a call becomes a closure over `steps/*`                        looks
//!      ▼                                                                  ▼
//!  writer: one thread, group commit ──► file.db ◄── readers: two threads, each on a snapshot
//!      │ rings                            ▲
//!      ▼                                  │ data version, while somebody waits
//!  bells ◄──────────────────────────── watcher
//! ```
//!
//! Everything is decided in the file, under its write lock; memory holds only names, and those for one generation.
//! So a second process, a crash at any point and a restart need no care of their own. A file that is removed or replaced
//! while it is open is not written any more (`anchor`).
//!
//! Invariant: a call that was answered is committed; with [`Synchronous::Full`] it survives a power cut.
//!
//! ```no_run
//! use poolwright_store_sqlite::{Options, SqliteStore};
//!
//! let store = SqliteStore::open(Options::from_url("sqlite://tasks.db?synchronous=normal")?)?;
//! # Ok::<(), poolwright_store_sqlite::Error>(())
//! ```

mod anchor;
mod bells;
mod busy;
mod checkpoint;
mod dispatch;
mod error;
mod inspect;
mod ledger;
mod look;
mod migrate;
mod open;
mod options;
mod reader;
mod rows;
mod signal;
mod steps;
mod submit;
mod thread;
mod token;
mod upkeep;
mod watcher;
mod work;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use poolwright_broker::{Broker, Error as BrokerError, Reply};
use poolwright_core::{Clock, Timestamp};

pub use error::Error;
pub use options::{Options, Synchronous};

use anchor::Anchor;
use bells::Bells;
use busy::{Patience, QUIET_MAX};
use checkpoint::Checkpoints;
use error::Fault;
use reader::Readers;
use thread::Thread;
use work::{Known, Work};
use writer::{Desk, Writer};

/// A store on one SQLite file.
///
/// Dropping it lets its threads finish what was sent to them; [`Broker::close`] waits for that.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    anchor: Arc<Anchor>,
    clock: Arc<dyn Clock>,
    writer: Writer,
    readers: Readers,
    watcher: Thread,
    bells: Arc<Bells>,
    closing: Arc<AtomicBool>,
}

impl SqliteStore {
    /// Opens the file, makes it when it is not there, brings its schema up to date, and starts the store's threads.
    ///
    /// Blocks while it does: a few milliseconds. Only a file that is new or of an older version is waited for while another
    /// process writes it.
    ///
    /// # Errors
    /// [`Error`]: the file is not usable and was not changed.
    pub fn open(options: Options) -> Result<Arc<Self>, Error> {
        let closing = Arc::new(AtomicBool::new(false));
        let file: Arc<str> = options.path.display().to_string().into();
        let patience = |hurried| Patience {
            file: Arc::clone(&file),
            limit: options.busy_wait,
            quiet: QUIET_MAX,
            closing: Arc::clone(&closing),
            hurried,
            chance: options.chance.clone(),
        };
        let hurried = Arc::new(AtomicBool::new(false));
        let mut conn = open::writer(&options, &patience(Arc::clone(&hurried)))?;
        let anchor = Arc::new(Anchor::at(&options.path, options.clock.now()));
        let second = open::second(&options, &patience(Arc::default()))?;
        let checkpoints = Checkpoints::watch(&mut conn, second, Arc::clone(&file), hurried)
            .map_err(|e| cannot(&options.path, &e))?;
        let look = || open::reader(&options, &patience(Arc::default()));
        let looks = (0..reader::READERS).map(|_| look()).collect::<Result<Vec<_>, _>>()?;
        let watch = look()?;
        let bells = Arc::new(Bells::new());
        let desk = Desk {
            conn,
            file: file.to_string(),
            clock: Arc::clone(&options.clock),
            chance: options.chance.clone(),
            bells: Arc::clone(&bells),
            checkpoints,
            known: Known::default(),
        };
        Ok(Arc::new(Self {
            writer: Writer::start(desk).map_err(|e| cannot(&options.path, &e))?,
            readers: Readers::start(looks, &file).map_err(|e| cannot(&options.path, &e))?,
            watcher: watcher::start(watch, &options.path, Arc::clone(&bells), options.wake_interval)
                .map_err(|e| cannot(&options.path, &e))?,
            path: options.path,
            anchor,
            clock: options.clock,
            bells,
            closing,
        }))
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A call that writes: see [`Writer::write`]. Refused while the file is not where it was.
    fn write<T, F>(&self, weight: usize, mut step: F) -> Reply<'_, T>
    where
        T: Send + 'static,
        F: FnMut(&mut Work<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let anchor = Arc::clone(&self.anchor);
        let written = self.writer.write(weight, move |work| {
            anchor.check_if_due(work.now)?;
            step(work)
        });
        Box::pin(async { self.explained(written.await) })
    }

    /// A call that only looks: see [`Readers::read`]. Refused while the file is not where it was.
    fn read<T, F>(&self, look: F) -> Reply<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(&rusqlite::Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (anchor, now) = (Arc::clone(&self.anchor), self.clock.now());
        let seen = self.readers.read(move |conn| {
            anchor.check_if_due(now)?;
            look(conn)
        });
        Box::pin(async { self.explained(seen.await) })
    }

    /// A lost file shows itself to SQLite as a disk that does not answer; what is the matter is said in its place.
    fn explained<T>(&self, answer: Result<T, BrokerError>) -> Result<T, BrokerError> {
        if let Err(BrokerError::Unavailable { .. }) = answer {
            self.anchor.check(self.clock.now())?;
        }
        answer
    }

    fn name(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }
}

fn cannot(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::CannotOpen { path: path.to_owned(), why: why.to_string() }
}

impl Broker for SqliteStore {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn describe(&self) -> String {
        self.name()
    }

    fn close(&self) -> Reply<'_, ()> {
        Box::pin(async {
            self.closing.store(true, Ordering::Relaxed);
            self.bells.close();
            self.watcher.join().await;
            // The writer last: when the others are gone, it can move the whole log into the file.
            self.readers.close().await;
            self.writer.close().await;
            Ok(())
        })
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.bells.close();
    }
}
