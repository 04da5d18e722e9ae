//! Where results wait for the desk, and the bell that says when enough of them are there.
//!
//! The desk seldom wants to be woken for one result: while a call is under way it wants several, or none. So it says how many,
//! and who hands in rings at that number. A waker per result would cost a busy worker a context switch per task.
//!
//! Invariant: what was handed in is taken, or given back to who hands in once the desk is gone.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::settle::Item;

/// Results on their way to the desk.
///
/// Bounded by the workers: who hands in holds a permit, and a permit hands in once.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    inner: Mutex<Inner>,
    bell: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    items: Vec<Item>,
    /// How many are enough to ring.
    enough: usize,
    closed: bool,
}

impl Inbox {
    /// Hands in a result; gives it back when nobody will take it any more.
    pub(crate) fn put(&self, item: Item) -> Result<(), Item> {
        let mut inner = self.inner();
        if inner.closed {
            return Err(item);
        }
        inner.items.push(item);
        let rings = inner.items.len() >= inner.enough;
        drop(inner);
        if rings {
            self.bell.notify_one();
        }
        Ok(())
    }

    /// Takes the eldest, at most so many.
    pub(crate) fn take(&self, most: usize) -> Vec<Item> {
        let mut inner = self.inner();
        if inner.items.len() <= most {
            // What came at once will come at once again: room for it is made in one step.
            let room = Vec::with_capacity(inner.items.len());
            return std::mem::replace(&mut inner.items, room);
        }
        inner.items.drain(..most).collect()
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.inner().items.len()
    }

    /// Waits until so many wait. Dropping this future loses nothing.
    pub(crate) async fn has(&self, enough: usize) {
        loop {
            {
                let mut inner = self.inner();
                inner.enough = enough;
                if inner.items.len() >= enough {
                    return;
                }
            }
            // A ring for a number that was wanted before is answered by looking again.
            self.bell.notified().await;
        }
    }

    /// Takes no more.
    pub(crate) fn close(&self) {
        self.inner().closed = true;
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
