//! Holds many tasks at once, and finishes some of them: the store without a worker, ten results a call.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use clap::Args;
use poolwright_broker::{ClaimId, ClaimRequest, Demand, Dispatch as _, Held, WeightedQueue};
use poolwright_core::{Chance, PoolName, QueueName, Settlement};
use poolwright_store_redis::{RedisOptions, RedisStore};

use super::QUEUE;
use super::stage::{self, Orders};
use crate::load::Order;

/// Results that a call carries. A busy worker's calls carry more, an idle one's fewer.
const RESULTS: usize = 10;

/// Tasks of one claim.
const CLAIMED_MAX: usize = 500;

/// Longer than the measurement takes, so that no lease is extended meanwhile.
const LEASE: Duration = Duration::from_secs(600);

/// How many are held, and how many of them are finished.
#[derive(Debug, Clone, Args)]
pub(crate) struct Hold {
    #[arg(long)]
    redis: String,
    #[arg(long)]
    workers: usize,
    #[arg(long)]
    tasks: usize,
    #[arg(long)]
    order: Order,
}

impl Hold {
    pub(super) async fn play(self) -> Result<()> {
        let mut orders = Orders::listen();
        let store = RedisStore::open(RedisOptions::from_url(&self.redis)?).await?;
        let chance = Chance::from_entropy();
        orders.ready().await?;
        let mut held = Vec::with_capacity(self.workers);
        while held.len() < self.workers {
            let slots = CLAIMED_MAX.min(self.workers - held.len());
            let claims = store.claim(request(slots, &chance)?).await?.claims;
            ensure!(!claims.is_empty(), "expected {} tasks to hold, found {}", self.workers, held.len());
            held.extend(claims.iter().filter_map(|claim| Held::of(&claim.task)));
        }
        stage::say("held");
        orders.next().await;
        if self.order == Order::Random {
            for last in (1..held.len()).rev() {
                let other = usize::try_from(chance.next() % (last as u64 + 1))?;
                held.swap(last, other);
            }
        }
        held.truncate(self.tasks);
        let began = Instant::now();
        for some in held.chunks(RESULTS) {
            let complete = || Settlement::Complete { retain_for: Duration::ZERO, result: None };
            let settlements = some.iter().map(|held| (held.clone(), complete())).collect();
            for outcome in store.settle(settlements).await? {
                outcome?;
            }
        }
        stage::done(began.elapsed());
        orders.end().await;
        Ok(())
    }
}

fn request(slots: usize, chance: &Chance) -> Result<ClaimRequest> {
    let queue = WeightedQueue { queue: QueueName::new(QUEUE)?, weight: 1 };
    let (pool, slots) = (PoolName::new(QUEUE)?, u32::try_from(slots)?);
    let demands = vec![Demand { pool, slots, queues: vec![queue], seed: 0 }];
    Ok(ClaimRequest { id: ClaimId::fresh(chance), resent: false, lease: LEASE, demands })
}
