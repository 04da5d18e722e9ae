//! Who waits for what: watches of queues and feeds of cancellations, rung by the writer and by the watcher.
//!
//! Invariant: a ring between two waits is kept until the next one; a dropped wait loses nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use poolwright_broker::{Cancel, CancelFeed, Watch};
use poolwright_core::{BoxFuture, QueueName};
use tokio::sync::{Notify, broadcast};

use crate::work::Woken;

/// Cancellations kept for a slow listener. When there are more it loses the oldest; the flags on the records say
/// the same.
const CANCELS_KEPT: usize = 1_024;

/// All who listen.
#[derive(Debug)]
pub(crate) struct Bells {
    inner: Mutex<Listeners>,
    changed: Condvar,
}

#[derive(Debug)]
struct Listeners {
    posts: Vec<Arc<Post>>,
    /// None once closed.
    cancels: Option<broadcast::Sender<Cancel>>,
    /// The `wake` number of each queue that was rung for already.
    heard: HashMap<i64, i64>,
}

#[derive(Debug)]
struct Post {
    queues: Vec<QueueName>,
    rung: AtomicBool,
    notify: Notify,
}

impl Post {
    fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        self.notify.notify_one();
    }
}

impl Bells {
    pub(crate) fn new() -> Self {
        let (cancels, _) = broadcast::channel(CANCELS_KEPT);
        let listeners = Listeners { posts: Vec::new(), cancels: Some(cancels), heard: HashMap::new() };
        Self { inner: Mutex::new(listeners), changed: Condvar::new() }
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rings for queues whose number is news, whether this process or another one counted it up.
    pub(crate) fn ring(&self, woken: &[Woken]) {
        if woken.is_empty() {
            return;
        }
        let mut listeners = self.listeners();
        for Woken { queue, name, wake } in woken {
            let heard = listeners.heard.entry(*queue).or_default();
            if *wake > *heard {
                *heard = *wake;
                listeners.posts.iter().filter(|post| post.queues.contains(name)).for_each(|post| post.ring());
            }
        }
    }

    /// Passes a cancellation on; nobody listening is fine. False once closed.
    pub(crate) fn publish(&self, cancel: Cancel) -> bool {
        match &self.listeners().cancels {
            Some(cancels) => {
                // An error says that nobody listens.
                let _ = cancels.send(cancel);
                true
            }
            None => false,
        }
    }

    /// Listens for cancellations; none once closed.
    pub(crate) fn subscribe(&self) -> Option<Feed> {
        let feed = self.listeners().cancels.as_ref().map(|cancels| Feed(cancels.subscribe()));
        self.changed.notify_all();
        feed
    }

    /// Somebody listens for cancellations.
    pub(crate) fn has_feeds(&self) -> bool {
        self.listeners().cancels.as_ref().is_some_and(|cancels| cancels.receiver_count() > 0)
    }

    /// Watches these queues from now on.
    pub(crate) fn watch(self: &Arc<Self>, queues: Vec<QueueName>) -> QueueWatch {
        let post = Arc::new(Post { queues, rung: AtomicBool::new(false), notify: Notify::new() });
        self.listeners().posts.push(Arc::clone(&post));
        self.changed.notify_all();
        QueueWatch { post, bells: Arc::clone(self) }
    }

    /// Waits one interval; longer while nobody listens. False once closed.
    pub(crate) fn rest(&self, interval: Duration) -> bool {
        let nobody = |listeners: &mut Listeners| {
            listeners.posts.is_empty()
                && listeners.cancels.as_ref().is_some_and(|cancels| cancels.receiver_count() == 0)
        };
        let listeners = self.listeners();
        let listeners = self.changed.wait_while(listeners, nobody).unwrap_or_else(PoisonError::into_inner);
        if listeners.cancels.is_none() {
            return false;
        }
        let rested = self.changed.wait_timeout_while(listeners, interval, |l| l.cancels.is_some());
        rested.unwrap_or_else(PoisonError::into_inner).0.cancels.is_some()
    }

    /// Ends all feeds and wakes all watches once.
    pub(crate) fn close(&self) {
        let mut listeners = self.listeners();
        if listeners.cancels.take().is_some() {
            listeners.posts.iter().for_each(|post| post.ring());
        }
        drop(listeners);
        self.changed.notify_all();
    }
}

/// A watch of some queues.
#[derive(Debug)]
pub(crate) struct QueueWatch {
    post: Arc<Post>,
    bells: Arc<Bells>,
}

impl Watch for QueueWatch {
    fn changed(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // Nothing is awaited between taking the ring and returning, so a dropped future has not taken it.
            while !self.post.rung.swap(false, Ordering::AcqRel) {
                self.post.notify.notified().await;
            }
        })
    }
}

impl Drop for QueueWatch {
    fn drop(&mut self) {
        self.bells.listeners().posts.retain(|post| !Arc::ptr_eq(post, &self.post));
    }
}

/// Cancellations as they are published.
#[derive(Debug)]
pub(crate) struct Feed(broadcast::Receiver<Cancel>);

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
