//! The readers: threads with connections of their own, which see the last commit and block nobody.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use poolwright_broker::Error;
use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

use crate::error::{Fault, meaning};
use crate::thread::Thread;
use crate::writer::closed;

/// Readers. Looking is rare beside working; two keep a slow page from holding up a quick look.
pub(crate) const READERS: usize = 2;

/// Reads that may wait. When it is full, callers wait in their `send`.
const INBOX_CALLS_MAX: usize = 256;

type Look = Box<dyn FnOnce(&mut Connection) + Send>;

/// The way to the readers.
#[derive(Debug)]
pub(crate) struct Readers {
    /// None once closed.
    inbox: Mutex<Option<mpsc::Sender<Look>>>,
    threads: Vec<Thread>,
    file: Arc<str>,
}

impl Readers {
    /// Starts a thread on each connection.
    pub(crate) fn start(conns: Vec<Connection>, file: &str) -> std::io::Result<Self> {
        let (inbox, looks) = mpsc::channel::<Look>(INBOX_CALLS_MAX);
        let looks = Arc::new(Mutex::new(looks));
        let mut threads = Vec::new();
        for (at, mut conn) in conns.into_iter().enumerate() {
            let looks = Arc::clone(&looks);
            threads.push(Thread::spawn(&format!("sqlite-read-{at}"), move || {
                while let Some(look) = next(&looks) {
                    // A bug in a look must not take the thread with it; its caller sees a dropped reply.
                    let _ = catch_unwind(AssertUnwindSafe(|| look(&mut conn)));
                }
            })?);
        }
        Ok(Self { inbox: Mutex::new(Some(inbox)), threads, file: file.into() })
    }

    /// Runs the look on one snapshot of the file.
    pub(crate) async fn read<T, F>(&self, look: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner).clone().ok_or_else(closed)?;
        let (reply, answer) = oneshot::channel();
        let file = Arc::clone(&self.file);
        let look: Look = Box::new(move |conn| {
            let seen = on_snapshot(conn, look).map_err(|fault| match fault {
                Fault::Said(error) => error,
                Fault::Sql(error) => meaning(&error, &file),
            });
            // A caller that went away does not want it.
            let _ = reply.send(seen);
        });
        inbox.send(look).await.map_err(|_| closed())?;
        let lost = || Error::Unavailable { why: format!("a look into {} gave no answer", self.file) };
        answer.await.unwrap_or_else(|_| Err(lost()))
    }

    /// Ends the threads after all reads that were sent before. Safe to call twice.
    pub(crate) async fn close(&self) {
        drop(self.inbox.lock().unwrap_or_else(PoisonError::into_inner).take());
        for thread in &self.threads {
            thread.join().await;
        }
    }
}

/// The next look: one thread waits for it, the others wait for that thread.
fn next(looks: &Mutex<mpsc::Receiver<Look>>) -> Option<Look> {
    looks.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv()
}

fn on_snapshot<T>(
    conn: &mut Connection,
    look: impl FnOnce(&Connection) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Deferred)?;
    let seen = look(&tx)?;
    tx.commit()?;
    Ok(seen)
}
