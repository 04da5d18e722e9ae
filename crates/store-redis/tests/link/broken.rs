//! One server behind a bad line, or away.

use std::time::Duration;

use poolwright_store_redis::link::{Kind, Link};
use poolwright_testbed::{Data, Direction, Fault, Proxy, RedisServer, until};
use redis::Value;

use crate::fake::{Fake, bulk};
use crate::{command, open, read, write};

#[tokio::test]
async fn a_lost_reply_is_unavailable_and_the_command_is_not_sent_again() {
    let server = RedisServer::start().await.unwrap();
    let proxy = Proxy::before(&server).unwrap();
    let link = open(proxy.url()).await;
    proxy.arm(Fault::LoseReplyTo(b"INCR".to_vec()));
    let error = write(&link, &["INCR", "n"]).await.unwrap_err();
    assert!(error.broker().is_retryable() && !error.certainly_not_executed(), "{error}");
    assert!(error.to_string().contains("the connection to redis at 127.0.0.1"), "{error}");
    assert_eq!(read::<i64>(&link, &["GET", "n"]).await, 1, "the next call works, the last one was done once");
    assert_eq!(link.epoch(), 1);
}

#[tokio::test]
async fn a_connection_that_is_cut_while_idle_is_replaced_by_the_next_call() {
    let server = RedisServer::start().await.unwrap();
    let proxy = Proxy::before(&server).unwrap();
    let link = open(proxy.url()).await;
    for round in 1..=3 {
        proxy.cut().await.unwrap();
        // Whether the end is seen before the call or by it depends on who is quicker.
        until("a call that works", async || write(&link, &["INCR", "n"]).await).await.unwrap();
        assert_eq!(link.epoch(), round);
    }
}

#[tokio::test]
async fn a_command_that_is_cut_on_its_way_is_unavailable() {
    let server = RedisServer::start().await.unwrap();
    let proxy = Proxy::before(&server).unwrap();
    let link = open(proxy.url()).await;
    proxy.arm(Fault::CutAfter(Direction::ToServer, 10));
    let error = write(&link, &["SET", "a", "1"]).await.unwrap_err();
    assert!(error.broker().is_retryable() && !error.certainly_not_executed(), "{error}");
    assert_eq!(read::<i64>(&link, &["EXISTS", "a"]).await, 0);
}

#[tokio::test]
async fn a_late_reply_is_never_given_to_another_caller() {
    let server = RedisServer::start().await.unwrap();
    let link = open(&format!("{}?op_timeout_ms=200", server.url())).await;
    for key in ["a", "b"] {
        write(&link, &["SET", key, key]).await.unwrap();
    }
    server.pause().unwrap();
    let error = link.call(Some(b"a"), command(&["GET", "a"]), Kind::Read).await.unwrap_err();
    assert!(error.to_string().contains("did not answer within 200 ms"), "{error}");
    // A caller that goes away leaves its reply behind, too.
    let dropped = tokio::spawn({
        let link = link.clone();
        async move { link.call(Some(b"a"), command(&["GET", "a"]), Kind::Write).await }
    });
    tokio::task::yield_now().await;
    dropped.abort();
    server.resume().unwrap();
    let answer = until("an answer", async || link.call(None, command(&["GET", "b"]), Kind::Read).await);
    assert_eq!(answer.await.unwrap(), Value::BulkString(b"b".to_vec()));
    assert_eq!(link.epoch(), 0, "it is still the same connection");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_are_dropped_at_any_moment_disturb_nobody() {
    let server = RedisServer::start().await.unwrap();
    let link = open(&server.url()).await;
    let mut calls = Vec::new();
    for at in 0..2_000_u32 {
        let link = link.clone();
        let call = tokio::spawn(async move {
            let word = at.to_string();
            (word.clone(), link.call(None, command(&["ECHO", &word]), Kind::Write).await)
        });
        if at % 3 == 0 {
            call.abort();
        }
        if at % 7 == 0 {
            tokio::task::yield_now().await;
        }
        calls.push(call);
    }
    let mut answered = 0;
    for call in calls {
        if let Ok((word, answer)) = call.await {
            assert_eq!(answer.unwrap(), Value::BulkString(word.into_bytes()));
            answered += 1;
        }
    }
    assert!(answered >= 1_333, "{answered}");
}

#[tokio::test]
async fn a_server_that_is_away_is_told_at_once_and_found_again() {
    let server = RedisServer::start().await.unwrap();
    let link = open(&server.url()).await;
    server.kill();
    for _ in 0..100 {
        let error = write(&link, &["SET", "a", "1"]).await.unwrap_err();
        assert!(error.broker().is_retryable(), "{error}");
    }
    let error = write(&link, &["SET", "a", "1"]).await.unwrap_err();
    assert!(error.certainly_not_executed() && error.to_string().contains("Connection refused"), "{error}");
    server.restart(Data::Lost).await.unwrap();
    until("the link to come back", async || write(&link, &["SET", "a", "1"]).await).await.unwrap();
    assert_eq!(link.epoch(), 1);
}

#[tokio::test]
async fn attempts_to_connect_are_shared_and_grow_rarer() {
    // It greets and passes the check, and ends every connection at the first command.
    let slammer = Fake::start(|asked| match asked {
        text if text.contains("INFO") => bulk("redis_version:7.0.0\r\nrole:master\r\n"),
        text if text.contains("GET") => String::new(),
        _ => "+OK\r\n".to_owned(),
    })
    .await;
    let link = open(&format!("{}?backoff_min_ms=20&backoff_max_ms=60000", slammer.url())).await;
    let hammer = || async {
        let mut refused = 0_u32;
        while slammer.connections() < 5 {
            let error = link.call(None, command(&["GET", "a"]), Kind::Read).await.unwrap_err();
            refused += u32::from(error.to_string().contains("no new attempt yet"));
            tokio::task::yield_now().await;
        }
        refused
    };
    let (one, two, three) = tokio::join!(hammer(), hammer(), hammer());
    let refused = one + two + three;
    assert!(refused > 100, "callers are told at once while nobody may connect: {refused}");
    assert!(slammer.connections() <= 6, "{}", slammer.connections());
}

#[tokio::test]
async fn a_line_that_went_silent_is_given_up() {
    let server = RedisServer::start().await.unwrap();
    let proxy = Proxy::before(&server).unwrap();
    let parameters = "op_timeout_ms=100&silence_max_ms=300&connect_timeout_ms=1000&backoff_max_ms=50";
    let link = open(&format!("{}?{parameters}", proxy.url())).await;
    proxy.hold();
    until("the old connection to be given up", async || {
        let error = write(&link, &["INCR", "n"]).await.unwrap_err();
        assert!(error.broker().is_retryable(), "{error}");
        if error.certainly_not_executed() { Ok(()) } else { Err(error) }
    })
    .await
    .unwrap();
    proxy.release();
    until("the link to come back", async || write(&link, &["INCR", "n"]).await).await.unwrap();
    assert_eq!(link.epoch(), 1);
}

#[tokio::test]
async fn connections_beside_the_shared_one_end_with_the_line() {
    let server = RedisServer::start().await.unwrap();
    let proxy = Proxy::before(&server).unwrap();
    let link = open(proxy.url()).await;
    let waiter = link.dedicated(b"list").await.unwrap();
    let mut subscriber = link.pubsub().await.unwrap();
    subscriber.subscribe(b"c").await.unwrap();
    let wait = async { waiter.call(&command(&["BLPOP", "list", "0"]), None).await };
    let cut = async {
        until("a client that blocks", async || {
            let clients = server.command(&["INFO", "clients"]).await.map_err(|e| e.to_string())?;
            if clients.line("blocked_clients") == Some("1") { Ok(()) } else { Err("none".to_owned()) }
        })
        .await
        .unwrap();
        proxy.cut().await.unwrap();
    };
    let (waited, ()) = tokio::join!(wait, cut);
    assert!(waited.unwrap_err().broker().is_retryable() && waiter.is_closed());
    assert_eq!(subscriber.next().await, None);
}

#[tokio::test]
async fn a_wait_ends_on_the_server_when_its_connection_is_dropped() {
    let server = RedisServer::start().await.unwrap();
    let link = open(&server.url()).await;
    let blocked = async |expected: &str| {
        until("clients to block or not", async || {
            let clients = server.command(&["INFO", "clients"]).await.map_err(|e| e.to_string())?;
            if clients.line("blocked_clients") == Some(expected) { Ok(()) } else { Err("not yet".to_owned()) }
        })
        .await
        .unwrap();
    };
    let waiter = link.dedicated(b"list").await.unwrap();
    let wait = tokio::spawn(async move { waiter.call(&command(&["BLPOP", "list", "0"]), None).await });
    blocked("1").await;
    wait.abort();
    blocked("0").await;
}

#[tokio::test]
async fn a_subscriber_ends_when_the_link_has_another_connection() {
    let server = RedisServer::start().await.unwrap();
    let link = open(&server.url()).await;
    let mut subscriber = link.pubsub().await.unwrap();
    subscriber.subscribe(b"c").await.unwrap();
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]).await.unwrap();
    until("the link to come back", async || write(&link, &["INCR", "n"]).await).await.unwrap();
    assert_eq!(subscriber.next().await, None);
}

#[tokio::test]
async fn a_call_of_an_older_epoch_is_not_made() {
    let server = RedisServer::start().await.unwrap();
    let link = open(&server.url()).await;
    let epoch = link.epoch();
    link.call_in(epoch, Some(b"n"), command(&["INCR", "n"]), Kind::Write).await.unwrap();
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]).await.unwrap();
    // The first may meet the end of the old connection, then the new one.
    let error = until("a refusal", async || {
        let answer = link.call_in(epoch, Some(b"n"), command(&["INCR", "n"]), Kind::Write).await;
        answer.err().filter(|error| error.certainly_not_executed()).ok_or("not yet")
    });
    assert!(error.await.unwrap().to_string().contains("is a new one"));
    assert_eq!(read::<i64>(&link, &["GET", "n"]).await, 1);
}

#[tokio::test]
async fn a_server_that_becomes_a_replica_and_a_primary_again_is_noticed() {
    let server = RedisServer::start().await.unwrap();
    let other = RedisServer::start().await.unwrap();
    let link = open(&format!("{}?backoff_max_ms=100", server.url())).await;
    server.command(&["REPLICAOF", "127.0.0.1", &other.port().to_string()]).await.unwrap();
    // In between it may be loading what the other one has.
    let error = until("the link to look whom it speaks to", async || {
        let error = write(&link, &["SET", "a", "1"]).await.unwrap_err();
        assert!(error.broker().is_retryable() && error.certainly_not_executed(), "{error}");
        if error.to_string().contains("is a replica: name") { Ok(error) } else { Err(error) }
    });
    assert_eq!(error.await.unwrap().code(), Some("READONLY"));
    server.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
    until("the link to come back", async || write(&link, &["SET", "a", "1"]).await).await.unwrap();
    assert_eq!(link.epoch(), 1);
}

#[test]
fn a_connection_lives_on_the_runtime_of_its_store_whoever_calls() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (home, away) = (runtime(), runtime());
    let server = home.block_on(RedisServer::start()).unwrap();
    let link: Link = home.block_on(open(&server.url()));
    away.block_on(async {
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]).await.unwrap();
        until("the link to come back", async || write(&link, &["SET", "a", "1"]).await).await.unwrap();
    });
    assert_eq!(link.epoch(), 1);
    away.shutdown_timeout(Duration::from_secs(10));
    home.block_on(async {
        assert_eq!(read::<String>(&link, &["GET", "a"]).await, "1");
        assert_eq!(link.epoch(), 1);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_is_not_polled_again_holds_nobody_up() {
    let server = RedisServer::start().await.unwrap();
    let link = open(&format!("{}?spin_max_us=10000", server.url())).await;
    let elsewhere = link.clone();
    let (stands_still, stood) = tokio::sync::oneshot::channel();
    let (go_on, goes_on) = std::sync::mpsc::channel();
    let caller = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            // One call after another, so that it looks for the answer itself.
            for _ in 0..10 {
                write(&elsewhere, &["INCR", "n"]).await.unwrap();
            }
            let mut last = std::pin::pin!(write(&elsewhere, &["INCR", "n"]));
            let first = std::future::poll_fn(|cx| std::task::Poll::Ready(last.as_mut().poll(cx))).await;
            stands_still.send(()).unwrap();
            // Its thread does something else for a long time.
            goes_on.recv().unwrap();
            match first {
                std::task::Poll::Ready(answer) => answer,
                std::task::Poll::Pending => last.await,
            }
        })
    });
    stood.await.unwrap();
    for _ in 0..10 {
        write(&link, &["INCR", "m"]).await.unwrap();
    }
    go_on.send(()).unwrap();
    assert_eq!(caller.join().unwrap().unwrap(), Value::Int(11));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_find_their_callers_however_these_wait_for_them() {
    let server = RedisServer::start().await.unwrap();
    for spin_us in [0, 20, 10_000] {
        let link = open(&format!("{}?spin_max_us={spin_us}", server.url())).await;
        let callers = (0..4).map(|caller| {
            let link = link.clone();
            // Half of them on runtimes of their own.
            let calls = async move {
                for n in 0..300 {
                    let said = format!("{caller} {n}");
                    let told: Value = write(&link, &["ECHO", &said]).await.unwrap();
                    assert_eq!(told, Value::BulkString(said.into_bytes()));
                }
            };
            if caller % 2 == 0 {
                return tokio::spawn(calls);
            }
            tokio::task::spawn_blocking(|| {
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(calls);
            })
        });
        for caller in callers.collect::<Vec<_>>() {
            caller.await.unwrap();
        }
    }
}
