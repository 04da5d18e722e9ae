//! The suite over a primary that sentinels know.

mod stage;

use poolwright_conformance::{START, suite};
use stage::RedisHarness;
use stage::servers::Servers;

async fn harness() -> RedisHarness {
    RedisHarness::on(Servers::sentinels().await, 1, START).await
}

suite!(harness; durable, poison);
