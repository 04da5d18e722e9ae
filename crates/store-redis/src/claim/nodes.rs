//! Claims in a cluster, where no script sees two queues.
//!
//! Of each draw the first choice is asked for, all queues at once. A queue that had less than was asked of it is empty from then
//! on; the draws are gone through again with that knowledge, and what they want beyond what is there already is asked for
//! in the next round. A claim that finds enough everywhere is one round.
//!
//! Invariant: once no queue changes meanwhile, each slot goes to the queue to which one script would have given it.

use std::collections::VecDeque;

use futures_util::future::join_all;
use poolwright_broker::{Claim, ClaimReply, ClaimRequest, Demand, Error, Lottery};
use poolwright_core::TaskRecord;

use super::Plan;
use crate::RedisStore;
use crate::link::Kind;

/// The most slots that one demand gets at once; more than any process has workers.
const SLOTS_MAX: u32 = 100_000;

/// What is known of a queue during a claim.
#[derive(Default)]
struct Known {
    /// Claimed already, in order.
    tasks: VecDeque<TaskRecord>,
    is_empty: bool,
}

impl RedisStore {
    pub(super) async fn claim_from_nodes(&self, request: &ClaimRequest) -> Result<ClaimReply, Error> {
        if request.resent {
            let found = self.claimed_before_on_nodes(request).await?;
            if !found.is_empty() {
                return Ok(self.by_demand(request, found));
            }
        }
        let mut reply = ClaimReply::default();
        // A later demand gets what an earlier one leaves, so those that share queues come one after the other.
        let parts = if share_queues(&request.demands) {
            let mut parts = Vec::with_capacity(request.demands.len());
            for at in 0..request.demands.len() {
                parts.push(self.claim_for_demand(request, at).await);
            }
            parts
        } else {
            join_all((0..request.demands.len()).map(|at| self.claim_for_demand(request, at))).await
        };
        for (part, demand) in parts.into_iter().zip(&request.demands) {
            let (tasks, discarded) = part?;
            reply.discarded += discarded;
            for task in tasks {
                self.held.add(&task);
                reply.claims.push(Claim { pool: demand.pool.clone(), task });
            }
        }
        Ok(reply)
    }

    async fn claim_for_demand(
        &self,
        request: &ClaimRequest,
        at: usize,
    ) -> Result<(Vec<TaskRecord>, u32), Error> {
        let demand = &request.demands[at];
        let mut known: Vec<Known> = demand.queues.iter().map(|_| Known::default()).collect();
        let mut discarded = 0;
        loop {
            let (_, wanted) = go_through(demand, &known);
            let asks: Vec<_> = wanted
                .iter()
                .zip(&known)
                .map(|(want, known)| {
                    want.saturating_sub(u32::try_from(known.tasks.len()).unwrap_or(u32::MAX))
                })
                .enumerate()
                .filter(|(queue, more)| *more > 0 && !known[*queue].is_empty)
                .collect();
            if asks.is_empty() {
                break;
            }
            let round = asks.iter().map(|&(queue, more)| self.claim_of_one(request, at, queue, more));
            for (&(queue, more), got) in asks.iter().zip(join_all(round).await) {
                let got = got?;
                discarded += got.discarded;
                known[queue].is_empty = got.claims.len() < more as usize;
                known[queue].tasks.extend(got.claims.into_iter().map(|claim| claim.task));
            }
        }
        let (order, _) = go_through(demand, &known);
        let tasks = order.into_iter().filter_map(|queue| known[queue].tasks.pop_front()).collect();
        Ok((tasks, discarded))
    }

    async fn claim_of_one(
        &self,
        request: &ClaimRequest,
        at: usize,
        queue: usize,
        slots: u32,
    ) -> Result<ClaimReply, Error> {
        let request = ClaimRequest { resent: false, ..one_queue(request, at, queue, slots) };
        let mut plan = Plan::of(self, &request);
        let parts = self.run(plan.call(self), Kind::Write).await?;
        self.claimed(&request, plan, parts).await
    }

    async fn claimed_before_on_nodes(
        &self,
        request: &ClaimRequest,
    ) -> Result<Vec<(usize, TaskRecord)>, Error> {
        let mut queues: Vec<_> = request.demands.iter().flat_map(|demand| &demand.queues).collect();
        queues.sort_by(|a, b| a.queue.cmp(&b.queue));
        queues.dedup_by(|a, b| a.queue == b.queue);
        let looks = queues.into_iter().map(|drawn| async {
            let demand = Demand { slots: 0, queues: vec![drawn.clone()], ..request.demands[0].clone() };
            let request = ClaimRequest { demands: vec![demand], ..request.clone() };
            let mut plan = Plan::of(self, &request);
            let mut parts = self.run(plan.call(self), Kind::Write).await?;
            if parts.number()? >= 0 {
                return Ok(Vec::new());
            }
            let (_empty, claims) = (parts.list()?, parts.list()?);
            self.claimed_before(&plan, claims).await
        });
        let found: Result<Vec<_>, Error> = join_all(looks).await.into_iter().collect();
        Ok(found?.into_iter().flatten().collect())
    }
}

/// A claim for one queue of one demand. The demands before it stay, without slots: a token names its demand by number.
fn one_queue(request: &ClaimRequest, at: usize, queue: usize, slots: u32) -> ClaimRequest {
    let none = |demand: &Demand| Demand { slots: 0, queues: Vec::new(), ..demand.clone() };
    let mut demands: Vec<_> = request.demands[..at].iter().map(none).collect();
    let demand = &request.demands[at];
    demands.push(Demand { slots, queues: vec![demand.queues[queue].clone()], ..demand.clone() });
    ClaimRequest { demands, ..request.clone() }
}

/// Gives each slot to the first queue of its draw that has something, as far as is known: the queues in the order of the slots,
/// and how many of each. A queue that was not found empty is taken to have enough.
fn go_through(demand: &Demand, known: &[Known]) -> (Vec<usize>, Vec<u32>) {
    let mut lottery = Lottery::new(demand.seed, demand.queues.iter().map(|queue| queue.weight));
    let (mut order, mut wanted) = (Vec::new(), vec![0; known.len()]);
    for _ in 0..demand.slots.min(SLOTS_MAX) {
        let has = |queue: &&usize| {
            let known = &known[**queue];
            !known.is_empty || (wanted[**queue] as usize) < known.tasks.len()
        };
        let Some(&queue) = lottery.draw().iter().find(has) else { break };
        wanted[queue] += 1;
        order.push(queue);
    }
    (order, wanted)
}

fn share_queues(demands: &[Demand]) -> bool {
    let mut queues: Vec<_> =
        demands.iter().flat_map(|demand| &demand.queues).map(|drawn| &drawn.queue).collect();
    queues.sort_unstable();
    queues.windows(2).any(|pair| pair[0] == pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolwright_broker::WeightedQueue;
    use poolwright_core::{PoolName, QueueName};

    fn demand(slots: u32, weights: &[u32]) -> Demand {
        let queues = weights.iter().enumerate().map(|(at, weight)| WeightedQueue {
            queue: QueueName::new(format!("q{at}")).unwrap(),
            weight: *weight,
        });
        Demand { pool: PoolName::new("p").unwrap(), slots, queues: queues.collect(), seed: 7 }
    }

    #[test]
    fn an_empty_queues_slots_go_to_the_others() {
        let demand = demand(10, &[1_000, 1]);
        let unknown = [Known::default(), Known::default()];
        assert_eq!(go_through(&demand, &unknown).1, [10, 0]);
        let empty = [Known { is_empty: true, ..Known::default() }, Known::default()];
        assert_eq!(go_through(&demand, &empty).1, [0, 10]);
    }

    #[test]
    fn demands_that_share_a_queue_are_seen() {
        let (one, mut two) = (demand(1, &[1]), demand(1, &[1, 1]));
        assert!(share_queues(&[one.clone(), two.clone()]));
        two.queues.remove(0);
        assert!(!share_queues(&[one, two]));
    }
}
