//! The model test over two stores in memory that differ in nothing but chance: what it compares must not depend on the
//! tokens, or it would accuse every store of its own luck.

use std::sync::Arc;

use poolwright_conformance::{ManualHarness, START, model};
use poolwright_core::Chance;
use poolwright_core::clock::ManualClock;
use poolwright_store_memory::MemoryStore;

fn harness(chance: u64) -> ManualHarness {
    let clock = ManualClock::at(START);
    ManualHarness::new(MemoryStore::new(Arc::new(clock.clone()), Chance::seeded(chance)), clock)
}

#[tokio::test]
async fn two_stores_with_other_tokens_agree_in_everything() {
    for seed in 0..8 {
        model::run(seed, 400, &harness(seed), &harness(seed + 1_000)).await;
    }
}
