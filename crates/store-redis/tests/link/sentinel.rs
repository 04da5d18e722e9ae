//! A primary that sentinels replace.

use poolwright_store_redis::link::Link;
use poolwright_testbed::{RedisSentinels, RedisServer, until};

use crate::fake::{Fake, bulk};
use crate::{command, open, options, read, unfit, unreachable_now, write};

fn url(group: &RedisSentinels, parameters: &str) -> String {
    let addresses: Vec<String> = group.addresses().iter().map(ToString::to_string).collect();
    format!("redis-sentinel://{}?master={}&{parameters}", addresses.join(","), group.master_name())
}

async fn port(link: &Link) -> u16 {
    let ports: Vec<String> = read(link, &["CONFIG", "GET", "port"]).await;
    ports[1].parse().unwrap()
}

#[tokio::test]
async fn a_failover_is_followed() {
    let group = RedisSentinels::start().await.unwrap();
    let link = open(&url(&group, "backoff_max_ms=100")).await;
    write(&link, &["SET", "a", "1"]).await.unwrap();
    write(&link, &["WAIT", "1", "0"]).await.unwrap();
    let mut subscriber = link.pubsub().await.unwrap();
    subscriber.subscribe(b"c").await.unwrap();
    let old = group.kill_primary().await.unwrap();
    assert!(write(&link, &["SET", "a", "2"]).await.unwrap_err().broker().is_retryable());
    let new = group.until_failed_over(old).await.unwrap();
    until("the link to follow", async || write(&link, &["SET", "b", "1"]).await).await.unwrap();
    assert_eq!(port(&link).await, new.port());
    assert_eq!(read::<String>(&link, &["GET", "a"]).await, "1");
    assert!(link.epoch() >= 1);
    assert_eq!(subscriber.next().await, None);
    let waiter = link.dedicated(b"list").await.unwrap();
    write(&link, &["LPUSH", "list", "x"]).await.unwrap();
    waiter.call(&command(&["BLMOVE", "list", "list", "RIGHT", "RIGHT", "0"]), None).await.unwrap();
}

#[tokio::test]
async fn a_primary_that_hangs_is_left_and_not_believed_when_it_comes_back() {
    let group = RedisSentinels::start().await.unwrap();
    let link =
        open(&url(&group, "op_timeout_ms=200&silence_max_ms=400&connect_timeout_ms=1000&backoff_max_ms=100"))
            .await;
    write(&link, &["SET", "a", "1"]).await.unwrap();
    let old = group.primary().await.unwrap();
    old.pause().unwrap();
    let new = group.until_failed_over(old).await.unwrap();
    until("the link to follow", async || write(&link, &["SET", "b", "1"]).await).await.unwrap();
    assert_eq!(port(&link).await, new.port());
    old.resume().unwrap();
    group.until_whole().await.unwrap();
    write(&link, &["SET", "c", "1"]).await.unwrap();
    assert_eq!(port(&link).await, new.port());
}

#[tokio::test]
async fn a_sentinel_that_is_away_is_passed_over() {
    let group = RedisSentinels::start().await.unwrap();
    group.sentinels()[0].kill();
    let link = open(&url(&group, "")).await;
    assert!(link.describe().starts_with("redis-sentinel:poolwright@127.0.0.1:"));
    write(&link, &["SET", "a", "1"]).await.unwrap();
}

#[tokio::test]
async fn what_sentinels_do_not_know_is_told() {
    let group = RedisSentinels::start().await.unwrap();
    let addresses: Vec<String> = group.addresses().iter().map(ToString::to_string).collect();
    let wrong = format!("redis-sentinel://{}?master=main", addresses.join(","));
    let message = unfit(Link::open(&options(&wrong)).await);
    assert!(message.contains("no sentinel names a primary `main`"), "{message}");
    for sentinel in group.sentinels() {
        sentinel.kill();
    }
    let message = unreachable_now(Link::open(&options(&url(&group, ""))).await);
    assert!(message.contains("Connection refused"), "{message}");
}

#[tokio::test]
async fn the_passwords_of_sentinels_and_of_the_data_are_two() {
    let primary = RedisServer::options().password("data").start().await.unwrap();
    let port = primary.port().to_string();
    let sentinel = Fake::start(move |asked| match asked {
        text if text.contains("AUTH") && text.contains("guard") => "+OK\r\n".to_owned(),
        text if text.contains("AUTH") => "-WRONGPASS no\r\n".to_owned(),
        text if text.contains("SENTINEL") => format!("*2\r\n$9\r\n127.0.0.1\r\n{}", bulk(&port)),
        _ => "+OK\r\n".to_owned(),
    })
    .await;
    let url = |login: &str, node: &str| {
        format!("redis-sentinel://{login}127.0.0.1:{}?master=main&node_password={node}", sentinel.port)
    };
    let link = open(&url(":guard@", "data")).await;
    write(&link, &["SET", "a", "1"]).await.unwrap();
    let message = unfit(Link::open(&options(&url(":guard@", "wrong"))).await);
    assert!(message.contains(&format!("redis at 127.0.0.1:{}", primary.port())), "{message}");
    let message = unfit(Link::open(&options(&url(":data@", "data"))).await);
    assert!(message.contains(&format!("sentinel at 127.0.0.1:{}", sentinel.port)), "{message}");
}
