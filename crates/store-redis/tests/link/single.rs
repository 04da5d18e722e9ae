//! One server in good order, and one that will not do.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use poolwright_store_redis::link::{Kind, Link};
use poolwright_testbed::{RedisSentinels, RedisServer};
use redis::{Pipeline, Value};

use crate::fake::{Fake, bulk};
use crate::{command, open, options, read, unfit, unreachable_now, write};

#[tokio::test]
async fn commands_are_answered_and_errors_stay_with_theirs() {
    let server = RedisServer::start().await.unwrap();
    let link = open(&server.url()).await;
    assert_eq!(link.describe(), format!("redis:127.0.0.1:{}/0", server.port()));
    assert!(!link.is_cluster() && link.epoch() == 0);
    write(&link, &["SET", "a", "1"]).await.unwrap();
    assert_eq!(read::<String>(&link, &["GET", "a"]).await, "1");

    let mut pipeline = Pipeline::new();
    pipeline.cmd("INCR").arg("a").cmd("LPUSH").arg("a").arg("x").cmd("INCR").arg("a");
    let answers = link.pipeline(Some(b"a"), pipeline, Kind::Write).await.unwrap();
    assert_eq!((&answers[0], &answers[2]), (&Ok(Value::Int(2)), &Ok(Value::Int(3))));
    let error = answers[1].clone().unwrap_err();
    assert_eq!((error.code(), error.broker().is_retryable()), (Some("WRONGTYPE"), false));
    assert!(link.pipeline(None, Pipeline::new(), Kind::Read).await.unwrap().is_empty());

    let error = link.call(None, command(&["EVALSHA", "00", "0"]), Kind::Write).await.unwrap_err();
    assert!(error.is_noscript() && error.certainly_not_executed());
}

#[tokio::test]
async fn a_socket_and_a_database_are_used() {
    let server = RedisServer::options().password("pw").start().await.unwrap();
    let link = open(&format!("redis-socket://:pw@{}?db=3", server.socket().display())).await;
    write(&link, &["SET", "a", "1"]).await.unwrap();
    let keyspace = server.command(&["INFO", "keyspace"]).await.unwrap();
    assert!(keyspace.line("db3").is_some(), "{keyspace:?}");
    assert_eq!(read::<i64>(&open(&server.unix_url()).await, &["EXISTS", "a"]).await, 0);
    let message = unfit(Link::open(&options(&format!("redis://:pw@127.0.0.1:{}/99", server.port()))).await);
    assert!(message.contains("no database of this number"), "{message}");
}

#[tokio::test]
async fn a_wrong_or_missing_password_is_refused_with_the_cure() {
    let server = RedisServer::options().password("right").start().await.unwrap();
    let at = format!("127.0.0.1:{}", server.port());
    let message = unfit(Link::open(&options(&format!("redis://{at}"))).await);
    assert!(message.contains(&at) && message.contains("wants a password"), "{message}");
    let message = unfit(Link::open(&options(&format!("redis://:wr0ng@{at}"))).await);
    assert!(message.contains("refuses the user or the password") && !message.contains("wr0ng"), "{message}");

    let open_door = RedisServer::start().await.unwrap();
    let message = unfit(Link::open(&options(&format!("redis://:pw@127.0.0.1:{}", open_door.port()))).await);
    assert!(message.contains("take it away"), "{message}");
}

#[tokio::test]
async fn a_user_needs_no_right_to_see_the_server() {
    let rules = "~* &* +@all -@dangerous -del";
    let server = RedisServer::options().user("worker", "pw", rules).start().await.unwrap();
    let link = open(&server.url()).await;
    write(&link, &["SET", "a", "1"]).await.unwrap();
    let error = write(&link, &["DEL", "a"]).await.unwrap_err();
    assert!(error.to_string().contains("ACL SETUSER") && error.certainly_not_executed(), "{error}");
}

#[tokio::test]
async fn an_old_server_is_refused() {
    let old = Fake::start(|asked| match asked {
        text if text.contains("INFO") => {
            bulk("# Server\r\nredis_version:6.0.16\r\nredis_mode:standalone\r\nrole:master\r\n")
        }
        _ => "+OK\r\n".to_owned(),
    })
    .await;
    let message = unfit(Link::open(&options(&old.url())).await);
    let expected =
        format!("redis at 127.0.0.1:{} is Redis 6.0.16; Redis 6.2 or later is needed, or Valkey", old.port);
    assert_eq!(message, expected);
}

#[tokio::test]
async fn a_server_of_another_kind_is_refused() {
    let primary = RedisServer::start().await.unwrap();
    let replica = RedisServer::options().replica_of(&primary).start().await.unwrap();
    replica.until_replicated().await.unwrap();
    let message = unfit(Link::open(&options(&replica.url())).await);
    assert!(message.contains("is a replica: name its primary"), "{message}");

    let message = unfit(Link::open(&options(&format!("redis-cluster://127.0.0.1:{}", primary.port()))).await);
    assert!(message.contains("is no node of a cluster: write redis://"), "{message}");
    let message =
        unfit(Link::open(&options(&format!("redis-sentinel://127.0.0.1:{}?master=m", primary.port()))).await);
    assert!(message.contains("is no sentinel"), "{message}");

    let group = RedisSentinels::start().await.unwrap();
    let message = unfit(Link::open(&options(&group.sentinels()[0].url())).await);
    assert!(message.contains("is a sentinel: write redis-sentinel://"), "{message}");

    let web = Fake::start(|_| "HTTP/1.1 400 Bad Request\r\n\r\n".to_owned()).await;
    let message = unfit(Link::open(&options(&web.url())).await);
    assert!(message.contains("does not speak the protocol of Redis"), "{message}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_at_once() {
    let server = RedisServer::start().await.unwrap();
    server.kill();
    let message = unreachable_now(Link::open(&options(&server.url())).await);
    assert!(message.contains("cannot be reached: Connection refused"), "{message}");
    let message = unreachable_now(Link::open(&options(&Fake::slamming().await.url())).await);
    assert!(message.contains("closed the connection at once"), "{message}");
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_server_that_evicts_is_warned_about() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let good = RedisServer::options().max_memory("100mb", "noeviction").start().await.unwrap();
    open(&good.url()).await;
    assert_eq!(log.0.lock().unwrap().len(), 0);
    let server = RedisServer::options().max_memory("100mb", "allkeys-lru").start().await.unwrap();
    open(&server.url()).await;
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("WARN") && logged.contains("maxmemory_policy=\"allkeys-lru\""), "{logged}");
}

#[tokio::test]
async fn a_full_server_is_unavailable() {
    let server = RedisServer::options().max_memory("1mb", "noeviction").start().await.unwrap();
    let link = open(&server.url()).await;
    let large = "x".repeat(1 << 21);
    let error = loop {
        if let Err(error) = write(&link, &["APPEND", "a", &large]).await {
            break error;
        }
    };
    assert!(error.broker().is_retryable() && error.certainly_not_executed(), "{error}");
    assert!(error.to_string().contains("has no room"), "{error}");
    assert_eq!(read::<i64>(&link, &["STRLEN", "b"]).await, 0, "reads go on");
}

#[tokio::test]
async fn a_server_that_runs_a_script_for_too_long_is_unavailable() {
    let server = RedisServer::options().line("busy-reply-threshold 20").start().await.unwrap();
    let link = open(&server.url()).await;
    let mut other = server.connect().await.unwrap();
    let script = tokio::spawn(async move { other.command(&["EVAL", "while true do end", "0"]).await });
    let error = poolwright_testbed::until("the server to say that it is busy", async || {
        let answer = link.call(None, command(&["PING"]), Kind::Read).await;
        answer.err().filter(|error| error.code() == Some("BUSY")).ok_or("not busy")
    });
    let error = error.await.unwrap();
    assert!(error.broker().is_retryable() && error.to_string().contains("SCRIPT KILL"), "{error}");
    server.command(&["SCRIPT", "KILL"]).await.unwrap();
    assert!(script.await.unwrap().is_err());
    assert_eq!(read::<String>(&link, &["PING"]).await, "PONG");
}

#[tokio::test]
async fn a_wait_on_a_connection_of_ones_own_outlives_every_limit() {
    let server = RedisServer::start().await.unwrap();
    let link = open(&format!("{}?op_timeout_ms=100", server.url())).await;
    let waiter = link.dedicated(b"list").await.unwrap();
    let wait =
        async { waiter.call(&command(&["BLMOVE", "list", "list", "RIGHT", "RIGHT", "0"]), None).await };
    let push = async {
        // It ends by its own limit, after those of reads and writes have long passed.
        let other = link.dedicated(b"none").await.unwrap();
        let limit = Some(Duration::from_millis(400));
        let error = other.call(&command(&["BLPOP", "none", "0"]), limit).await.unwrap_err();
        assert!(error.broker().is_retryable() && error.to_string().contains("within 400 ms"), "{error}");
        server.command(&["LPUSH", "list", "x"]).await.unwrap();
    };
    let (moved, ()) = tokio::join!(wait, push);
    assert_eq!(moved.unwrap(), Value::BulkString(b"x".to_vec()));
}

#[tokio::test]
async fn what_is_published_comes_to_the_subscriber() {
    let server = RedisServer::start().await.unwrap();
    let link = open(&server.url()).await;
    let mut subscriber = link.pubsub().await.unwrap();
    subscriber.subscribe(b"asynq:cancel").await.unwrap();
    assert_eq!(read::<i64>(&link, &["PUBLISH", "asynq:cancel", "t1"]).await, 1);
    let published = subscriber.next().await.unwrap();
    assert_eq!(
        (published.channel.as_slice(), published.payload.as_slice()),
        (&b"asynq:cancel"[..], &b"t1"[..])
    );
}

#[tokio::test]
async fn a_closed_link_refuses() {
    let server = RedisServer::start().await.unwrap();
    let link = open(&server.url()).await;
    link.clone().close();
    let error = write(&link, &["SET", "a", "1"]).await.unwrap_err();
    assert!(error.to_string().contains("the store is closed") && error.certainly_not_executed());
    assert!(!error.broker().is_retryable());
    assert!(link.dedicated(b"a").await.is_err() && link.pubsub().await.is_err());
}
