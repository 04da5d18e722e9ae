//! Random steps on the store in memory and the store on Redis, side by side.

mod stage;

use std::sync::Arc;

use poolwright_conformance::{ManualHarness, START, model};
use poolwright_core::clock::ManualClock;
use poolwright_core::{Chance, Timestamp};
use poolwright_store_memory::MemoryStore;
use stage::RedisHarness;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_agrees_with_the_memory_in_everything() {
    // On a whole second, since due times are whole seconds here.
    let start = Timestamp::from_secs(START.as_secs());
    for seed in 0..4 {
        let clock = ManualClock::at(start);
        let memory = MemoryStore::new(Arc::new(clock.clone()), Chance::seeded(seed));
        let redis = RedisHarness::at(seed, start).await;
        model::run(seed, 400, &ManualHarness::new(memory, clock), &redis).await;
    }
}
