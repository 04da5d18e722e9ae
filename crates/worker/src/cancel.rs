//! Who is at work here, and how a cancellation finds them.
//!
//! A published cancellation only says where to look: the attempt's record is asked for its flag, by way of its lease, so
//! that a late or repeated signal cannot end a later attempt of the same task that nobody cancelled.

use std::sync::Arc;

use dashmap::DashMap;
use poolwright_broker::CancelFeed;
use poolwright_core::{TaskKey, Token};
use tokio::time::sleep;

use crate::attempt::Attempt;
use crate::keeper;
use crate::site::Site;

/// The attempts of this process, by token: a task may be here twice while an attempt that lost its lease winds down.
#[derive(Debug, Default)]
pub(crate) struct Roster(DashMap<Token, Arc<Attempt>>);

impl Roster {
    pub(crate) fn insert(&self, attempt: &Arc<Attempt>) {
        self.0.insert(attempt.held.token, Arc::clone(attempt));
    }

    pub(crate) fn remove(&self, attempt: &Attempt) {
        self.0.remove(&attempt.held.token);
    }

    /// The attempt with this token is not settled yet.
    pub(crate) fn holds(&self, token: Token) -> bool {
        self.0.contains_key(&token)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, as they are now.
    pub(crate) fn all(&self) -> Vec<Arc<Attempt>> {
        self.0.iter().map(|entry| Arc::clone(entry.value())).collect()
    }

    /// Those that still own their tasks, settled or not.
    pub(crate) fn owners(&self) -> Vec<Arc<Attempt>> {
        self.all().into_iter().filter(|attempt| !attempt.is_lost()).collect()
    }

    fn of_task(&self, key: &TaskKey) -> Vec<Arc<Attempt>> {
        let of_task = self.0.iter().filter(|entry| entry.held.key == *key && !entry.is_over());
        of_task.map(|entry| Arc::clone(entry.value())).collect()
    }
}

/// Listens for cancellations, and listens again when the feed breaks.
pub(crate) async fn run(site: Arc<Site>) {
    tokio::select! {
        () = site.stops.ending.cancelled() => {}
        () = listen(&site) => {}
    }
}

async fn listen(site: &Site) {
    let mut backoff = site.backoff();
    loop {
        match site.look_up(site.broker.subscribe()).await {
            Ok(feed) => {
                backoff.reset();
                // What was said before this feed began is found on the records.
                site.leases.renew_now();
                follow(site, feed).await;
            }
            Err(error) => tracing::debug!(%error, "could not listen for cancellations"),
        }
        sleep(backoff.next()).await;
    }
}

async fn follow(site: &Site, mut feed: Box<dyn CancelFeed>) {
    while let Some(cancel) = feed.next().await {
        let running = site.roster.of_task(&cancel.key);
        if let Err(error) = keeper::renew(site, running).await {
            // The keeper asks again in a third of a lease at the latest.
            tracing::debug!(%error, queue = %cancel.key.queue, task_id = %cancel.key.id, "a cancellation waits for \
                the store");
        }
    }
}
