//! The runtimes of a worker: one for each pool's handlers, one for the sink of dead letters, one thread for control.
//!
//! Every pool has threads of its own, one for each worker up to a limit. With threads in common, handlers of one pool that
//! block would leave none for the others, and work that a handler wakes can wait behind one that blocks. Threads that
//! wait cost next to nothing.
//!
//! Invariant: application code runs on these threads only, never on the control thread, and each of them carries the
//! background mark, so that it reaches whatever a handler spawns.

use std::io;

use poolwright_handler::background;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::{Error, Options, PoolConfig};

/// Runtimes that can be dropped anywhere: they end in the background, and a blocked thread ends with the process.
#[derive(Debug, Default)]
pub(crate) struct Threads(Vec<Runtime>);

impl Threads {
    /// Starts the threads for a pool's handlers.
    pub(crate) fn start(&mut self, pool: &PoolConfig, options: &Options) -> Result<Handle, Error> {
        let count = pool.threads.unwrap_or_else(|| pool.workers.min(options.threads_max));
        self.add(&format!("pool {}", pool.name), &format!("pw-{}", pool.name), count)
    }

    /// Starts the thread for the sink of dead letters, which is application code as well.
    pub(crate) fn start_sink(&mut self) -> Result<Handle, Error> {
        self.add("the dead letters", "pw-letters", 1)
    }

    fn add(&mut self, what: &str, name: &str, count: u32) -> Result<Handle, Error> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(count as usize)
            .thread_name(name)
            .on_thread_start(background::mark_thread)
            .enable_all()
            .build()
            .map_err(|source| refused(what, source))?;
        let handle = runtime.handle().clone();
        self.0.push(runtime);
        Ok(handle)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.0.drain(..).for_each(Runtime::shutdown_background);
    }
}

/// The runtime of the control thread.
pub(crate) fn control() -> Result<Runtime, Error> {
    Builder::new_current_thread().enable_all().build().map_err(|source| refused("the control plane", source))
}

/// The system gave no thread.
pub(crate) fn refused(what: &str, source: io::Error) -> Error {
    Error::Threads { what: what.to_owned(), source }
}
