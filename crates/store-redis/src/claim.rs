//! Handing out tasks: the draws are made here, the script serves them.
//!
//! A server's scripts cannot count in 64 bits, so the lottery of the contract is drawn here, a slot a draw, and travels as
//! numbers of queues, two bytes each. A claim for very many slots is several calls.
//!
//! In a cluster each queue lies on a node of its own: there the first choices of all draws are asked for at once, and a second
//! round, queue by queue, fills what an empty one left.

use std::collections::HashMap;

use bytes::{BufMut, Bytes, BytesMut};
use poolwright_broker::{Claim, ClaimReply, ClaimRequest, Demand, Error, Lottery};
use poolwright_core::{PoolName, QueueName, TaskRecord, Timestamp, Token};

use crate::RedisStore;
use crate::keys::Keys;
use crate::link::Kind;
use crate::record::{Claimed, Poison, Shown};
use crate::reply::Parts;
use crate::script::{CLAIM, Call, SET_ASIDE};
use crate::submit::micros;

/// The most slots that one call serves.
const SLOTS_MAX: u32 = 500;

/// A claim on its way: what is left to be drawn.
pub(crate) struct Plan {
    stem: Bytes,
    again: Bytes,
    lease: std::time::Duration,
    queues: Vec<QueueName>,
    demands: Vec<PlannedDemand>,
}

struct PlannedDemand {
    pool: PoolName,
    lottery: Lottery,
    /// The numbers of its queues, from 1 on.
    queues: Vec<u16>,
    left: u32,
    /// Asked for in the call that is under way.
    asked: u32,
}

impl Plan {
    fn of(store: &RedisStore, request: &ClaimRequest, demands: &[Demand]) -> Self {
        let mut queues: Vec<QueueName> = Vec::new();
        let mut number = |name: &QueueName| {
            let known = queues.iter().position(|known| known == name);
            let at = known.unwrap_or_else(|| {
                queues.push(name.clone());
                queues.len() - 1
            });
            u16::try_from(at + 1).unwrap_or(u16::MAX)
        };
        let demands = demands.iter().map(|demand| PlannedDemand {
            pool: demand.pool.clone(),
            lottery: Lottery::new(demand.seed, demand.queues.iter().map(|queue| queue.weight)),
            queues: demand.queues.iter().map(|queue| number(&queue.queue)).collect(),
            left: if demand.queues.is_empty() { 0 } else { demand.slots },
            asked: 0,
        });
        let demands = demands.collect();
        let id = request.id.0.to_be_bytes();
        let again = if request.resent { Bytes::copy_from_slice(&id) } else { Bytes::new() };
        Self { stem: stem(store, request), again, lease: request.lease, queues, demands }
    }

    fn is_done(&self) -> bool {
        self.demands.iter().all(|demand| demand.left == 0)
    }

    /// The next call.
    pub(crate) fn call(&mut self, store: &RedisStore) -> Call {
        let mut call = store.call(&CLAIM);
        call.number(micros(self.lease)).arg(self.stem.clone()).arg(std::mem::take(&mut self.again));
        call.number(i128::try_from(self.queues.len()).unwrap_or(0));
        for queue in &self.queues {
            let keys = Keys::of(queue);
            call.key(keys.pending()).arg(keys.prefix().to_owned());
        }
        for demand in &mut self.demands {
            let draws = demand.draw();
            call.arg(draws).number(i128::try_from(demand.queues.len().max(1)).unwrap_or(1));
        }
        call
    }
}

impl PlannedDemand {
    fn draw(&mut self) -> Bytes {
        self.asked = self.left.min(SLOTS_MAX);
        let mut draws = BytesMut::with_capacity(self.asked as usize * self.queues.len() * 2);
        for _ in 0..self.asked {
            for &at in self.lottery.draw() {
                draws.put_u16(self.queues[at]);
            }
        }
        draws.freeze()
    }

    /// So many of those asked for were served. Fewer than that: its queues are empty.
    fn served(&mut self, count: u32, poisoned: u32) {
        self.left = if count < self.asked { 0 } else { self.left - self.asked };
        self.left += if count < self.asked { poisoned.min(count) } else { poisoned };
        self.asked = 0;
    }
}

/// The beginning of a claim's tokens: its id, by which a resent claim knows them again, and chance.
fn stem(store: &RedisStore, request: &ClaimRequest) -> Bytes {
    let mut stem = BytesMut::with_capacity(12);
    stem.put_u64(request.id.0);
    stem.put_slice(&store.chance.bytes::<4>());
    stem.freeze()
}

impl RedisStore {
    /// Hands out tasks.
    pub(crate) async fn claim_for(&self, request: ClaimRequest) -> Result<ClaimReply, Error> {
        if self.link.is_cluster() {
            return self.claim_from_nodes(request).await;
        }
        let mut plan = Plan::of(self, &request, &request.demands);
        let parts = self.run(plan.call(self), Kind::Write).await?;
        self.claimed(&request, plan, parts).await
    }

    /// The plan of a claim that one call may serve; none when it needs more than one round trip anyway.
    pub(crate) fn plan(&self, request: &ClaimRequest) -> Option<Plan> {
        (!request.resent).then(|| Plan::of(self, request, &request.demands))
    }

    /// Reads what the first call gave, and goes on until every slot is filled or its queues are empty.
    pub(crate) async fn claimed(
        &self,
        request: &ClaimRequest,
        mut plan: Plan,
        mut parts: Parts,
    ) -> Result<ClaimReply, Error> {
        let mut reply = ClaimReply::default();
        let mut by_demand: Vec<(usize, TaskRecord)> = Vec::new();
        loop {
            let now = parts.at;
            let discarded = parts.number()?;
            let empty = parts.list()?;
            let claims = parts.list()?;
            if discarded < 0 {
                return self.claimed_before(request, &plan, claims).await;
            }
            reply.discarded += u32::try_from(discarded).unwrap_or(u32::MAX);
            self.arm(&plan, empty)?;
            self.wake(&plan.queues, parts.list()?)?;
            let poisoned = self.read_claims(&mut plan, claims, now, &mut by_demand)?;
            self.set_aside(poisoned).await?;
            if plan.is_done() {
                break;
            }
            plan.stem = stem(self, request);
            parts = self.run(plan.call(self), Kind::Write).await?;
        }
        // Stable: within a demand the order is that of the draws.
        by_demand.sort_by_key(|(demand, _)| *demand);
        for (demand, task) in by_demand {
            self.held.add(&task);
            reply.claims.push(Claim { pool: plan.demands[demand].pool.clone(), task });
        }
        Ok(reply)
    }

    fn read_claims(
        &self,
        plan: &mut Plan,
        mut claims: Parts,
        now: Timestamp,
        tasks: &mut Vec<(usize, TaskRecord)>,
    ) -> Result<Vec<(QueueName, Poison)>, Error> {
        let lease_until = now + plan.lease;
        let mut served = vec![(0, 0); plan.demands.len()];
        let mut poisoned = Vec::new();
        for mut claim in claims.lists()? {
            let (demand, number, _) = (claim.place()?, claim.place()?, claim.place()?);
            let shown = Shown::read_before(&mut claim)?;
            let token: [u8; 16] =
                claim.bytes()?.as_ref().try_into().map_err(|_| odd("a token has 16 bytes"))?;
            let queue =
                plan.queues.get(number.wrapping_sub(1)).ok_or_else(|| odd("a queue that was asked for"))?;
            let count = served.get_mut(demand).ok_or_else(|| odd("a demand that was made"))?;
            count.0 += 1;
            let by = Claimed { token: Token::from_bytes(token), started_at: now, lease_until };
            match shown.claimed(queue, &by) {
                Ok(task) => tasks.push((demand, task)),
                Err(poison) => {
                    count.1 += 1;
                    poisoned.push((queue.clone(), poison));
                }
            }
        }
        for (demand, (count, poison)) in plan.demands.iter_mut().zip(served) {
            demand.served(count, poison);
        }
        Ok(poisoned)
    }

    /// What a claim whose answer was lost had taken: by demand and queue, and within a queue in their old order.
    async fn claimed_before(
        &self,
        request: &ClaimRequest,
        plan: &Plan,
        mut claims: Parts,
    ) -> Result<ClaimReply, Error> {
        let mut found = Vec::new();
        let mut poisoned = Vec::new();
        for mut claim in claims.lists()? {
            let (demand, number, _token) = (claim.place()?, claim.place()?, claim.bytes()?);
            let queue =
                plan.queues.get(number.wrapping_sub(1)).ok_or_else(|| odd("a queue that was asked for"))?;
            let place = request
                .demands
                .get(demand)
                .and_then(|demand| demand.queues.iter().position(|drawn| drawn.queue == *queue));
            match Shown::read(&mut claim.list()?)?.record(queue) {
                Ok(task) => found.push(((demand, place), task)),
                Err(poison) => poisoned.push((queue.clone(), poison)),
            }
        }
        self.set_aside(poisoned).await?;
        found.sort_by_key(|(place, _)| *place);
        let claims = found.into_iter().filter_map(|((demand, _), task)| {
            self.held.add(&task);
            let pool = request.demands.get(demand)?.pool.clone();
            Some(Claim { pool, task })
        });
        Ok(ClaimReply { claims: claims.collect(), discarded: 0 })
    }

    /// These queues were found empty: whoever waits for them wants to know at once when something comes.
    fn arm(&self, plan: &Plan, mut empty: Parts) -> Result<(), Error> {
        while empty.len() > 0 {
            if let Some(queue) = plan.queues.get(empty.place()?.wrapping_sub(1)) {
                self.bells.found_empty(queue);
            }
        }
        Ok(())
    }

    /// Sets aside tasks whose message was read and could not be understood.
    pub(crate) async fn set_aside(&self, poisoned: Vec<(QueueName, Poison)>) -> Result<(), Error> {
        if poisoned.is_empty() {
            return Ok(());
        }
        for (queue, poison) in &poisoned {
            tracing::warn!(queue = %queue, task_id = poison.id, reason = poison.reason, "a task that cannot be read is set aside");
        }
        let batches = self.batches(poisoned);
        let build = |batch: &crate::store::Batch<Poison>| {
            let mut call = self.call_for(&SET_ASIDE, batch);
            for (_, number, poison) in &batch.items {
                call.number(i128::try_from(*number).unwrap_or(0)).arg(poison.id.clone());
                call.arg(poison.message.clone()).arg(poison.reason.clone());
            }
            call
        };
        self.run_all(batches, Kind::Write, build).await.map(drop)
    }

    async fn claim_from_nodes(&self, request: ClaimRequest) -> Result<ClaimReply, Error> {
        let mut reply = ClaimReply::default();
        for demand in &request.demands {
            let rounds = first_choices(demand);
            let asked: u32 = rounds.iter().map(|(_, slots)| slots).sum();
            let mut got = 0;
            let runs = rounds.into_iter().map(|(at, slots)| self.claim_of_one(&request, demand, at, slots));
            for part in futures_util::future::join_all(runs).await {
                let part = part?;
                got += u32::try_from(part.claims.len()).unwrap_or(u32::MAX);
                reply.claims.extend(part.claims);
                reply.discarded += part.discarded;
            }
            for at in 0..demand.queues.len() {
                if got >= asked {
                    break;
                }
                let part = self.claim_of_one(&request, demand, at, asked - got).await?;
                got += u32::try_from(part.claims.len()).unwrap_or(u32::MAX);
                reply.claims.extend(part.claims);
                reply.discarded += part.discarded;
            }
        }
        Ok(reply)
    }

    async fn claim_of_one(
        &self,
        request: &ClaimRequest,
        demand: &Demand,
        at: usize,
        slots: u32,
    ) -> Result<ClaimReply, Error> {
        let one = Demand { slots, queues: vec![demand.queues[at].clone()], ..demand.clone() };
        let request = ClaimRequest { demands: vec![one], ..request.clone() };
        let mut plan = Plan::of(self, &request, &request.demands);
        let parts = self.run(plan.call(self), Kind::Write).await?;
        self.claimed(&request, plan, parts).await
    }
}

/// How many slots fall to each queue of a demand by the first choice of each draw.
fn first_choices(demand: &Demand) -> Vec<(usize, u32)> {
    if demand.queues.is_empty() {
        return Vec::new();
    }
    let mut lottery = Lottery::new(demand.seed, demand.queues.iter().map(|queue| queue.weight));
    let mut counts: HashMap<usize, u32> = HashMap::new();
    for _ in 0..demand.slots.min(SLOTS_MAX) {
        *counts.entry(lottery.draw()[0]).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable();
    counts
}

fn odd(wanted: &str) -> Error {
    Error::Corrupt { what: format!("a claim's answer is odd: expected {wanted}") }
}
