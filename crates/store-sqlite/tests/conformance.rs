//! The suite over the store on a file.

mod stage;

use poolwright_conformance::suite;
use stage::FileHarness;

async fn harness() -> FileHarness {
    FileHarness::new(1)
}

suite!(harness; durable, poison);
