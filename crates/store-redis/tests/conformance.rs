//! The suite over the store on Redis.

mod stage;

use poolwright_conformance::suite;
use stage::RedisHarness;

async fn harness() -> RedisHarness {
    RedisHarness::new(1).await
}

suite!(harness; durable, poison);
