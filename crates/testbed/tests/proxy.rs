//! The proxy loses, cuts, holds and refuses exactly what a test asks it to.

#![cfg(unix)]

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use poolwright_testbed::Direction::{ToClient, ToServer};
use poolwright_testbed::{Connection, Data, Error, Fault, Proxy, RedisServer, Reply};

type Outcome = Result<(), Error>;

async fn server_and_proxy() -> Result<(RedisServer, Proxy), Error> {
    let server = RedisServer::start().await?;
    let proxy = Proxy::before(&server)?;
    Ok((server, proxy))
}

async fn through(proxy: &Proxy) -> Result<Connection, Error> {
    Connection::tcp(SocketAddr::from(([127, 0, 0, 1], proxy.port()))).await
}

/// What a client sees whose connection went away.
fn is_broken(outcome: &Result<Reply, Error>) -> bool {
    let kinds = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe];
    matches!(outcome, Err(Error::Io { source, .. }) if kinds.contains(&source.kind()))
}

/// Looks for a while that there is no answer, which a busy machine cannot make untrue.
async fn nothing_comes(answer: impl Future<Output = Result<Reply, Error>>) -> bool {
    tokio::time::timeout(Duration::from_millis(50), answer).await.is_err()
}

#[tokio::test]
async fn what_passes_is_counted() -> Outcome {
    let (server, proxy) = server_and_proxy().await?;
    assert_eq!(proxy.url(), format!("redis://127.0.0.1:{}/0", proxy.port()));
    let mut client = through(&proxy).await?;
    assert_eq!(client.command(&["SET", "key", "value"]).await?, "OK");
    assert_eq!(server.command(&["GET", "key"]).await?, "value");
    let traffic = proxy.traffic();
    let sent = "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n".len() as u64;
    assert_eq!((traffic.to_server, traffic.to_client), (sent, "+OK\r\n".len() as u64));
    assert_eq!((traffic.connections, traffic.open), (1, 1));
    drop(client);
    proxy.until("the connection to end", |traffic| traffic.open == 0).await?;
    Ok(())
}

#[tokio::test]
async fn more_than_one_piece_passes_whole() -> Outcome {
    let (_server, proxy) = server_and_proxy().await?;
    let mut client = through(&proxy).await?;
    let heavy = "0123456789".repeat(100_000);
    client.command(&["SET", "key", &heavy]).await?;
    assert_eq!(client.command(&["GET", "key"]).await?, heavy.as_str());
    Ok(())
}

#[tokio::test]
async fn a_lost_reply_belongs_to_work_that_was_done() -> Outcome {
    let (server, proxy) = server_and_proxy().await?;
    let mut client = through(&proxy).await?;
    proxy.arm(Fault::LoseReply);
    assert!(is_broken(&client.command(&["INCR", "key"]).await));
    assert_eq!(server.command(&["GET", "key"]).await?, "1");
    assert_eq!(proxy.until_faults(1).await?.lost, ":1\r\n".len() as u64);
    assert_eq!(through(&proxy).await?.command(&["INCR", "key"]).await?, 2);
    Ok(())
}

#[tokio::test]
async fn the_reply_to_one_request_is_lost_among_others() -> Outcome {
    let (server, proxy) = server_and_proxy().await?;
    let (mut one, mut two) = (through(&proxy).await?, through(&proxy).await?);
    proxy.arm(Fault::LoseReplyTo(b"asynq:{q}:t:7".to_vec()));
    assert_eq!(one.command(&["INCR", "asynq:{q}:t:6"]).await?, 1);
    assert!(is_broken(&two.command(&["INCR", "asynq:{q}:t:7"]).await));
    assert_eq!(server.command(&["GET", "asynq:{q}:t:7"]).await?, "1");
    assert_eq!(one.command(&["INCR", "asynq:{q}:t:7"]).await?, 2);
    Ok(())
}

#[tokio::test]
async fn all_replies_are_lost_until_that_is_over() -> Outcome {
    let (server, proxy) = server_and_proxy().await?;
    proxy.arm(Fault::LoseReplies);
    for _ in 0..3 {
        assert!(is_broken(&through(&proxy).await?.command(&["INCR", "key"]).await));
    }
    assert_eq!(proxy.until_faults(3).await?.to_client, 0);
    assert_eq!(server.command(&["GET", "key"]).await?, "3");
    assert_eq!(proxy.disarm(), Some(Fault::LoseReplies));
    assert_eq!(through(&proxy).await?.command(&["INCR", "key"]).await?, 4);
    Ok(())
}

#[tokio::test]
async fn a_request_cut_at_any_byte_is_done_only_when_it_was_whole() -> Outcome {
    let (server, proxy) = server_and_proxy().await?;
    let whole = "*2\r\n$4\r\nINCR\r\n$3\r\nkey\r\n".len() as u64;
    for bytes in 0..whole {
        proxy.arm(Fault::CutNext(ToServer, bytes));
        let outcome = match through(&proxy).await {
            Ok(mut client) => client.command(&["INCR", "key"]).await,
            Err(error) => Err(error),
        };
        assert!(is_broken(&outcome), "{bytes}: {outcome:?}");
        assert_eq!(proxy.until_faults(bytes + 1).await?.faults, bytes + 1);
    }
    assert_eq!(server.command(&["EXISTS", "key"]).await?, 0);
    assert_eq!(proxy.traffic().to_server, (0..whole).sum::<u64>());
    Ok(())
}

#[tokio::test]
async fn a_reply_cut_at_any_byte_belongs_to_work_that_was_done() -> Outcome {
    let (server, proxy) = server_and_proxy().await?;
    for bytes in 1..":1\r\n".len() as u64 {
        proxy.arm(Fault::CutNext(ToClient, bytes));
        assert!(is_broken(&through(&proxy).await?.command(&["INCR", "key"]).await));
        assert_eq!(server.command(&["GET", "key"]).await?, bytes.to_string().as_str());
    }
    assert_eq!(proxy.until_faults(3).await?.to_client, 1 + 2 + 3);
    Ok(())
}

#[tokio::test]
async fn a_connection_that_is_there_is_cut_after_bytes_from_now_on() -> Outcome {
    let (server, proxy) = server_and_proxy().await?;
    let mut client = through(&proxy).await?;
    client.command(&["SET", "key", "value"]).await?;
    proxy.arm(Fault::CutAfter(ToServer, 5));
    assert!(is_broken(&client.command(&["DEL", "key"]).await));
    assert_eq!(server.command(&["EXISTS", "key"]).await?, 1);
    proxy.until_faults(1).await?;
    assert_eq!(through(&proxy).await?.command(&["DEL", "key"]).await?, 1);
    Ok(())
}

#[tokio::test]
async fn all_connections_are_cut_and_new_ones_taken() -> Outcome {
    let (_server, proxy) = server_and_proxy().await?;
    let (mut one, mut two) = (through(&proxy).await?, through(&proxy).await?);
    one.command(&["PING"]).await?;
    two.command(&["PING"]).await?;
    proxy.cut().await?;
    assert_eq!(proxy.traffic().open, 0);
    for client in [&mut one, &mut two] {
        assert!(is_broken(&client.command(&["PING"]).await));
    }
    assert_eq!(through(&proxy).await?.command(&["PING"]).await?, "PONG");
    Ok(())
}

#[tokio::test]
async fn connections_are_refused_while_older_ones_live() -> Outcome {
    let (_server, proxy) = server_and_proxy().await?;
    let mut old = through(&proxy).await?;
    old.command(&["PING"]).await?;
    proxy.refuse().await?;
    let refused = through(&proxy).await.err();
    assert!(
        matches!(&refused, Some(Error::Io { source, .. }) if source.kind() == io::ErrorKind::ConnectionRefused),
        "{refused:?}"
    );
    assert_eq!(old.command(&["PING"]).await?, "PONG");
    proxy.accept().await?;
    assert_eq!(through(&proxy).await?.command(&["PING"]).await?, "PONG");
    Ok(())
}

#[tokio::test]
async fn what_is_held_passes_when_it_is_released() -> Outcome {
    let (server, proxy) = server_and_proxy().await?;
    let mut client = through(&proxy).await?;
    proxy.hold();
    let mut answer = std::pin::pin!(client.command(&["INCR", "key"]));
    assert!(nothing_comes(&mut answer).await);
    assert_eq!(
        (server.command(&["EXISTS", "key"]).await?, proxy.traffic().to_server),
        (Reply::Integer(0), 0)
    );
    proxy.release();
    assert_eq!(answer.await?, 1);
    Ok(())
}

#[tokio::test]
async fn what_is_held_is_lost_when_its_connection_is_cut() -> Outcome {
    let (server, proxy) = server_and_proxy().await?;
    let mut client = through(&proxy).await?;
    client.command(&["INCR", "key"]).await?;
    proxy.hold();
    let mut answer = std::pin::pin!(client.command(&["INCR", "key"]));
    assert!(nothing_comes(&mut answer).await);
    proxy.cut().await?;
    assert!(is_broken(&answer.await));
    assert_eq!(server.command(&["GET", "key"]).await?, "1");
    Ok(())
}

#[tokio::test]
async fn a_delayed_answer_comes_late_and_whole() -> Outcome {
    let (_server, proxy) = server_and_proxy().await?;
    let mut client = through(&proxy).await?;
    proxy.delay(Duration::from_secs(3600));
    let mut answer = std::pin::pin!(client.command(&["ECHO", "value"]));
    assert!(nothing_comes(&mut answer).await);
    proxy.delay(Duration::from_millis(1));
    assert_eq!(answer.await?, "value");
    Ok(())
}

#[tokio::test]
async fn the_server_behind_may_come_and_go() -> Outcome {
    let (server, proxy) = server_and_proxy().await?;
    server.kill();
    assert!(is_broken(&through(&proxy).await?.command(&["PING"]).await));
    server.restart(Data::Lost).await?;
    assert_eq!(through(&proxy).await?.command(&["PING"]).await?, "PONG");
    Ok(())
}

#[tokio::test]
async fn a_dropped_proxy_closes_everything() -> Outcome {
    let (_server, proxy) = server_and_proxy().await?;
    let address = SocketAddr::from(([127, 0, 0, 1], proxy.port()));
    let mut client = through(&proxy).await?;
    client.command(&["PING"]).await?;
    drop(proxy);
    assert!(is_broken(&client.command(&["PING"]).await));
    assert!(Connection::tcp(address).await.is_err());
    Ok(())
}

#[test]
fn it_serves_a_test_without_a_runtime() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(RedisServer::start()).unwrap();
    let proxy = Proxy::to(SocketAddr::from(([127, 0, 0, 1], server.port()))).unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    let mut answer = [0; 7];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
}
