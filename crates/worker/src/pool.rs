//! Turns free workers into claims, for all pools at once, and claims into attempts; nothing while there is nothing to do.
//!
//! ```text
//!        ┌────────── hot ◄───── its watch rang, or a queue opened that it had not asked for
//!        │            │                         ▲
//!        │   has free workers: claim            │
//!        │            │                         │
//!        │            ├── got less than asked ──► cold
//!        └────────────┴── got all (full): asked again when a worker comes free
//! ```
//!
//! Invariant: slot before claim. Every task that a claim may bring has its permit already.

pub(crate) mod homes;
pub(crate) mod order;
pub(crate) mod permit;
pub(crate) mod wake;

use std::sync::Arc;

use poolwright_broker::{ClaimId, ClaimReply, ClaimRequest, Demand, WeightedQueue};
use poolwright_core::{PoolName, QueueName, Token};
use poolwright_handler::Context;
use tokio::runtime::Handle;

use crate::attempt::end::Outcome;
use crate::attempt::{self, Attempt, Ending};
use crate::config::PoolConfig;
use crate::settle::Open;
use crate::site::Site;
use crate::status::Counter;
use permit::{Permit, Slots};
use wake::Wake;

/// A pool at work.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) config: PoolConfig,
    pub(crate) slots: Arc<Slots>,
    /// Where its handlers run.
    pub(crate) threads: Handle,
    pub(crate) wake: Wake,
    pub(crate) completed: Counter,
    pub(crate) failed: Counter,
}

/// A claim and the permits of what it may bring.
pub(crate) struct Asked {
    pub(crate) request: ClaimRequest,
    pub(crate) asks: Vec<Ask>,
}

/// One pool's part of a claim.
pub(crate) struct Ask {
    pool: usize,
    permits: Vec<Permit>,
    queues: Vec<WeightedQueue>,
}

/// What is known of the queues of a pool.
///
/// Two claims may be under way, and the first may be answered last, or again. Only the last one that was sent says whether
/// there is more: it took the ring of everything that came before it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    /// What that claim found empty. Nothing, while the pool is hot.
    empty: Option<Vec<QueueName>>,
    /// That claim.
    last: Option<ClaimId>,
}

/// A claim for all hot pools, if there is one. The workers that these results leave when they are stored count as free; so do,
/// pool by pool, those that results of the calls under way leave, since claims have counted on them.
pub(crate) fn ask(site: &Site, known: &mut [Known], results: &mut [Open], lent: &[u32]) -> Option<Asked> {
    let mut ahead = lent.to_vec();
    results.iter().filter(|open| open.leaves_its_worker()).for_each(|open| ahead[open.pool()] += 1);
    let asks = asks(site, known, &ahead);
    if asks.is_empty() {
        return None;
    }
    for open in results.iter_mut().filter(|open| asks.iter().any(|ask| ask.pool == open.pool())) {
        open.lend();
    }
    let demand = |ask: &Ask| Demand {
        pool: site.pools[ask.pool].config.name.clone(),
        slots: u32::try_from(ask.permits.len()).unwrap_or(u32::MAX),
        queues: ask.queues.clone(),
        seed: site.chance.next(),
    };
    let request = ClaimRequest {
        id: ClaimId::fresh(&site.chance),
        resent: false,
        lease: site.options.lease,
        demands: asks.iter().map(demand).collect(),
    };
    asks.iter().for_each(|ask| known[ask.pool].last = Some(request.id));
    Some(Asked { request, asks })
}

/// What all hot pools ask for now. Pools that own queues come first, so that an elastic pool leaves work that its
/// home could do to its home.
fn asks(site: &Site, known: &[Known], ahead: &[u32]) -> Vec<Ask> {
    let has_room = |index: usize| site.pools[index].slots.room(ahead[index]) > 0;
    let is_full = |home: &PoolName| match site.pools.iter().position(|pool| pool.config.name == *home) {
        Some(index) => !has_room(index),
        None => site.homes.is_full(home),
    };
    let candidates = site.pools.iter().enumerate().filter(|(index, _)| has_room(*index));
    let opened = candidates.filter_map(|(index, pool)| {
        let queues = order::open_queues(&pool.config, is_full);
        let is_new = |queue: &WeightedQueue| match &known[index].empty {
            None => true,
            Some(empty) => !empty.contains(&queue.queue),
        };
        let is_hot = !queues.is_empty() && (pool.wake.is_rung() || queues.iter().any(is_new));
        is_hot.then_some((index, queues))
    });
    // Whether a home is full is decided for all pools before the first permit is taken.
    let mut opened: Vec<_> = opened.collect();
    opened.sort_by_key(|(index, _)| site.pools[*index].config.owns.is_empty());
    let take = |(index, queues): (usize, Vec<WeightedQueue>)| {
        let pool = &site.pools[index];
        pool.wake.take();
        let slots = &pool.slots;
        let mut permits = Vec::with_capacity(slots.room(ahead[index]) as usize);
        permits.extend(std::iter::from_fn(|| slots.take(ahead[index])));
        Ask { pool: index, permits, queues }
    };
    opened.into_iter().map(take).collect()
}

/// A claimed task and the permit to run it.
pub(crate) struct Taken {
    pub(crate) pool: usize,
    pub(crate) permit: Permit,
    pub(crate) token: Token,
    pub(crate) cx: Context,
}

/// Gives each task its permit and the others back, and notes which pools found their queues empty.
pub(crate) fn sort(site: &Site, asked: Asked, reply: ClaimReply, known: &mut [Known]) -> Vec<Taken> {
    let Asked { request, mut asks } = asked;
    // What is left of a claim that was done before says nothing of what was left in the queues.
    let is_partial = request.resent && !reply.claims.is_empty();
    site.counters.discarded.add(u64::from(reply.discarded));
    let mut taken = Vec::with_capacity(reply.claims.len());
    let now = site.clock.now();
    // A record is large: it is moved into its context at once, not from one list to the next.
    for claim in reply.claims {
        let key = &claim.task.key;
        let Some(token) = claim.task.token else {
            tracing::error!(task_id = %key.id, queue = %key.queue, "the store claimed a task without a token; it is \
                left alone");
            continue;
        };
        let asked = asks.iter_mut().find(|ask| site.pools[ask.pool].config.name == claim.pool);
        let Some((pool, permit)) = asked.and_then(|ask| Some((ask.pool, ask.permits.pop()?))) else {
            tracing::error!(task_id = %key.id, queue = %key.queue, pool = %claim.pool, "the store claimed a task that \
                nobody asked for; its lease will expire");
            continue;
        };
        taken.push(Taken { pool, permit, token, cx: attempt::context(site, pool, claim.task, now) });
    }
    for ask in asks {
        let known = &mut known[ask.pool];
        if known.last == Some(request.id) {
            let is_short = !ask.permits.is_empty() && !is_partial;
            known.empty = is_short.then(|| ask.queues.into_iter().map(|queue| queue.queue).collect());
        }
    }
    taken
}

/// Starts what was claimed.
pub(crate) fn deal(site: &Arc<Site>, taken: Vec<Taken>) {
    let drains = site.stops.draining.is_cancelled();
    // A slow reply, or one that was lost before, has used up a part of the leases it brings.
    let (now, enough) = (site.broker.now(), site.options.lease / 3 * 2);
    let is_old = |taken: &Taken| taken.cx.task().lease_until.is_some_and(|until| until.after(now) < enough);
    if taken.iter().any(is_old) {
        site.leases.renew_now();
    }
    let (many, began) = (taken.len(), site.clock.now());
    site.counters.claimed.add(many as u64);
    let mut ready: Vec<Vec<Ending>> = std::iter::repeat_with(Vec::new).take(site.pools.len()).collect();
    for taken in taken {
        let ready = &mut ready[taken.pool];
        let (attempt, permit) = Attempt::new(site, taken);
        if drains {
            attempt.conclude(site, Outcome::Dropped, Some(permit));
        } else if let Some(ending) = attempt.prepare(site, permit, began) {
            if ready.is_empty() {
                ready.reserve(many);
            }
            ready.push(ending);
        }
    }
    for (pool, ready) in ready.into_iter().enumerate() {
        attempt::start(&site.pools[pool].threads, ready);
    }
}
