//! A private server does what tests ask of it, and leaves nothing behind.

#![cfg(unix)]

use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use poolwright_testbed::{Connection, Data, Error, Options, RedisServer, until};

type Outcome = Result<(), Error>;

/// Whether a process listens on the port: the system answers for one that is paused, too.
fn lives(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_ok()
}

#[tokio::test]
async fn it_answers_on_its_port_and_on_its_socket() -> Outcome {
    let server = RedisServer::start().await?;
    let mut by_port = Connection::tcp(([127, 0, 0, 1], server.port()).into()).await?;
    assert_eq!(by_port.command(&["SET", "key", "value"]).await?, "OK");
    let mut by_socket = Connection::unix(&server.socket()).await?;
    assert_eq!(by_socket.command(&["GET", "key"]).await?, "value");
    assert_eq!(server.url(), format!("redis://127.0.0.1:{}/0", server.port()));
    assert_eq!(server.unix_url(), format!("redis+unix://{}", server.socket().display()));
    Ok(())
}

#[tokio::test]
async fn two_servers_share_nothing() -> Outcome {
    let (one, two) = tokio::try_join!(RedisServer::start(), RedisServer::start())?;
    one.command(&["SET", "key", "value"]).await?;
    assert_eq!(two.command(&["DBSIZE"]).await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_restarted_server_keeps_its_data_and_its_port() -> Outcome {
    let server = RedisServer::start().await?;
    let (port, pid) = (server.port(), server.pid());
    server.command(&["SET", "key", "value"]).await?;
    server.restart(Data::Kept).await?;
    assert_eq!(server.command(&["GET", "key"]).await?, "value");
    assert!(server.port() == port && server.pid() != pid);
    server.restart(Data::Lost).await?;
    assert_eq!(server.command(&["DBSIZE"]).await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_killed_server_keeps_what_it_answered_for_if_it_appends() -> Outcome {
    for (options, kept) in [(RedisServer::options().append_only(), 1), (RedisServer::options(), 0)] {
        let server = options.start().await?;
        server.command(&["SET", "key", "value"]).await?;
        server.kill();
        assert!(matches!(server.command(&["PING"]).await, Err(Error::Io { .. })));
        assert!(matches!(server.pause(), Err(Error::Down { .. })));
        server.restart(Data::Kept).await?;
        assert_eq!(server.command(&["DBSIZE"]).await?, kept);
    }
    let server = RedisServer::options().append_only().start().await?;
    server.command(&["SET", "key", "value"]).await?;
    server.restart(Data::Lost).await?;
    assert_eq!(server.command(&["DBSIZE"]).await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_paused_server_answers_when_it_is_resumed() -> Outcome {
    let server = RedisServer::start().await?;
    let mut connection = server.connect().await?;
    server.pause()?;
    let mut ping = std::pin::pin!(connection.command(&["PING"]));
    // The socket takes the command; the bound only says how long we look that nothing comes.
    assert!(tokio::time::timeout(Duration::from_millis(50), &mut ping).await.is_err());
    server.resume()?;
    assert_eq!(ping.await?, "PONG");
    Ok(())
}

#[tokio::test]
async fn a_password_is_asked_for_and_given() -> Outcome {
    let server = RedisServer::options().password("secret").start().await?;
    assert_eq!(server.command(&["PING"]).await?, "PONG");
    assert_eq!(server.url(), format!("redis://:secret@127.0.0.1:{}/0", server.port()));
    assert!(server.unix_url().ends_with("?pass=secret"));
    let mut stranger = Connection::unix(&server.socket()).await?;
    let refused = stranger.command(&["PING"]).await.unwrap_err().to_string();
    assert!(refused.contains("NOAUTH"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn a_user_may_do_what_the_access_list_says() -> Outcome {
    let server = RedisServer::options().user("worker", "secret", "~asynq:* +get +set").start().await?;
    assert_eq!(server.url(), format!("redis://worker:secret@127.0.0.1:{}/0", server.port()));
    let mut worker = server.connect().await?;
    worker.command(&["AUTH", "worker", "secret"]).await?;
    worker.command(&["SET", "asynq:key", "value"]).await?;
    for refused in [&["SET", "other", "value"][..], &["DEL", "asynq:key"]] {
        let error = worker.command(refused).await.unwrap_err().to_string();
        assert!(error.contains("NOPERM"), "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn a_port_that_speaks_tls_proves_who_it_is() -> Outcome {
    let server = RedisServer::options().tls().start().await?;
    assert!(server.url().starts_with("rediss://127.0.0.1:"), "{}", server.url());
    let files = server.tls_files().unwrap();
    // A client that trusts the authority of another server is refused by itself.
    let other = RedisServer::options().tls().start().await?;
    for (authority, trusted) in [(files.authority, true), (other.tls_files().unwrap().authority, false)] {
        let mut client = Command::new("openssl");
        client.args(["s_client", "-quiet", "-verify_return_error", "-verify_ip", "127.0.0.1"]);
        client.args(["-connect", &format!("127.0.0.1:{}", server.port()), "-CAfile"]).arg(authority);
        let mut client =
            client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // It may have refused, and gone, before this.
        let _ = client.stdin.as_mut().unwrap().write_all(b"PING\r\nQUIT\r\n");
        let output = client.wait_with_output().unwrap();
        assert_eq!(output.stdout.starts_with(b"+PONG"), trusted);
    }
    Ok(())
}

#[tokio::test]
async fn a_full_server_refuses_writes() -> Outcome {
    let server = RedisServer::options().max_memory("2mb", "noeviction").start().await?;
    let heavy = "x".repeat(1 << 20);
    let refused =
        until("memory to be full", async || match server.command(&["APPEND", "key", &heavy]).await {
            Err(Error::Refused { message, .. }) => Ok(message),
            other => Err(format!("{other:?}")),
        });
    let refused = refused.await?;
    assert!(refused.starts_with("OOM"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn a_replica_follows_its_primary() -> Outcome {
    let primary = RedisServer::options().password("secret").start().await?;
    primary.command(&["SET", "key", "value"]).await?;
    let replica = RedisServer::options().replica_of(&primary).start().await?;
    replica.until_replicated().await?;
    assert_eq!(replica.command(&["GET", "key"]).await?, "value");
    Ok(())
}

#[tokio::test]
async fn a_configuration_that_redis_refuses_is_told_with_its_words() {
    let error = RedisServer::options().line("no-such-option yes").start().await.unwrap_err();
    assert!(matches!(&error, Error::Ended { log, .. } if log.contains("no-such-option")), "{error}");
}

#[tokio::test]
async fn a_dropped_server_is_gone_with_its_files() -> Outcome {
    let server = RedisServer::start().await?;
    let (port, dir) = (server.port(), server.dir().to_owned());
    assert!(lives(port) && dir.exists());
    drop(server);
    assert!(!lives(port) && !dir.exists());
    Ok(())
}

#[tokio::test]
async fn a_paused_server_of_a_test_that_panics_is_gone_too() {
    let server = RedisServer::start().await.unwrap();
    let (port, dir) = (server.port(), server.dir().to_owned());
    assert!(lives(port) && dir.exists());
    let test = tokio::spawn(async move {
        server.pause().unwrap();
        panic!("as a failing test does");
    });
    assert!(test.await.unwrap_err().is_panic());
    assert!(!lives(port) && !dir.exists());
}

/// Runs one test of this program in a process of its own, with a variable set.
fn alone(test: &str, name: &str, value: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test knows its own program"));
    command.args([test, "--exact", "--nocapture"]).env(name, value);
    command
}

#[tokio::test]
async fn a_missing_program_fails_the_test_and_names_the_cure() {
    const NAME: &str = "POOLWRIGHT_REDIS_SERVER";
    if std::env::var(NAME).is_ok_and(|program| program == "/no/such/redis-server") {
        RedisServer::start().await.unwrap();
    }
    let test = "a_missing_program_fails_the_test_and_names_the_cure";
    let output = alone(test, NAME, "/no/such/redis-server").output().unwrap();
    let words = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(!output.status.success() && words.contains("cargo xtask test --setup"), "{words}");
}

#[tokio::test]
async fn an_aborted_test_process_leaves_nothing_behind() -> Outcome {
    const NAME: &str = "POOLWRIGHT_TESTBED_ABORTS";
    if let Some(note) = std::env::var_os(NAME) {
        let server = RedisServer::start().await?;
        let left = format!("{}\n{}", server.port(), server.dir().display());
        std::fs::write(note, left).unwrap();
        std::process::abort();
    }
    let dir = tempfile::tempdir().unwrap();
    let note = dir.path().join("left");
    let test = "an_aborted_test_process_leaves_nothing_behind";
    assert!(!alone(test, NAME, note.to_str().unwrap()).output().unwrap().status.success());
    let left = std::fs::read_to_string(note).unwrap();
    let (port, left_dir) = left.split_once('\n').unwrap();
    let (port, left_dir) = (port.parse().unwrap(), PathBuf::from(left_dir));
    until("the warden", async || if lives(port) || left_dir.exists() { Err("still there") } else { Ok(()) })
        .await
}

#[tokio::test]
async fn many_start_at_once() -> Outcome {
    let servers = (0..20).map(|_| tokio::spawn(Options::default().start())).collect::<Vec<_>>();
    for server in servers {
        let server = server.await.unwrap()?;
        assert_eq!(server.command(&["DBSIZE"]).await?, 0);
    }
    Ok(())
}
