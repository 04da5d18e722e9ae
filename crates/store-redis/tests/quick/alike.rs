//! The same on the store in memory: who gets which task, in which order, follows from seed, weights and what waits.

use std::sync::Arc;

use poolwright_broker::{Broker, ClaimId, ClaimReply, ClaimRequest};
use poolwright_conformance::START;
use poolwright_conformance::builders::{LEASE, complete, demand, key, queue, task};
use poolwright_core::clock::ManualClock;
use poolwright_core::{Chance, Settlement};
use poolwright_store_memory::MemoryStore;

use crate::scene::{Scene, held};

const QUEUES: [&str; 5] = ["v", "w", "x", "y", "z"];

/// Random demands of up to four pools, some of which share queues.
fn request(chance: &Chance, id: u64) -> ClaimRequest {
    let below = |bound: u64| chance.next() % bound;
    let demands = (0..=below(4)).map(|pool| {
        let mut of: Vec<_> = QUEUES
            .iter()
            .filter(|_| below(3) > 0)
            .map(|name| (*name, u32::try_from(below(9)).unwrap()))
            .collect();
        if below(2) == 0 {
            of.reverse();
        }
        demand(&format!("p{pool}"), u32::try_from(below(40)).unwrap(), &of, below(1 << 50))
    });
    ClaimRequest { id: ClaimId(id), resent: false, lease: LEASE, demands: demands.collect() }
}

fn told(reply: &ClaimReply) -> (u32, Vec<String>) {
    let one = |claim: &poolwright_broker::Claim| {
        let task = &claim.task;
        format!(
            "{} {} {:?} {:?} {:?}",
            claim.pool, task.key, task.started_at, task.lease_until, task.enqueued_at
        )
    };
    (reply.discarded, reply.claims.iter().map(one).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_by_weight_over_several_queues_give_what_the_memory_gives() {
    for seed in 0..10 {
        let s = Scene::new().await;
        let memory = MemoryStore::new(Arc::new(ManualClock::at(START)), Chance::seeded(seed));
        let stores: [Arc<dyn Broker>; 2] = [memory, s.store.clone()];
        let chance = Chance::seeded(seed);
        let below = |bound: u64| chance.next() % bound;
        for round in 0..25 {
            let of_round = |at: u64| key(QUEUES[usize::try_from(at % 5).unwrap()], &format!("{round}-{at}"));
            let batch: Vec<_> = (0..below(150))
                .map(|_| of_round(below(1 << 40)))
                .map(|key| task(key.id.as_str()).queue(key.queue.as_str()).build())
                .collect();
            let (flagged, paused) = (below(6), below(15));
            let request = request(&chance, round);
            let (order, ends) = (below(1 << 40), below(4));
            let mut answers = Vec::new();
            for store in &stores {
                for stored in store.enqueue(batch.clone()).await.unwrap() {
                    stored.unwrap();
                }
                // Some rounds have no flagged one, and are all quick.
                let flags =
                    batch.iter().take(usize::try_from(flagged).unwrap() / 3).map(|task| task.key.clone());
                store.request_cancel(flags.collect()).await.unwrap();
                if paused < 5 {
                    store.pause(queue(QUEUES[usize::try_from(paused).unwrap()]), "no".into()).await.unwrap();
                }
                let reply = store.claim(request.clone()).await.unwrap();
                answers.push(told(&reply));
                let mut held: Vec<_> = reply.claims.iter().map(|claim| held(&claim.task)).collect();
                let half = held.len() / 2;
                held.rotate_left(usize::try_from(order).unwrap() % (half + 1));
                let end = |at: usize| {
                    if ends == 0 && at.is_multiple_of(3) { Settlement::Release } else { complete() }
                };
                let settlements =
                    held.into_iter().take(half + 1).enumerate().map(|(at, held)| (held, end(at)));
                let ended = store.settle(settlements.collect()).await.unwrap();
                answers.last_mut().unwrap().1.extend(ended.iter().map(|one| format!("{one:?}")));
                if paused < 5 {
                    store.resume(queue(QUEUES[usize::try_from(paused).unwrap()])).await.unwrap();
                }
                for name in QUEUES {
                    let mut stats = store.queue_stats(vec![queue(name)]).await.unwrap();
                    let text = format!("{:?}", stats.remove(0));
                    answers.last_mut().unwrap().1.push(text);
                }
            }
            assert_eq!(answers[0], answers[1], "seed {seed}, round {round}: {request:?}");
        }
    }
}
