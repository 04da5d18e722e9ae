//! Who is at work here, and how a cancellation finds them.
//!
//! A published cancellation only says where to look: the attempt's record is asked for its flag, by way of its lease, so
//! that a late or repeated signal cannot end a later attempt of the same task that nobody cancelled.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use poolwright_broker::CancelFeed;
use poolwright_core::{TaskKey, Token};
use tokio::time::sleep;

use crate::attempt::Attempt;
use crate::keeper;
use crate::site::Site;

/// The attempts of this process, by token: a task may be here twice while an attempt that lost its lease winds down.
#[derive(Debug, Default)]
pub(crate) struct Roster(Mutex<Attempts>);

type Attempts = HashMap<Token, Arc<Attempt>, BuildHasherDefault<TokenHash>>;

impl Roster {
    pub(crate) fn insert(&self, attempt: &Arc<Attempt>) {
        self.attempts().insert(attempt.token, Arc::clone(attempt));
    }

    pub(crate) fn remove(&self, attempt: &Attempt) {
        let gone = self.attempts().remove(&attempt.token);
        // Perhaps the last who held it: what is in it is dropped without the lock.
        drop(gone);
    }

    /// The attempt with this token is not settled yet.
    pub(crate) fn holds(&self, token: Token) -> bool {
        self.attempts().contains_key(&token)
    }

    pub(crate) fn len(&self) -> usize {
        self.attempts().len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.attempts().is_empty()
    }

    /// All of them, as they are now.
    pub(crate) fn all(&self) -> Vec<Arc<Attempt>> {
        self.attempts().values().map(Arc::clone).collect()
    }

    /// Those that still own their tasks, settled or not.
    pub(crate) fn owners(&self) -> Vec<Arc<Attempt>> {
        self.all().into_iter().filter(|attempt| !attempt.is_lost()).collect()
    }

    fn of_task(&self, key: &TaskKey) -> Vec<Arc<Attempt>> {
        let attempts = self.attempts();
        let of_task = attempts.values().filter(|attempt| attempt.cx.task().key == *key && !attempt.is_over());
        of_task.map(Arc::clone).collect()
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A token is random already, so one multiplication spreads it as well as a keyed hash would. Its halves may depend on each
/// other (a store may write its row into one), so both are in it, and in a way that does not cancel them out.
///
/// Tokens come from the store, which draws them itself; nobody outside can choose some that fall together.
#[derive(Debug, Default)]
struct TokenHash(u64);

impl Hasher for TokenHash {
    fn write_u128(&mut self, token: u128) {
        let [low, high] = [token as u64, (token >> 64) as u64];
        self.0 = low.wrapping_add(high.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn finish(&self) -> u64 {
        self.0
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
