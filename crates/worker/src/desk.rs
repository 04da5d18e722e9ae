//! The desk: results go out and tasks come in, in one call to the store.
//!
//! ```text
//!   handlers end ──► inbox ──► judged ──┐                  ┌──► stored: the worker is free, the dead letter on its way
//!                                       ├── one call at ───┤
//!   workers that are free, or are free ─┘   a time         └──► claimed: started on the pool's threads
//!   once the call is done ──► a claim
//! ```
//!
//! Nothing waits to fill a batch: a call goes out as soon as there is something to say and none is under way. What is ready
//! meanwhile travels in the next one. So a lone task costs no waiting, and a busy worker makes few calls for many tasks.
//! The next call is on its way before the answer to the last one is acted upon: store and worker do not wait for each other.
//!
//! A store that is away loses nothing: results are kept here, the keeper keeps their leases, and a claim whose reply was lost
//! is asked again under its own id until it is answered, with its permits kept.
//!
//! Invariant: a result is dropped only when the store said that its lease is lost or its task is gone, or when the worker
//! ends. Every task that a claim may bring has its permit already.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use futures_util::poll;
use poolwright_broker::{ClaimReply, Error, Exchanged};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::backoff::Backoff;
use crate::pool::{self, Asked, KnownEmpty, Taken};
use crate::settle::{self, Ended, Item, Open};
use crate::site::Site;

/// The most settlements in one call.
const BATCH_MAX: usize = 512;

/// What lies on the desk.
struct Desk {
    site: Arc<Site>,
    /// To be said in the next call.
    out: Call,
    /// What each pool knows of its queues.
    known_empty: Vec<KnownEmpty>,
    /// The server does not drain: there may be another claim.
    claims: bool,
}

/// What one call says.
#[derive(Default)]
struct Call {
    /// Results that are not stored.
    results: Vec<Open>,
    /// A claim that is not answered.
    asked: Option<Asked>,
}

/// What came of a call.
struct Answer {
    /// What has to be said again.
    left: Call,
    /// Results that need not be said again.
    ended: Vec<Ended>,
    /// What the claim brought.
    brought: Option<(Asked, ClaimReply)>,
    /// Why something is left.
    done: Result<(), Error>,
}

/// What is to be done now that a call was answered; workers and queues are known to be free and empty already.
struct News {
    ended: Vec<Ended>,
    taken: Vec<Taken>,
}

/// Works until the worker has ended.
///
/// The channel holds one place for each worker. It is never full: who hands in holds a permit, a permit hands in once, and
/// those that were given out ahead lie on the desk.
pub(crate) async fn run(site: Arc<Site>, mut inbox: mpsc::Receiver<Item>) {
    let mut desk = Desk::new(Arc::clone(&site));
    let mut backoff = site.backoff();
    let mut items = Vec::new();
    let mut news = None;
    loop {
        desk.gather(&mut inbox, &mut items);
        desk.plan();
        let Some(out) = desk.take() else {
            match news.take() {
                Some(news) => desk.act(news),
                None if desk.wait(&mut inbox, &mut items).await => {}
                None => return,
            }
            continue;
        };
        let mut call = pin!(say(&site, out));
        let early = poll!(call.as_mut());
        if let Some(news) = news.take() {
            desk.act(news);
        }
        let answer = match early {
            Poll::Ready(answer) => answer,
            Poll::Pending => call.await,
        };
        let (fresh, done) = desk.receive(answer);
        let Err(error) = done else {
            backoff.reset();
            news = Some(fresh);
            continue;
        };
        desk.act(fresh);
        if !desk.pause(&error, &mut backoff, &mut inbox, &mut items).await {
            return;
        }
    }
}

impl Desk {
    fn new(site: Arc<Site>) -> Self {
        let known_empty = vec![None; site.pools.len()];
        Self { out: Call::default(), known_empty, claims: true, site }
    }

    /// Takes in the results that are ready.
    fn gather(&mut self, inbox: &mut mpsc::Receiver<Item>, items: &mut Vec<Item>) {
        while items.len() + self.out.results.len() < BATCH_MAX
            && let Ok(item) = inbox.try_recv()
        {
            items.push(item);
        }
        self.out.results.extend(items.drain(..).map(|item| Open::new(&self.site, item)));
    }

    /// Makes a claim, if a pool wants one and none is under way; ends claiming when the server drains.
    fn plan(&mut self) {
        let stops = &self.site.stops;
        if !self.claims || !stops.draining.is_cancelled() {
            if self.claims && self.out.asked.is_none() {
                self.out.asked = pool::ask(&self.site, &self.known_empty, &mut self.out.results);
            }
            return;
        }
        // A claim that was perhaps done is looked after for longer: until what runs is asked to end.
        let is_kept = self.out.asked.as_ref().is_some_and(|asked| asked.request.resent);
        if !is_kept || stops.firing.is_cancelled() {
            self.out.asked = None;
            self.end_claims();
        }
    }

    fn end_claims(&mut self) {
        self.claims = false;
        self.site.claiming.store(false, Ordering::Release);
        self.site.changed.notify_waiters();
    }

    /// What is to be said, if there is anything.
    fn take(&mut self) -> Option<Call> {
        let says = !self.out.results.is_empty() || self.out.asked.is_some();
        says.then(|| std::mem::take(&mut self.out))
    }

    /// Takes in an answer: what is left lies on the desk again, and what the next claim must know is known.
    fn receive(&mut self, Answer { left, ended, brought, done }: Answer) -> (News, Result<(), Error>) {
        self.out = left;
        let taken =
            brought.map(|(asked, reply)| pool::sort(&self.site, asked.asks, reply, &mut self.known_empty));
        (News { ended, taken: taken.unwrap_or_default() }, done)
    }

    /// Ends what has ended, and starts what was claimed.
    fn act(&self, News { ended, taken }: News) {
        ended.into_iter().for_each(|ended| settle::conclude(&self.site, ended));
        pool::deal(&self.site, taken);
        self.site.changed.notify_waiters();
    }

    /// Waits for something to do. False when the worker has ended.
    async fn wait(&self, inbox: &mut mpsc::Receiver<Item>, items: &mut Vec<Item>) -> bool {
        tokio::select! {
            _ = inbox.recv_many(items, BATCH_MAX) => true,
            () = self.site.look.notified(), if self.claims => true,
            () = self.site.stops.draining.cancelled(), if self.claims => true,
            () = self.site.stops.ending.cancelled() => false,
        }
    }

    /// Waits before what failed is tried again. False when the worker has ended.
    async fn pause(
        &self,
        error: &Error,
        backoff: &mut Backoff,
        inbox: &mut mpsc::Receiver<Item>,
        items: &mut Vec<Item>,
    ) -> bool {
        let resent = self.out.asked.as_ref().map(|asked| asked.request.resent);
        tracing::debug!(%error, results = self.out.results.len(), claims = resent.is_some(), "the store did not take \
            everything: what is left is kept and tried again");
        let enough = match resent {
            Some(true) => &self.site.stops.firing,
            Some(false) | None => &self.site.stops.draining,
        };
        tokio::select! {
            () = sleep(backoff.next()) => true,
            () = enough.cancelled(), if resent.is_some() => true,
            // What was refused may be the fault of what is in it: newcomers do not wait with it.
            _ = inbox.recv_many(items, BATCH_MAX), if !error.is_retryable() => true,
            () = self.site.stops.ending.cancelled() => false,
        }
    }
}

/// One call with everything; two, or more, where the store refused that.
async fn say(site: &Site, call: Call) -> Answer {
    let mut answer = Answer { left: call, ended: Vec::new(), brought: None, done: Ok(()) };
    if !answer.fused(site).await {
        answer.apart(site).await;
    }
    answer
}

impl Answer {
    /// False where there are not both, or they have to be said apart.
    async fn fused(&mut self, site: &Site) -> bool {
        let Call { results, asked: Some(asked) } = &mut self.left else { return false };
        if results.is_empty() || results.iter().any(|open| open.was_refused) {
            return false;
        }
        match site.call(site.broker.exchange(settle::said(results), asked.request.clone())).await {
            Ok(Exchanged { outcomes, claimed }) => {
                self.done = settle::sort(results, outcomes, &mut self.ended);
                self.claimed(claimed);
                true
            }
            Err(error) => {
                results.iter_mut().for_each(|open| open.note(&error));
                let is_retryable = error.is_retryable();
                if is_retryable {
                    self.claimed(Err(error));
                }
                is_retryable
            }
        }
    }

    async fn apart(&mut self, site: &Site) {
        self.done = settle::store(site, &mut self.left.results, &mut self.ended).await;
        let is_away = self.done.as_ref().is_err_and(Error::is_retryable);
        if let Some(asked) = &self.left.asked
            && !is_away
        {
            let claimed = site.call(site.broker.claim(asked.request.clone())).await;
            self.claimed(claimed);
        }
    }

    /// The store has answered the claim.
    fn claimed(&mut self, claimed: Result<ClaimReply, Error>) {
        match claimed {
            Ok(reply) => self.brought = self.left.asked.take().map(|asked| (asked, reply)),
            Err(error) => {
                if let Some(asked) = &mut self.left.asked {
                    asked.request.resent |= error.is_retryable();
                }
                if self.done.is_ok() {
                    self.done = Err(error);
                }
            }
        }
    }
}

impl Drop for Desk {
    /// However the loop ends, nothing can be claimed any more.
    fn drop(&mut self) {
        self.end_claims();
    }
}
