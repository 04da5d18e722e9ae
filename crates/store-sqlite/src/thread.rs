//! A named operating system thread whose end can be awaited.
//!
//! SQLite's calls block. They run on threads of their own, so that no runtime's worker ever waits for a disk.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use tokio::sync::watch;

/// A running thread. Dropping it lets the thread go on to its end.
#[derive(Debug)]
pub(crate) struct Thread {
    handle: Mutex<Option<JoinHandle<()>>>,
    ended: watch::Receiver<bool>,
}

impl Thread {
    /// Starts it.
    pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let (end, ended) = watch::channel(false);
        let handle = Builder::new().name(name.to_owned()).spawn(move || {
            body();
            // Nobody listening is fine; when the body panics the sender is dropped, which says the same.
            let _ = end.send(true);
        })?;
        Ok(Self { handle: Mutex::new(Some(handle)), ended })
    }

    /// Ends the thread's present pause, if it is in one.
    pub(crate) fn unpark(&self) {
        if let Some(handle) = self.handle.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            handle.thread().unpark();
        }
    }

    /// Returns when it has ended. Whoever ends it says so by another way first.
    pub(crate) async fn join(&self) {
        let mut ended = self.ended.clone();
        // An error says that the sender is gone, so the thread has ended, too.
        let _ = ended.wait_for(|ended| *ended).await;
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(handle) = handle {
            // Its last act was the message above: this waits for microseconds.
            let _ = handle.join();
        }
    }
}
