//! The suite over a cluster of three primaries, each with a replica.

mod stage;

use poolwright_conformance::{START, suite};
use stage::RedisHarness;
use stage::servers::Servers;

async fn harness() -> RedisHarness {
    RedisHarness::on(Servers::cluster().await, 1, START).await
}

suite!(harness; durable, poison);
