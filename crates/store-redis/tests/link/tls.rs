//! Who trusts whom.

use std::path::Path;

use poolwright_store_redis::link::Link;
use poolwright_testbed::{RedisServer, TlsFiles};

use crate::{open, options, read, unfit, unreachable_now, write};

fn with(server: &RedisServer, parameters: &[(&str, &str)]) -> String {
    let query: Vec<String> = parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("{}?{}", server.url(), query.join("&"))
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

async fn tls_server() -> (RedisServer, TlsFiles) {
    let server = RedisServer::options().tls().start().await.unwrap();
    let files = server.tls_files().unwrap();
    (server, files)
}

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted() {
    let (server, files) = tls_server().await;
    let link = open(&with(&server, &[("tls_ca_file", path(&files.authority))])).await;
    assert!(link.describe().starts_with("rediss:127.0.0.1:"));
    write(&link, &["SET", "a", "1"]).await.unwrap();
    assert_eq!(read::<String>(&link, &["GET", "a"]).await, "1");
    let mut subscriber = link.pubsub().await.unwrap();
    subscriber.subscribe(b"c").await.unwrap();
    assert_eq!(read::<i64>(&link, &["PUBLISH", "c", "x"]).await, 1);
    assert_eq!(subscriber.next().await.unwrap().payload, b"x");
}

#[tokio::test]
async fn an_unknown_authority_is_refused() {
    let (server, files) = tls_server().await;
    let (_other, foreign) = tls_server().await;
    let foreign = with(&server, &[("tls_ca_file", path(&foreign.authority))]);
    let message = unfit(Link::open(&options(&foreign)).await);
    assert!(message.contains("do not agree on TLS: invalid peer certificate"), "{message}");
    let other_name = [("tls_ca_file", path(&files.authority)), ("tls_server_name", "elsewhere.example")];
    let message = unfit(Link::open(&options(&with(&server, &other_name))).await);
    assert!(message.contains("do not agree on TLS"), "{message}");
    open(&with(&server, &[("tls_ca_file", path(&files.authority)), ("tls_server_name", "localhost")])).await;
    open(&with(&server, &[("tls_insecure", "true")])).await;
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_gets_it() {
    let server = RedisServer::options().tls().line("tls-auth-clients yes").start().await.unwrap();
    let files = server.tls_files().unwrap();
    let authority = ("tls_ca_file", path(&files.authority));
    let (cert, key) = (("tls_cert_file", path(&files.certificate)), ("tls_key_file", path(&files.key)));
    let link = open(&with(&server, &[authority, cert, key])).await;
    assert_eq!(read::<String>(&link, &["PING"]).await, "PONG");
    let message = unfit(Link::open(&options(&with(&server, &[authority]))).await);
    assert!(message.contains("do not agree on TLS: received fatal alert"), "{message}");
}

#[tokio::test]
async fn files_that_will_not_do_are_named() {
    let (server, files) = tls_server().await;
    let (ca, key) = (path(&files.authority), path(&files.key));
    let cases = [
        (vec![("tls_ca_file", "/nowhere/ca.pem")], "cannot use /nowhere/ca.pem: No such file"),
        (vec![("tls_ca_file", key)], "there is no certificate in it"),
        (
            vec![("tls_cert_file", ca), ("tls_key_file", ca), ("tls_ca_file", ca)],
            "there is no private key in it",
        ),
        (
            vec![("tls_cert_file", ca), ("tls_key_file", key), ("tls_ca_file", ca)],
            "does not go with the certificate",
        ),
    ];
    for (parameters, expected) in cases {
        let message = unfit(Link::open(&options(&with(&server, &parameters))).await);
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn one_side_without_tls_is_told() {
    let (server, files) = tls_server().await;
    let plain = format!("redis://127.0.0.1:{}", server.port());
    let message = unreachable_now(Link::open(&options(&plain)).await);
    assert!(message.contains("does it want TLS?"), "{message}");
    let server = RedisServer::start().await.unwrap();
    let parameters = format!("tls_ca_file={}&connect_timeout_ms=300", path(&files.authority));
    let tls = format!("rediss://127.0.0.1:{}?{parameters}", server.port());
    let message = Link::open(&options(&tls)).await.unwrap_err().to_string();
    assert!(message.contains("TLS"), "{message}");
}
