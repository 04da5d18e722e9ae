//! Random steps on the store in memory and the store on a file, side by side.

mod stage;

use std::sync::Arc;

use poolwright_conformance::{ManualHarness, START, model};
use poolwright_core::Chance;
use poolwright_core::clock::ManualClock;
use poolwright_store_memory::MemoryStore;
use stage::{FileHarness, assert_consistent};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_agrees_with_the_memory_in_everything() {
    for seed in 0..4 {
        let clock = ManualClock::at(START);
        let memory = MemoryStore::new(Arc::new(clock.clone()), Chance::seeded(seed));
        let file = FileHarness::new(seed);
        model::run(seed, 400, &ManualHarness::new(memory, clock), &file).await;
        assert_consistent(&file.path());
    }
}
