//! An orchestrator at work.

use std::fmt;

use poolwright_client::Client;
use poolwright_inspector::{Letters, TaskInspector};
use poolwright_registry::Topology;
use poolwright_worker::{Report, Running as Worker, Status};

use crate::Error;
use crate::stores::Stores;

/// An orchestrator at work. Dropping it stops it gracefully, in the background.
#[must_use = "dropping it stops the pools"]
pub struct Running {
    worker: Worker,
    client: Client,
    inspector: TaskInspector,
    stores: Stores,
    /// It opened the stores, so it closes them.
    owns_stores: bool,
}

impl Running {
    pub(crate) const fn new(
        worker: Worker,
        client: Client,
        inspector: TaskInspector,
        stores: Stores,
        owns_stores: bool,
    ) -> Self {
        Self { worker, client, inspector, stores, owns_stores }
    }

    /// A client of its store.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// An inspector of its store.
    #[must_use]
    pub fn inspector(&self) -> TaskInspector {
        self.inspector.clone()
    }

    /// The dead letters of its ledger.
    ///
    /// A letter shows a moment after its task has ended: it is written once the store has the end of the task, and when
    /// that fails, later. Until then the task itself is in the archive and says why it failed; who waits for a letter
    /// waits with [`until`](Self::until) for `counts.letters_recorded`.
    #[must_use]
    pub fn dead_letters(&self) -> Letters {
        self.inspector.dead_letters(self.stores.ledger.clone())
    }

    /// The pools, queues and types in force, after settings and environment.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        self.inspector.topology()
    }

    /// Its stores.
    #[must_use]
    pub const fn stores(&self) -> &Stores {
        &self.stores
    }

    /// The pools at this moment.
    #[must_use]
    pub fn status(&self) -> Status {
        self.worker.status()
    }

    /// Waits until the status is as wanted, and gives it.
    pub async fn until(&self, holds: impl FnMut(&Status) -> bool) -> Status {
        self.worker.until(holds).await
    }

    /// The worker underneath.
    pub const fn worker(&self) -> &Worker {
        &self.worker
    }

    /// Begins a graceful stop and returns: no more claims, what runs may end within the grace of the file.
    pub fn stop(&self) {
        self.worker.stop();
    }

    /// Ends at once: what runs is dropped and given back.
    pub fn stop_now(&self) {
        self.worker.stop_now();
    }

    /// Waits until it has ended; it does not end by itself. The store stays open, for a look at what is left.
    pub async fn wait(&self) -> Report {
        self.worker.wait().await
    }

    /// Stops gracefully, waits, and closes the store it opened.
    ///
    /// # Errors
    /// [`Error::Failed`] when the worker ended because of a bug; [`Error::Store`] when the store did not close.
    pub async fn shutdown(self) -> Result<Report, Error> {
        self.stop();
        let report = self.wait().await;
        self.end(report).await
    }

    /// Runs until SIGTERM or Ctrl-C, then does as [`shutdown`](Self::shutdown); a second signal ends at once.
    ///
    /// # Errors
    /// As [`shutdown`](Self::shutdown); [`Error::Worker`] when the system passes no signals on.
    pub async fn until_signal(self) -> Result<Report, Error> {
        let report = self.worker.until_signal().await?;
        self.end(report).await
    }

    async fn end(self, report: Report) -> Result<Report, Error> {
        if self.owns_stores {
            self.stores.broker.close().await?;
        }
        match report.failed {
            None => Ok(report),
            Some(why) => Err(Error::Failed { why }),
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("id", self.worker.id())
            .field("stores", &self.stores)
            .field("status", &self.worker.status())
            .finish_non_exhaustive()
    }
}
