//! Slots that move, and primaries that are replaced.

use poolwright_store_redis::link::{Kind, Link};
use poolwright_testbed::{RedisCluster, RedisServer, until};
use redis::{Pipeline, Value};

use crate::{command, open, options, read, unfit, write};

fn url(cluster: &RedisCluster, parameters: &str) -> String {
    // One seed is enough, and another one may be dead.
    format!("redis-cluster://127.0.0.1:1,127.0.0.1:{}?{parameters}", cluster.nodes()[0].port())
}

async fn slot(server: &RedisServer, key: &str) -> String {
    server.command(&["CLUSTER", "KEYSLOT", key]).await.unwrap().integer().unwrap().to_string()
}

async fn id(server: &RedisServer) -> String {
    server.command(&["CLUSTER", "MYID"]).await.unwrap().text().unwrap().to_owned()
}

/// A primary that does not own the key.
async fn another<'c>(cluster: &'c RedisCluster, key: &str) -> &'c RedisServer {
    let owner = cluster.owner(key).await.unwrap();
    for node in cluster.nodes() {
        let role = node.command(&["INFO", "replication"]).await.unwrap();
        if node.port() != owner.port() && role.line("role") == Some("master") {
            return node;
        }
    }
    panic!("there is one primary only");
}

#[tokio::test]
async fn every_key_goes_to_its_owner() {
    let cluster = RedisCluster::start().await.unwrap();
    let link = open(&url(&cluster, "")).await;
    assert!(link.is_cluster() && link.describe().starts_with("redis-cluster:127.0.0.1:1,"));
    for at in 0..100 {
        let key = format!("asynq:{{q{at}}}:t");
        write(&link, &["SET", &key, "1"]).await.unwrap();
        let mut pipeline = Pipeline::new();
        pipeline.cmd("INCR").arg(&key).cmd("INCR").arg(format!("asynq:{{q{at}}}:u"));
        let answers = link.pipeline(Some(key.as_bytes()), pipeline, Kind::Write).await.unwrap();
        assert_eq!(answers, [Ok(Value::Int(2)), Ok(Value::Int(1))]);
    }
    assert_eq!(link.epoch(), 0, "a connection that is only the first is no news");
    let waiter = link.dedicated(b"{q7}").await.unwrap();
    write(&link, &["LPUSH", "{q7}", "x"]).await.unwrap();
    waiter.call(&command(&["BLMOVE", "{q7}", "{q7}", "RIGHT", "RIGHT", "0"]), None).await.unwrap();
    let error = write(&link, &["MSET", "{q1}", "x", "{q2}", "y"]).await.unwrap_err();
    assert!(error.to_string().contains("several slots"), "{error}");
    link.close();
    assert!(write(&link, &["SET", "a", "1"]).await.unwrap_err().to_string().contains("is closed"));
}

#[tokio::test]
async fn what_is_published_anywhere_comes() {
    let cluster = RedisCluster::start().await.unwrap();
    let link = open(&url(&cluster, "")).await;
    let mut subscriber = link.pubsub().await.unwrap();
    subscriber.subscribe(b"asynq:cancel").await.unwrap();
    for at in 0..cluster.nodes().len() {
        let id = at.to_string();
        link.call(None, command(&["PUBLISH", "asynq:cancel", &id]), Kind::Write).await.unwrap();
        assert_eq!(subscriber.next().await.unwrap().payload, id.as_bytes());
    }
}

#[tokio::test]
async fn redirections_are_followed_while_a_slot_moves_and_after() {
    let cluster = RedisCluster::start().await.unwrap();
    let link = open(&url(&cluster, "")).await;
    write(&link, &["SET", "{q}:old", "1"]).await.unwrap();
    let (from, to) = (cluster.owner("{q}").await.unwrap(), another(&cluster, "{q}").await);
    let slot = slot(from, "{q}").await;
    let (from_id, to_id) = (id(from).await, id(to).await);
    to.command(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]).await.unwrap();
    from.command(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]).await.unwrap();

    // Keys that are still there are answered, others are asked for at the new place.
    assert_eq!(read::<String>(&link, &["GET", "{q}:old"]).await, "1");
    write(&link, &["SET", "{q}:new", "2"]).await.unwrap();
    let mut pipeline = Pipeline::new();
    for key in ["{q}:old", "{q}:new", "{q}:old", "{q}:third"] {
        pipeline.cmd("INCR").arg(key);
    }
    let answers = link.pipeline(Some(b"{q}"), pipeline, Kind::Write).await.unwrap();
    assert_eq!(answers, [2, 3, 3, 1].map(|n| Ok(Value::Int(n))));
    let error = write(&link, &["MSET", "{q}:old", "1", "{q}:new", "1"]).await.unwrap_err();
    assert!(error.code() == Some("TRYAGAIN") && error.certainly_not_executed(), "{error}");

    let port = to.port().to_string();
    from.command(&["MIGRATE", "127.0.0.1", &port, "{q}:old", "0", "5000"]).await.unwrap();
    for node in [to, from] {
        node.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]).await.unwrap();
    }
    let mut pipeline = Pipeline::new();
    pipeline.cmd("INCR").arg("{q}:old").cmd("INCR").arg("{q}:new");
    let answers = link.pipeline(Some(b"{q}"), pipeline, Kind::Write).await.unwrap();
    assert_eq!(answers, [Ok(Value::Int(4)), Ok(Value::Int(4))]);
    assert_eq!(read::<i64>(&link, &["GET", "{q}:third"]).await, 1);
}

#[tokio::test]
async fn a_slot_that_moved_is_no_failover() {
    let cluster = RedisCluster::start().await.unwrap();
    let link = open(&url(&cluster, "")).await;
    write(&link, &["INCR", "{q}"]).await.unwrap();
    let (from, to) = (cluster.owner("{q}").await.unwrap(), another(&cluster, "{q}").await);
    from.command(&["DEL", "{q}"]).await.unwrap();
    let (slot, to_id) = (slot(from, "{q}").await, id(to).await);
    for node in [to, from] {
        node.command(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]).await.unwrap();
    }
    let answer = link.call_in(link.epoch(), Some(b"{q}"), command(&["INCR", "{q}"]), Kind::Write).await;
    assert_eq!(answer.unwrap(), Value::Int(1));
    assert_eq!(link.epoch(), 0);
}

#[tokio::test]
async fn a_failover_is_followed() {
    let cluster = RedisCluster::start().await.unwrap();
    let link = open(&url(&cluster, "backoff_max_ms=100")).await;
    write(&link, &["SET", "{q}", "1"]).await.unwrap();
    link.call(Some(b"{q}"), command(&["WAIT", "1", "0"]), Kind::Write).await.unwrap();
    let epoch = link.epoch();
    let old = cluster.kill_owner("{q}").await.unwrap();
    let error = write(&link, &["SET", "{q}", "2"]).await.unwrap_err();
    assert!(error.broker().is_retryable(), "{error}");
    let new = cluster.until_failed_over("{q}", old).await.unwrap();
    until("the link to follow", async || write(&link, &["APPEND", "{q}", "x"]).await).await.unwrap();
    assert_eq!(new.command(&["GET", "{q}"]).await.unwrap(), "1x");
    assert!(link.epoch() > epoch);
    let waiter = link.dedicated(b"{q}").await.unwrap();
    waiter.call(&command(&["GET", "{q}"]), None).await.unwrap();
}

#[tokio::test]
async fn a_primary_that_hangs_is_left_and_not_believed_when_it_comes_back() {
    let cluster = RedisCluster::start().await.unwrap();
    let parameters = "op_timeout_ms=200&silence_max_ms=400&connect_timeout_ms=1000&backoff_max_ms=100";
    let link = open(&url(&cluster, parameters)).await;
    write(&link, &["SET", "{q}", "1"]).await.unwrap();
    let (epoch, old) = (link.epoch(), cluster.owner("{q}").await.unwrap());
    old.pause().unwrap();
    let new = cluster.until_failed_over("{q}", old).await.unwrap();
    until("the link to follow", async || write(&link, &["SET", "{q}", "2"]).await).await.unwrap();
    assert!(link.epoch() > epoch);
    old.resume().unwrap();
    cluster.until_whole().await.unwrap();
    assert_eq!(read::<String>(&link, &["GET", "{q}"]).await, "2");
    assert_eq!(new.command(&["GET", "{q}"]).await.unwrap(), "2");
}

#[tokio::test]
async fn a_failover_by_hand_is_noticed_before_the_first_command() {
    let cluster = RedisCluster::start().await.unwrap();
    let link = open(&url(&cluster, "")).await;
    write(&link, &["INCR", "{q}"]).await.unwrap();
    let (epoch, old) = (link.epoch(), cluster.owner("{q}").await.unwrap());
    let replica = replica_of(&cluster, old).await;
    replica.command(&["CLUSTER", "FAILOVER"]).await.unwrap();
    cluster.until_failed_over("{q}", old).await.unwrap();
    let error = until("a refusal", async || {
        let answer = link.call_in(epoch, Some(b"{q}"), command(&["INCR", "{q}"]), Kind::Write).await;
        answer.err().filter(|error| error.certainly_not_executed()).ok_or("not yet")
    });
    assert!(error.await.unwrap().to_string().contains("is a new one"));
    assert_eq!(replica.command(&["GET", "{q}"]).await.unwrap(), "1");
    until("a call", async || write(&link, &["INCR", "{q}"]).await).await.unwrap();
}

async fn replica_of<'c>(cluster: &'c RedisCluster, primary: &RedisServer) -> &'c RedisServer {
    let port = primary.port().to_string();
    for node in cluster.nodes() {
        let replication = node.command(&["INFO", "replication"]).await.unwrap();
        if replication.line("master_port") == Some(port.as_str()) {
            return node;
        }
    }
    panic!("{primary} has no replica");
}

#[tokio::test]
async fn a_node_of_a_cluster_is_no_single_server() {
    let cluster = RedisCluster::start().await.unwrap();
    let message = unfit(Link::open(&options(&cluster.nodes()[0].url())).await);
    assert!(message.contains("is a node of a cluster: write redis-cluster://"), "{message}");
}

#[tokio::test]
async fn a_cluster_may_speak_tls() {
    // Nodes have to trust each other, so all have the certificate of one server that is there only for it.
    let lender = RedisServer::options().tls().start().await.unwrap();
    let files = lender.tls_files().unwrap();
    let [authority, certificate, key] =
        [&files.authority, &files.certificate, &files.key].map(|path| path.display());
    let nodes = RedisServer::options().tls().line("tls-cluster yes").line("tls-replication yes");
    let nodes = nodes.line(&format!("tls-ca-cert-file {authority}"));
    let nodes = nodes.line(&format!("tls-cert-file {certificate}")).line(&format!("tls-key-file {key}"));
    let cluster = RedisCluster::start_with(nodes).await.unwrap();
    let seed = cluster.nodes()[0].port();
    let link = open(&format!("rediss-cluster://127.0.0.1:{seed}?tls_ca_file={authority}")).await;
    for at in 0..20 {
        write(&link, &["SET", &format!("{{q{at}}}"), "1"]).await.unwrap();
    }
}
