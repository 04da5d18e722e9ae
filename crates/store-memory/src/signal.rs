//! [`Signal`]: cancellations on one channel, and a bell for each watch.
//!
//! Invariant: a bell is rung after the step that gave its queues something, and remembers that it rang until its watch
//! returned for it. So whoever makes the watch first and claims second misses nothing.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use poolwright_broker::{Cancel, CancelFeed, Reply, Signal, Watch};
use poolwright_core::{BoxFuture, QueueName};
use tokio::sync::{broadcast, watch};

use crate::{MemoryStore, closed};

/// Cancellations kept for a slow listener. When it is full the oldest is lost: the flag on the record is read at the
/// next lease extension anyway.
const FEED_MAX: usize = 1_024;

/// All listeners.
#[derive(Debug)]
pub(crate) struct Bells(Mutex<Listeners>);

#[derive(Debug)]
struct Listeners {
    /// None once the store was closed.
    cancels: Option<broadcast::Sender<Cancel>>,
    watches: Vec<(BTreeSet<QueueName>, watch::Sender<()>)>,
}

impl Default for Bells {
    fn default() -> Self {
        let cancels = Some(broadcast::Sender::new(FEED_MAX));
        Self(Mutex::new(Listeners { cancels, watches: Vec::new() }))
    }
}

impl Bells {
    /// Wakes whoever watches one of these queues.
    pub(crate) fn ring(&self, queues: &[QueueName]) {
        if queues.is_empty() {
            return;
        }
        self.with(|listeners| {
            listeners.watches.retain(|(_, bell)| !bell.is_closed());
            for (watched, bell) in &listeners.watches {
                if queues.iter().any(|queue| watched.contains(queue)) {
                    bell.send_replace(());
                }
            }
        });
    }

    /// Ends all feeds and watches.
    pub(crate) fn close(&self) {
        self.with(|listeners| {
            listeners.cancels = None;
            listeners.watches.clear();
        });
    }

    fn watch(&self, queues: Vec<QueueName>) -> Bell {
        let (ring, rung) = watch::channel(());
        self.with(|listeners| {
            if listeners.cancels.is_some() {
                listeners.watches.push((queues.into_iter().collect(), ring));
            }
        });
        Bell { rung, ended: false }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Listeners) -> T) -> T {
        // The lists are whole between any two lines here, so a panic elsewhere says nothing about them.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Signal for MemoryStore {
    fn publish(&self, cancel: Cancel) -> Reply<'_, ()> {
        Box::pin(async move {
            self.bells.with(|listeners| {
                let cancels = listeners.cancels.as_ref().ok_or_else(closed)?;
                // An error says that nobody listens.
                drop(cancels.send(cancel));
                Ok(())
            })
        })
    }

    fn subscribe(&self) -> Reply<'_, Box<dyn CancelFeed>> {
        Box::pin(async {
            self.bells.with(|listeners| {
                let cancels = listeners.cancels.as_ref().ok_or_else(closed)?;
                Ok(Box::new(Feed(cancels.subscribe())) as Box<dyn CancelFeed>)
            })
        })
    }

    fn watch(&self, queues: Vec<QueueName>) -> Box<dyn Watch> {
        Box::new(self.bells.watch(queues))
    }
}

struct Feed(broadcast::Receiver<Cancel>);

impl CancelFeed for Feed {
    fn next(&mut self) -> BoxFuture<'_, Option<Cancel>> {
        Box::pin(async {
            loop {
                match self.0.recv().await {
                    Ok(cancel) => return Some(cancel),
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        })
    }
}

struct Bell {
    rung: watch::Receiver<()>,
    ended: bool,
}

impl Watch for Bell {
    fn changed(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if self.ended {
                return std::future::pending().await;
            }
            // An error says that the store was closed: told once.
            self.ended = self.rung.changed().await.is_err();
        })
    }
}
