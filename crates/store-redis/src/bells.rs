//! Who waits for what: watches of queues, and feeds of cancellations.
//!
//! What this process does rings at once. What others push, Go programs included, is noticed by one waiter a queue, see
//! [`waiter`]; cancellations come over the channels, see [`feed`](crate::feed).
//!
//! Invariant: a ring between two waits is kept until the next one; a dropped wait loses nothing.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use poolwright_broker::{Cancel, Watch};
use poolwright_core::{BoxFuture, QueueName};
use tokio::sync::{Notify, broadcast};
use tokio::task::AbortHandle;

use crate::RedisStore;
use crate::link::Link;
use crate::waiter::{self, Waiter};

/// Cancellations kept for a slow listener. When there are more it loses the oldest; the flags on the records say the same.
const CANCELS_KEPT: usize = 1_024;

/// All who listen.
pub(crate) struct Bells {
    link: Link,
    pub(crate) store: Weak<RedisStore>,
    inner: Mutex<Listeners>,
}

struct Listeners {
    posts: Vec<Arc<Post>>,
    /// One for each queue that is watched.
    waiters: HashMap<QueueName, (Arc<Waiter>, AbortHandle)>,
    /// None once closed.
    cancels: Option<broadcast::Sender<Cancel>>,
    /// Listens on the channels once somebody wants to know.
    listener: Option<AbortHandle>,
}

struct Post {
    queues: Vec<QueueName>,
    waiters: Vec<Arc<Waiter>>,
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
    pub(crate) fn new(link: Link, store: Weak<RedisStore>) -> Arc<Self> {
        let (cancels, _) = broadcast::channel(CANCELS_KEPT);
        let listeners =
            Listeners { posts: Vec::new(), waiters: HashMap::new(), cancels: Some(cancels), listener: None };
        Arc::new(Self { link, store, inner: Mutex::new(listeners) })
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever watches this queue.
    pub(crate) fn ring(&self, queue: &QueueName) {
        self.listeners().posts.iter().filter(|post| post.queues.contains(queue)).for_each(|post| post.ring());
    }

    /// A claim found nothing there: whoever waits for the queue wants to know at once when something comes.
    pub(crate) fn found_empty(&self, queue: &QueueName) {
        if let Some((waiter, _)) = self.listeners().waiters.get(queue) {
            waiter.found_empty();
        }
    }

    /// Passes a cancellation on; nobody listening is fine.
    pub(crate) fn pass_on(&self, cancel: Cancel) {
        if let Some(cancels) = &self.listeners().cancels {
            // An error says that nobody listens.
            let _ = cancels.send(cancel);
        }
    }

    /// Listens for what is passed on; none once closed.
    pub(crate) fn cancels(&self) -> Option<broadcast::Receiver<Cancel>> {
        self.listeners().cancels.as_ref().map(broadcast::Sender::subscribe)
    }

    /// The channels are listened to.
    pub(crate) fn has_listener(&self) -> bool {
        self.listeners().listener.is_some()
    }

    /// Keeps what listens to the channels; what is not needed ends.
    pub(crate) fn keep_listener(&self, listener: AbortHandle) {
        let mut listeners = self.listeners();
        if listeners.cancels.is_some() && listeners.listener.is_none() {
            listeners.listener = Some(listener);
        } else {
            listener.abort();
        }
    }

    /// Watches these queues from now on.
    pub(crate) fn watch(self: &Arc<Self>, queues: Vec<QueueName>) -> QueueWatch {
        let mut listeners = self.listeners();
        let waiters = if listeners.cancels.is_some() {
            queues.iter().map(|queue| self.waiter(&mut listeners, queue)).collect()
        } else {
            Vec::new()
        };
        let post = Arc::new(Post { queues, waiters, rung: AtomicBool::new(false), notify: Notify::new() });
        listeners.posts.push(Arc::clone(&post));
        QueueWatch { post, bells: Arc::clone(self) }
    }

    fn waiter(self: &Arc<Self>, listeners: &mut Listeners, queue: &QueueName) -> Arc<Waiter> {
        let made = listeners.waiters.entry(queue.clone()).or_insert_with(|| {
            let waiter = Arc::new(Waiter::default());
            let bells = Arc::downgrade(self);
            let run = waiter::run(self.link.clone(), queue.clone(), Arc::clone(&waiter), move |queue| {
                if let Some(bells) = bells.upgrade() {
                    bells.ring(queue);
                }
            });
            (waiter, tokio::spawn(run).abort_handle())
        });
        Arc::clone(&made.0)
    }

    /// Ends all feeds and wakes all watches once.
    pub(crate) fn close(&self) {
        let mut listeners = self.listeners();
        if listeners.cancels.take().is_some() {
            listeners.posts.iter().for_each(|post| post.ring());
        }
        listeners.waiters.drain().for_each(|(_, (_, task))| task.abort());
        listeners.listener.take().iter().for_each(AbortHandle::abort);
    }
}

impl Drop for Bells {
    fn drop(&mut self) {
        self.close();
    }
}

/// A watch of some queues.
pub(crate) struct QueueWatch {
    post: Arc<Post>,
    bells: Arc<Bells>,
}

impl Watch for QueueWatch {
    fn changed(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            // Nothing is awaited between taking the ring and returning, so a dropped future has not taken it.
            while !self.post.rung.swap(false, Ordering::AcqRel) {
                self.post.waiters.iter().for_each(|waiter| waiter.ask());
                self.post.notify.notified().await;
            }
        })
    }
}

impl Drop for QueueWatch {
    fn drop(&mut self) {
        let mut listeners = self.bells.listeners();
        listeners.posts.retain(|post| !Arc::ptr_eq(post, &self.post));
        let Listeners { posts, waiters, .. } = &mut *listeners;
        // Nobody watches such a queue any more: its connection goes.
        waiters.retain(|queue, (_, task)| {
            let watched = posts.iter().any(|post| post.queues.contains(queue));
            if !watched {
                task.abort();
            }
            watched
        });
    }
}
