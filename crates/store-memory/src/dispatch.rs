//! [`Dispatch`]: claims by lottery, and what holders of leases may do.

use std::time::Duration;

use bytes::Bytes;
use poolwright_broker::{
    Claim, ClaimReply, ClaimRequest, Demand, Dispatch, Error, Exchanged, Extension, Held, Lottery, Reply,
    Settled,
};
use poolwright_core::{Chance, Settlement, Timestamp};

use crate::MemoryStore;
use crate::state::{Claimant, Content, Queue};

impl Dispatch for MemoryStore {
    fn claim(&self, request: ClaimRequest) -> Reply<'_, ClaimReply> {
        self.step(move |content, now| claim(content, &request, &self.chance, now))
    }

    fn extend(&self, held: Vec<Held>, lease: Duration) -> Reply<'_, Vec<Extension>> {
        self.step(move |content, now| {
            let answers = held.iter().map(|Held { key, token }| match content.queues.get_mut(&key.queue) {
                Some(queue) => queue.extend(&key.id, *token, now + lease),
                None => Extension::Lost,
            });
            answers.collect()
        })
    }

    fn settle(&self, settlements: Vec<(Held, Settlement)>) -> Reply<'_, Vec<Result<Settled, Error>>> {
        self.step(move |content, now| settle(content, settlements, now))
    }

    fn exchange(&self, settlements: Vec<(Held, Settlement)>, request: ClaimRequest) -> Reply<'_, Exchanged> {
        self.step(move |content, now| {
            let outcomes = settle(content, settlements, now);
            Exchanged { outcomes, claimed: Ok(claim(content, &request, &self.chance, now)) }
        })
    }

    fn store_result(&self, held: Held, result: Bytes) -> Reply<'_, ()> {
        self.try_step(move |content, _| {
            queue_of(content, &held)?.store_result(&held.key.id, held.token, result)
        })
    }

    fn progress(&self, held: Held, done: f64, note: String) -> Reply<'_, ()> {
        self.try_step(move |content, now| {
            queue_of(content, &held)?.progress(&held.key.id, held.token, done, &note, now)
        })
    }
}

fn settle(
    content: &mut Content,
    settlements: Vec<(Held, Settlement)>,
    now: Timestamp,
) -> Vec<Result<Settled, Error>> {
    let outcomes = settlements.into_iter().map(|(held, settlement)| {
        let queue = queue_of(content, &held)?;
        let state = queue.settle(&held.key.id, held.token, settlement, now)?;
        Ok(Settled { state, at: now })
    });
    outcomes.collect()
}

fn claim(content: &mut Content, request: &ClaimRequest, chance: &Chance, now: Timestamp) -> ClaimReply {
    if request.resent {
        let claims = claimed_before(content, request);
        if !claims.is_empty() {
            return ClaimReply { claims, discarded: 0 };
        }
    }
    let mut reply = ClaimReply::default();
    for demand in &request.demands {
        let by = Claimant { claim: request.id, pool: &demand.pool, lease: request.lease, chance };
        serve(content, demand, &by, now, &mut reply);
    }
    reply
}

fn queue_of<'a>(content: &'a mut Content, held: &Held) -> Result<&'a mut Queue, Error> {
    content.queues.get_mut(&held.key.queue).ok_or_else(|| Error::NotFound { key: held.key.clone() })
}

/// What is left of a claim whose reply was lost: demand by demand, queue by queue as the demand names them.
fn claimed_before(content: &Content, request: &ClaimRequest) -> Vec<Claim> {
    let mut claims: Vec<_> =
        content.queues.values().flat_map(|queue| queue.claimed_under(request.id)).collect();
    claims.sort_by_key(|(turn, claim)| {
        let nth = request.demands.iter().position(|demand| demand.pool == claim.pool);
        let queue = &claim.task.key.queue;
        let queues = nth.and_then(|nth| request.demands.get(nth)).map(|demand| &demand.queues);
        let nth_queue = queues.and_then(|queues| queues.iter().position(|drawn| drawn.queue == *queue));
        (nth, nth_queue, *turn)
    });
    claims.into_iter().map(|(_, claim)| claim).collect()
}

/// Serves one demand: a draw for each slot, until a draw meets only empty or paused queues.
fn serve(content: &mut Content, demand: &Demand, by: &Claimant<'_>, now: Timestamp, reply: &mut ClaimReply) {
    let mut lottery = Lottery::new(demand.seed, demand.queues.iter().map(|queue| queue.weight));
    for _ in 0..demand.slots {
        let turn = content.next_turn();
        let found = lottery.draw().iter().find_map(|&at| {
            let queue = content.queues.get_mut(&demand.queues[at].queue)?;
            queue.claim(by, turn, now, &mut reply.discarded)
        });
        match found {
            Some(task) => reply.claims.push(Claim { pool: by.pool.clone(), task }),
            None => break,
        }
    }
}
