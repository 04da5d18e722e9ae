//! Private Redis servers for tests: each test starts its own, breaks it as it likes, and leaves nothing behind.
//!
//! ```no_run
//! # async fn a_test() -> Result<(), poolwright_testbed::Error> {
//! use poolwright_testbed::{Data, RedisServer};
//!
//! let server = RedisServer::options().append_only().start().await?;
//! server.command(&["SET", "key", "value"]).await?;
//! server.restart(Data::Kept).await?;
//! assert_eq!(server.command(&["GET", "key"]).await?, "value");
//! # Ok(())
//! # }
//! ```
//!
//! A server costs some milliseconds, so there is none to share: a test that flushes, kills or pauses its server
//! disturbs no other. Nothing here works under tokio's paused time, since a real server keeps real time.
//!
//! Invariant: what this crate started ends with the value that stands for it, and at the latest with this process.

#![cfg(unix)]

mod cluster;
mod connection;
mod error;
mod options;
mod port;
mod process;
mod proxy;
mod reply;
mod sentinel;
mod server;
mod tls;
mod wait;
mod warden;

pub use cluster::RedisCluster;
pub use connection::Connection;
pub use error::Error;
pub use options::Options;
pub use proxy::{Direction, Fault, Proxy, Traffic};
pub use reply::Reply;
pub use sentinel::RedisSentinels;
pub use server::{Data, RedisServer};
pub use tls::TlsFiles;
pub use wait::until;
