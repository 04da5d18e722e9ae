//! Handing out tasks: the draws are made here, the script serves them.
//!
//! A server's scripts cannot count in 64 bits, so the lottery of the contract is drawn here, a slot a draw, and travels as
//! numbers of queues, two bytes each. A claim for very many slots is several calls.
//!
//! In a cluster each queue lies on a node of its own, see [`nodes`].

mod nodes;

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use poolwright_broker::{Claim, ClaimReply, ClaimRequest, Demand, Error, Lottery};
use poolwright_core::{PoolName, QueueName, TaskRecord, Timestamp, Token};

use crate::RedisStore;
use crate::keys::Keys;
use crate::link::Kind;
use crate::record::{Claimed, Poison, Shown};
use crate::reply::Parts;
use crate::script::{CLAIM, Call, SET_ASIDE};
use crate::shared::lease_of;
use crate::submit::micros;

/// The most slots that one call serves.
const SLOTS_MAX: u32 = 500;

/// A claim on its way: what is left to be drawn.
pub(crate) struct Plan {
    stem: Bytes,
    again: Bytes,
    lease: Duration,
    queues: Vec<QueueName>,
    /// For each queue whether Go servers work on it, too.
    shared: Vec<bool>,
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
    fn of(store: &RedisStore, request: &ClaimRequest) -> Self {
        let mut queues: Vec<QueueName> = Vec::new();
        let mut number = |name: &QueueName| {
            let known = queues.iter().position(|known| known == name);
            let at = known.unwrap_or_else(|| {
                queues.push(name.clone());
                queues.len() - 1
            });
            u16::try_from(at + 1).unwrap_or(u16::MAX)
        };
        let demands = request.demands.iter().map(|demand| PlannedDemand {
            pool: demand.pool.clone(),
            lottery: Lottery::new(demand.seed, demand.queues.iter().map(|queue| queue.weight)),
            queues: demand.queues.iter().map(|queue| number(&queue.queue)).collect(),
            left: if demand.queues.is_empty() { 0 } else { demand.slots },
            asked: 0,
        });
        let demands = demands.collect();
        let id = request.id.0.to_be_bytes();
        let again = if request.resent { Bytes::copy_from_slice(&id) } else { Bytes::new() };
        Self {
            stem: stem(store, request),
            again,
            lease: request.lease,
            shared: store.shared.among(&queues),
            queues,
            demands,
        }
    }

    /// The proof of the nth task that a demand got, as the script makes it.
    fn token(&self, demand: usize, nth: u32) -> Token {
        let mut bytes = [0; 16];
        let places = [demand / 256, demand % 256, nth as usize / 256, nth as usize % 256];
        bytes[..12].copy_from_slice(&self.stem);
        for (byte, place) in bytes[12..].iter_mut().zip(places) {
            *byte = u8::try_from(place).unwrap_or(u8::MAX);
        }
        Token::from_bytes(bytes)
    }

    fn is_done(&self) -> bool {
        self.demands.iter().all(|demand| demand.left == 0)
    }

    /// The next call.
    pub(crate) fn call(&mut self, store: &RedisStore) -> Call {
        let mut call = store.call(&CLAIM);
        call.number(micros(self.lease)).number(micros(lease_of(self.lease, true)));
        call.arg(self.stem.clone()).arg(std::mem::take(&mut self.again));
        call.number(i128::try_from(self.queues.len()).unwrap_or(0));
        for queue in &self.queues {
            let keys = Keys::of(queue);
            call.key(keys.pending()).arg(keys.prefix().to_owned());
        }
        let shared = self.shared.iter().map(|&shared| if shared { '1' } else { '0' });
        call.arg(shared.collect::<String>());
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
            return self.claim_from_nodes(&request).await;
        }
        let mut plan = Plan::of(self, &request);
        let parts = self.run(plan.call(self), Kind::Write).await?;
        self.claimed(&request, plan, parts).await
    }

    /// The plan of a claim that one call may serve; none when it needs more than one round trip anyway.
    pub(crate) fn plan(&self, request: &ClaimRequest) -> Option<Plan> {
        (!request.resent).then(|| Plan::of(self, request))
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
            if discarded < 0 {
                let found = self.claimed_before(&plan, parts.list()?).await?;
                return Ok(self.by_demand(request, found));
            }
            reply.discarded += u32::try_from(discarded).unwrap_or(u32::MAX);
            self.arm(&plan, empty)?;
            let poisoned = self.read_claims(&mut plan, &mut parts, now, &mut by_demand)?;
            self.wake(&plan.queues, parts.list()?)?;
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
        parts: &mut Parts,
        now: Timestamp,
        tasks: &mut Vec<(usize, TaskRecord)>,
    ) -> Result<Vec<(QueueName, Poison)>, Error> {
        let (mut demands, mut from) = (parts.list()?, parts.list()?);
        let (mut ids, mut bodies) = (parts.list()?.lists()?, parts.list()?);
        let mut served = vec![(0, 0); plan.demands.len()];
        let mut poisoned = Vec::new();
        while from.len() > 0 {
            let (demand, number) = (demands.place()?, from.place()?);
            let queue =
                plan.queues.get(number.wrapping_sub(1)).ok_or_else(|| odd("a queue that was asked for"))?;
            let ids = ids.get_mut(number.wrapping_sub(1)).ok_or_else(|| odd("ids of each queue"))?;
            let shown = Shown::read_before(ids.text()?, &mut bodies)?;
            let count = served.get_mut(demand).ok_or_else(|| odd("a demand that was made"))?;
            let token = plan.token(demand, count.0);
            count.0 += 1;
            let shared = plan.shared.get(number.wrapping_sub(1)).is_some_and(|&shared| shared);
            let lease_until = now + lease_of(plan.lease, shared);
            let by = Claimed { token, started_at: now, lease_until };
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

    /// What a claim whose answer was lost had taken in these queues, each with the number of its demand.
    async fn claimed_before(
        &self,
        plan: &Plan,
        mut claims: Parts,
    ) -> Result<Vec<(usize, TaskRecord)>, Error> {
        let (mut found, mut poisoned) = (Vec::new(), Vec::new());
        for mut claim in claims.lists()? {
            let (demand, number, _token) = (claim.place()?, claim.place()?, claim.bytes()?);
            let queue =
                plan.queues.get(number.wrapping_sub(1)).ok_or_else(|| odd("a queue that was asked for"))?;
            match Shown::read(&mut claim.list()?)?.record(queue) {
                Ok(task) => found.push((demand, task)),
                Err(poison) => poisoned.push((queue.clone(), poison)),
            }
        }
        self.set_aside(poisoned).await?;
        Ok(found)
    }

    /// By demand and queue, and within a queue in their old order.
    fn by_demand(&self, request: &ClaimRequest, mut found: Vec<(usize, TaskRecord)>) -> ClaimReply {
        found.sort_by_key(|(demand, task)| {
            let demanded = request.demands.get(*demand);
            let of = |demand: &Demand| demand.queues.iter().position(|drawn| drawn.queue == task.key.queue);
            (*demand, demanded.and_then(of))
        });
        let claims = found.into_iter().filter_map(|(demand, task)| {
            self.held.add(&task);
            let pool = request.demands.get(demand)?.pool.clone();
            Some(Claim { pool, task })
        });
        ClaimReply { claims: claims.collect(), discarded: 0 }
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
}

fn odd(wanted: &str) -> Error {
    Error::Corrupt { what: format!("a claim's answer is odd: expected {wanted}") }
}
