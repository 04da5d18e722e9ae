//! The link to real servers, whole and broken.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod broken;
mod cluster;
mod fake;
mod sentinel;
mod single;
mod tls;

use poolwright_broker::Error as BrokerError;
use poolwright_store_redis::Error;
use poolwright_store_redis::link::{CallError, Kind, Link};
use poolwright_store_redis::options::RedisOptions;
use redis::{Cmd, FromRedisValue, Value};

/// A command out of its words.
fn command(words: &[&str]) -> Cmd {
    let mut cmd = redis::cmd(words[0]);
    cmd.arg(&words[1..]);
    cmd
}

/// Sends a command to the owner of its first argument.
async fn write(link: &Link, words: &[&str]) -> Result<Value, CallError> {
    link.call(words.get(1).map(|key| key.as_bytes()), command(words), Kind::Write).await
}

async fn read<T: FromRedisValue>(link: &Link, words: &[&str]) -> T {
    let value = link.call(words.get(1).map(|key| key.as_bytes()), command(words), Kind::Read).await.unwrap();
    redis::from_redis_value(value).unwrap()
}

fn options(url: &str) -> RedisOptions {
    RedisOptions::from_url(url).unwrap()
}

async fn open(url: &str) -> Link {
    Link::open(&options(url)).await.unwrap()
}

/// Why a store cannot be opened; it is of no use to try again.
#[track_caller]
fn unfit(opened: Result<Link, Error>) -> String {
    let error = opened.unwrap_err();
    assert!(matches!(BrokerError::from(error.clone()), BrokerError::Refused { .. }), "{error}");
    error.to_string()
}

/// Why a store cannot be opened now.
#[track_caller]
fn unreachable_now(opened: Result<Link, Error>) -> String {
    let error = opened.unwrap_err();
    assert!(BrokerError::from(error.clone()).is_retryable(), "{error}");
    error.to_string()
}
