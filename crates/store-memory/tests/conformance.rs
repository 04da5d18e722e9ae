//! The suite over the store in memory.

use std::sync::Arc;

use poolwright_conformance::{ManualHarness, START, suite};
use poolwright_core::Chance;
use poolwright_core::clock::ManualClock;
use poolwright_store_memory::MemoryStore;

async fn harness() -> ManualHarness {
    let clock = ManualClock::at(START);
    ManualHarness::new(MemoryStore::new(Arc::new(clock.clone()), Chance::seeded(1)), clock)
}

suite!(harness);
