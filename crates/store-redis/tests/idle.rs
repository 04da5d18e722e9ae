//! What it costs while Redis is away. Alone in its process, so that the time it uses is its own.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;

use poolwright_store_redis::link::{Kind, Link};
use poolwright_store_redis::options::RedisOptions;
use poolwright_testbed::{RedisServer, until};

/// The processor time of this process so far, in ticks of 10 ms.
fn ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // The name of the program, in parentheses, may have spaces.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[tokio::test]
async fn a_server_that_is_away_costs_next_to_nothing() {
    let server = RedisServer::start().await.unwrap();
    let link = Link::open(&RedisOptions::from_url(&server.url()).unwrap()).await.unwrap();
    let mut subscriber = link.pubsub().await.unwrap();
    server.kill();
    assert_eq!(subscriber.next().await, None);
    let before = ticks();
    // A worker looks now and then, here about every 20 ms; each 100 looks are about two seconds.
    let mut looks = 0_u32;
    until("a hundred looks", || {
        looks += 1;
        let (link, is_last) = (&link, looks == 100);
        async move {
            let error = link.call(None, redis::cmd("PING"), Kind::Read).await.unwrap_err();
            assert!(error.certainly_not_executed() || !is_last, "{error}");
            link.pubsub().await.map(drop).unwrap_err();
            if is_last { Ok(()) } else { Err("not yet") }
        }
    })
    .await
    .unwrap();
    let used = ticks() - before;
    assert!(used <= 4, "{used} ticks of 10 ms in two seconds are more than 2 % of a processor");
}
