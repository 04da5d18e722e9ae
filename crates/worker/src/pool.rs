//! Turns free workers into claims: one call for all pools at once, and nothing at all while there is nothing to do.
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
//! Invariant: slot before claim. Every task that a claim may bring has its permit already, and a claim whose reply was
//! lost is asked again under its own id until it is answered, with its permits kept, so nothing claimed is forgotten.

pub(crate) mod homes;
pub(crate) mod order;
pub(crate) mod permit;
pub(crate) mod wake;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use poolwright_broker::{Claim, ClaimId, ClaimReply, ClaimRequest, Demand, Held, WeightedQueue};
use poolwright_core::{PoolName, QueueName};
use tokio::runtime::Handle;
use tokio::time::sleep;

use crate::attempt::Attempt;
use crate::attempt::end::Outcome;
use crate::config::PoolConfig;
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

/// One pool's part of a claim.
struct Ask {
    pool: usize,
    permits: Vec<Permit>,
    queues: Vec<WeightedQueue>,
}

/// What the last short claim of a pool said: these queues were empty. Nothing, while it is hot.
type KnownEmpty = Option<Vec<QueueName>>;

/// Claims until the server drains.
pub(crate) async fn run(site: Arc<Site>) {
    let _open = Open(&site);
    let mut known_empty: Vec<KnownEmpty> = vec![None; site.pools.len()];
    while !site.stops.draining.is_cancelled() {
        let asks = asks(&site, &known_empty);
        if asks.is_empty() {
            tokio::select! {
                () = site.stops.draining.cancelled() => return,
                () = site.look.notified() => continue,
            }
        }
        let Some(reply) = claim(&site, &asks).await else { return };
        deal(&site, asks, reply, &mut known_empty);
    }
}

/// Something may still be claimed. Dropped with the loop, however it ends.
struct Open<'a>(&'a Site);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.claiming.store(false, Ordering::Release);
        self.0.changed.notify_waiters();
    }
}

/// What all hot pools ask for now. Pools that own queues come first, so that an elastic pool leaves work that its
/// home could do to its home.
fn asks(site: &Site, known_empty: &[KnownEmpty]) -> Vec<Ask> {
    let is_full = |home: &PoolName| match site.pools.iter().find(|pool| pool.config.name == *home) {
        Some(pool) => pool.slots.free() == 0,
        None => site.homes.is_full(home),
    };
    let candidates = site.pools.iter().enumerate().filter(|(_, pool)| pool.slots.free() > 0);
    let opened = candidates.filter_map(|(index, pool)| {
        let queues = order::open_queues(&pool.config, is_full);
        let is_new = |queue: &WeightedQueue| match &known_empty[index] {
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
        Ask { pool: index, permits: std::iter::from_fn(|| pool.slots.take()).collect(), queues }
    };
    opened.into_iter().map(take).collect()
}

/// One claim, asked until it is answered; none when the server drains before it can have brought anything.
async fn claim(site: &Site, asks: &[Ask]) -> Option<ClaimReply> {
    let demand = |ask: &Ask| Demand {
        pool: site.pools[ask.pool].config.name.clone(),
        slots: u32::try_from(ask.permits.len()).unwrap_or(u32::MAX),
        queues: ask.queues.clone(),
        seed: site.chance.next(),
    };
    let mut request = ClaimRequest {
        id: ClaimId::fresh(&site.chance),
        resent: false,
        lease: site.options.lease,
        demands: asks.iter().map(demand).collect(),
    };
    let mut backoff = site.backoff();
    loop {
        let error = match site.call(site.broker.claim(request.clone())).await {
            Ok(reply) => return Some(reply),
            Err(error) => error,
        };
        request.resent |= error.is_retryable();
        tracing::debug!(%error, resent = request.resent, "a claim failed and is tried again");
        // A claim that was perhaps done is looked after for longer: until what runs is asked to end.
        let enough = if request.resent { &site.stops.firing } else { &site.stops.draining };
        tokio::select! {
            () = enough.cancelled() => return None,
            () = sleep(backoff.next()) => {}
        }
    }
}

/// Starts what was claimed, and notes which pools found their queues empty.
fn deal(site: &Arc<Site>, mut asks: Vec<Ask>, reply: ClaimReply, known_empty: &mut [KnownEmpty]) {
    site.counters.discarded.add(u64::from(reply.discarded));
    let drains = site.stops.draining.is_cancelled();
    // A slow reply, or one that was lost before, has used up a part of the leases it brings.
    let (now, enough) = (site.broker.now(), site.options.lease / 3 * 2);
    let is_old = |claim: &Claim| claim.task.lease_until.is_some_and(|until| until.after(now) < enough);
    if reply.claims.iter().any(is_old) {
        site.leases.renew_now();
    }
    for claim in reply.claims {
        let Some(held) = Held::of(&claim.task) else {
            tracing::error!(task_id = %claim.task.key.id, queue = %claim.task.key.queue, "the store claimed a task \
                without a token; it is left alone");
            continue;
        };
        let asked = asks.iter_mut().find(|ask| site.pools[ask.pool].config.name == claim.pool);
        let Some((pool, permit)) = asked.and_then(|ask| Some((ask.pool, ask.permits.pop()?))) else {
            tracing::error!(task_id = %held.key.id, queue = %held.key.queue, pool = %claim.pool, "the store claimed \
                a task that nobody asked for; its lease will expire");
            continue;
        };
        site.counters.claimed.add(1);
        let (attempt, permit) = Attempt::new(site, pool, claim.task, held, permit);
        if drains {
            attempt.conclude(site, Outcome::Dropped, permit);
        } else {
            attempt.start(site, permit);
        }
    }
    for ask in asks {
        let is_short = !ask.permits.is_empty();
        known_empty[ask.pool] = is_short.then(|| ask.queues.into_iter().map(|queue| queue.queue).collect());
    }
}
