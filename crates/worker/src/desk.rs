//! The desk: results go out and tasks come in, in one call to the store.
//!
//! ```text
//!   handlers end ──► inbox ──► judged ──┐                  ┌──► stored: the worker is free, the dead letter on its way
//!                                       ├── one call ──────┤
//!   workers that are free, or are free ─┘   for both       └──► claimed: started on the pool's threads
//!   once the call is done ──► a claim
//! ```
//!
//! Nothing waits to fill a batch: a call goes out as soon as there is something to say and none is under way. What is ready
//! meanwhile travels in the next one. So a lone task costs no waiting, and a busy worker makes few calls for many tasks.
//! A second call may be on its way while the store works on the first, when it has enough to say, and what a call brought is
//! acted upon once the next is on its way: store and worker do not wait for each other.
//!
//! What the store refuses, each for itself, is laid aside and said again from time to time: nothing waits with it.
//!
//! A store that is away loses nothing: results are kept here, the keeper keeps their leases, and a claim whose reply was lost
//! is asked again under its own id until it is answered, with its permits kept.
//!
//! Invariant: a result is dropped only when the store said that its lease is lost or its task is gone, or when the worker
//! ends. Every task that a claim may bring has its permit already.

mod refused;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, poll};
use poolwright_broker::{ClaimReply, Error, Exchanged};
use tokio::task::coop::consume_budget;
use tokio::time::sleep;

use crate::pool::{self, Asked, Known, Taken};
use crate::settle::{self, Ended, Open};
use crate::site::Site;
use refused::Refused;

/// The most settlements in one call.
const BATCH_MAX: usize = 512;

/// The most calls under way.
const CALLS_MAX: usize = 2;

/// A second call is sent when it settles at least one in so many of the tasks that are held: smaller ones would fall apart
/// into ever smaller groups.
const SHARE: usize = 4;

/// What lies on the desk.
struct Desk {
    site: Arc<Site>,
    /// Calls that failed, and are said again one at a time.
    left: VecDeque<Call>,
    /// Why the last of them failed; nothing is sent before a pause.
    trouble: Option<Error>,
    /// Results that were refused.
    refused: Refused,
    /// What the last answers brought, not acted upon.
    news: Vec<News>,
    /// Claims that are under way.
    asking: usize,
    /// Workers of each pool that claims counted on, and that come back by the calls under way.
    lent: Vec<u32>,
    /// What each pool knows of its queues.
    known: Vec<Known>,
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
    /// It says nothing but what was refused before.
    is_again: bool,
}

impl Call {
    /// The pool of each result whose worker a claim has counted on. What was refused before is perhaps refused for ever:
    /// nothing counts on it any more, or a pool could owe without end.
    fn lent(&self) -> impl Iterator<Item = usize> {
        self.results.iter().filter(|open| open.is_lent() && !self.is_again).map(Open::pool)
    }
}

/// What came of a call.
struct Answer {
    /// It claimed.
    asked: bool,
    /// The pools of the results whose workers a claim had counted on.
    lent: Vec<usize>,
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
pub(crate) async fn run(site: Arc<Site>) {
    let mut desk = Desk::new(Arc::clone(&site));
    let mut backoff = site.backoff();
    let mut calls = FuturesUnordered::new();
    loop {
        // A store that answers at once would leave no turn for the other loops.
        consume_budget().await;
        desk.refused.look().await;
        while let Some(call) = desk.next(calls.len()) {
            calls.push(say(&site, call));
        }
        // Asked once, so that they are on their way before anything else is done.
        let answer = match poll!(calls.next()) {
            Poll::Ready(answer) => answer,
            Poll::Pending if desk.act() => continue,
            Poll::Pending => tokio::select! {
                answer = calls.next() => answer,
                () = site.desk.has(desk.enough()), if desk.may_send(calls.len()) => continue,
                // Less is enough from now on.
                () = site.stops.draining.cancelled(), if desk.claims && desk.may_send(calls.len()) => continue,
            },
        };
        match answer {
            Some(answer) => {
                if desk.receive(answer) {
                    backoff.reset();
                }
            }
            None if desk.act() => {}
            None => {
                let goes_on = match desk.trouble.take() {
                    Some(error) => desk.pause(&error, backoff.next()).await,
                    None => desk.wait().await,
                };
                if !goes_on {
                    return;
                }
            }
        }
    }
}

impl Desk {
    fn new(site: Arc<Site>) -> Self {
        let (known, refused) = (vec![Known::default(); site.pools.len()], Refused::new(site.backoff()));
        let (left, news, lent) = (VecDeque::new(), Vec::new(), vec![0; site.pools.len()]);
        Self { left, trouble: None, refused, news, asking: 0, lent, known, claims: true, site }
    }

    /// One more call may be sent, if there is enough to say.
    fn may_send(&self, under_way: usize) -> bool {
        let in_turn = under_way == 0 || (under_way < CALLS_MAX && self.left.is_empty());
        in_turn && self.trouble.is_none()
    }

    /// How many results are enough for a second call. A worker that stops has no time to wait for more, behind a call that
    /// perhaps is never answered.
    fn enough(&self) -> usize {
        if self.site.stops.draining.is_cancelled() {
            return 1;
        }
        (self.site.roster.len() / SHARE).max(1)
    }

    /// The next call, if there is something to say that does not wait for those under way.
    fn next(&mut self, under_way: usize) -> Option<Call> {
        if !self.may_send(under_way) {
            return None;
        }
        if let Some(results) = self.refused.take_due(BATCH_MAX) {
            return Some(Call { results, asked: None, is_again: true });
        }
        self.end_claims_if_draining();
        if under_way > 0 && self.site.desk.len() < self.enough() {
            return None;
        }
        let mut call = self.left.pop_front().unwrap_or_default();
        let items = self.site.desk.take(BATCH_MAX.saturating_sub(call.results.len()));
        call.results.extend(items.into_iter().map(|item| Open::new(&self.site, item)));
        if call.asked.is_none() && self.claims {
            call.asked = pool::ask(&self.site, &mut self.known, &mut call.results, &self.lent);
        }
        self.asking += usize::from(call.asked.is_some());
        call.lent().for_each(|pool| self.lent[pool] += 1);
        (!call.results.is_empty() || call.asked.is_some()).then_some(call)
    }

    /// A claim that was perhaps done is looked after for longer than others: until what runs is asked to end.
    fn end_claims_if_draining(&mut self) {
        let stops = &self.site.stops;
        if !stops.draining.is_cancelled() || !self.site.claiming.load(Ordering::Acquire) {
            return;
        }
        self.claims = false;
        for call in &mut self.left {
            call.asked =
                call.asked.take().filter(|asked| asked.request.resent && !stops.firing.is_cancelled());
        }
        self.left.retain(|call| !call.results.is_empty() || call.asked.is_some());
        let may_come = self.asking > 0 || self.left.iter().any(|call| call.asked.is_some());
        if !may_come && self.news.is_empty() {
            self.end_claims();
        }
    }

    fn end_claims(&mut self) {
        self.claims = false;
        self.site.claiming.store(false, Ordering::Release);
        self.site.changed.notify_waiters();
    }

    /// Takes in an answer: what is left is kept, and what the next claim must know is known. False when something is left.
    fn receive(&mut self, answer: Answer) -> bool {
        let Answer { left, asked, lent, ended, brought, done } = answer;
        self.asking -= usize::from(asked);
        lent.into_iter().for_each(|pool| self.lent[pool] -= 1);
        let taken = brought.map(|(asked, reply)| pool::sort(&self.site, asked, reply, &mut self.known));
        self.news.push(News { ended, taken: taken.unwrap_or_default() });
        let Call { results, asked, is_again } = left;
        let (refused, results): (Vec<_>, Vec<_>) = results.into_iter().partition(|open| open.was_refused);
        self.refused.keep(refused, is_again);
        let is_left = !results.is_empty() || asked.is_some();
        if is_left {
            self.left.push_back(Call { results, asked, is_again: false });
        }
        let Err(error) = done else { return true };
        self.trouble = is_left.then_some(error).or_else(|| self.trouble.take());
        false
    }

    /// Ends what has ended, and starts what was claimed. False when there was nothing.
    fn act(&mut self) -> bool {
        if self.news.is_empty() {
            return false;
        }
        for News { ended, taken } in self.news.drain(..) {
            ended.into_iter().for_each(|ended| settle::conclude(&self.site, ended));
            pool::deal(&self.site, taken);
        }
        self.site.changed.notify_waiters();
        true
    }

    /// Waits for something to do. False when the worker has ended.
    async fn wait(&mut self) -> bool {
        let may_claim = self.site.claiming.load(Ordering::Acquire);
        tokio::select! {
            // What comes at the very end is stored before the end is seen.
            biased;
            () = self.site.desk.has(1) => true,
            () = self.site.look.notified(), if may_claim => true,
            () = self.site.stops.draining.cancelled(), if may_claim => true,
            () = self.refused.due() => true,
            () = self.site.stops.ending.cancelled() => false,
        }
    }

    /// Waits before what failed is tried again. False when the worker has ended.
    async fn pause(&self, error: &Error, length: Duration) -> bool {
        let results: usize = self.left.iter().map(|call| call.results.len()).sum();
        let asked: Vec<_> = self.left.iter().filter_map(|call| call.asked.as_ref()).collect();
        tracing::debug!(%error, results, claims = asked.len(), "the store did not take everything: what is left is kept \
            and tried again");
        let is_resent = asked.iter().all(|asked| asked.request.resent);
        let stops = &self.site.stops;
        let enough = if is_resent { &stops.firing } else { &stops.draining };
        tokio::select! {
            () = sleep(length) => true,
            () = enough.cancelled(), if !asked.is_empty() => true,
            // A claim was refused: results do not wait with it.
            () = self.site.desk.has(1), if !error.is_retryable() => true,
            () = stops.ending.cancelled() => false,
        }
    }
}

/// One call with everything; two, or more, where the store refused that.
async fn say(site: &Site, call: Call) -> Answer {
    let (asked, lent) = (call.asked.is_some(), call.lent().collect());
    let mut answer = Answer { asked, lent, left: call, ended: Vec::new(), brought: None, done: Ok(()) };
    if !answer.fused(site).await {
        answer.apart(site).await;
    }
    answer
}

impl Answer {
    /// False where there are not both, or they have to be said apart.
    async fn fused(&mut self, site: &Site) -> bool {
        let Call { results, asked: Some(asked), .. } = &mut self.left else { return false };
        if results.is_empty() {
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
                // That the store is away weighs more than what it has refused.
                if self.done.is_ok() || error.is_retryable() {
                    self.done = Err(error);
                }
            }
        }
    }
}

impl Drop for Desk {
    /// However the loop ends, nothing is taken or claimed any more.
    fn drop(&mut self) {
        self.site.desk.close();
        self.end_claims();
    }
}
