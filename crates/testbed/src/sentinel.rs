//! A primary, its replicas and the sentinels that put one of them in its place.
//!
//! Invariant: a group that was returned is ready to fail over: every sentinel knows the other two and every replica.

use std::net::{Ipv4Addr, SocketAddr};

use crate::error::Error;
use crate::options::{Kind, Options};
use crate::reply::Reply;
use crate::server::RedisServer;
use crate::wait;

const SENTINELS: usize = 3;
const QUORUM: usize = 2;

/// The name by which sentinels know the primary.
const NAME: &str = "poolwright";

/// After so long without an answer, a sentinel takes a server for dead. Less, and a busy machine kills.
const DOWN_AFTER_MS: u32 = 1000;

/// A failover that has not come to its end after so long begins anew.
const FAILOVER_MS: u32 = 3000;

/// How often sentinels look, where they let themselves be told (Redis 7).
///
/// They ask replicas of a dead primary for their state once a second, and promote none of which they know nothing
/// newer than five pings, or three such questions: so neither may be much more frequent. Two pings come within the
/// time after which a server is taken for dead, or a sentinel that connects anew doubts it again. And a machine that
/// stops for a moment is no reason for them to do nothing for half a minute.
const HASTE: [(&str, &str); 5] = [
    ("PING-PERIOD", "450"),
    ("INFO-PERIOD", "1000"),
    ("ASK-PERIOD", "100"),
    ("PUBLISH-PERIOD", "100"),
    ("TILT-TRIGGER", "20000"),
];

/// One primary, one or more replicas, three sentinels.
#[derive(Debug)]
pub struct RedisSentinels {
    sentinels: Vec<RedisServer>,
    servers: Vec<RedisServer>,
}

impl RedisSentinels {
    /// Starts a primary with one replica, and its sentinels.
    ///
    /// # Errors
    /// As [`Options::start`]; `Overdue` when they do not come to agree.
    pub async fn start() -> Result<Self, Error> {
        Self::start_with(1).await
    }

    /// Starts a primary with so many replicas, and its sentinels.
    ///
    /// # Errors
    /// As `start`.
    pub async fn start_with(replicas: usize) -> Result<Self, Error> {
        let primary = RedisServer::start().await?;
        let (follower, watcher) = (Options::default().replica_of(&primary), watcher(&primary));
        let mut servers = vec![primary];
        for _ in 0..replicas {
            let replica = follower.clone().start().await?;
            replica.until_replicated().await?;
            servers.push(replica);
        }
        let mut sentinels = Vec::new();
        for _ in 0..SENTINELS {
            let sentinel = watcher.clone().start().await?;
            hasten(&sentinel).await?;
            sentinels.push(sentinel);
        }
        let group = Self { sentinels, servers };
        group.until_whole().await?;
        Ok(group)
    }

    /// The name of the primary, for clients that ask a sentinel for it.
    #[must_use]
    pub fn master_name(&self) -> &'static str {
        NAME
    }

    /// The sentinels themselves.
    #[must_use]
    pub fn sentinels(&self) -> &[RedisServer] {
        &self.sentinels
    }

    /// Where the sentinels listen.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let address = |sentinel: &RedisServer| SocketAddr::from((Ipv4Addr::LOCALHOST, sentinel.port()));
        self.sentinels.iter().map(address).collect()
    }

    /// The servers, killed ones too; the primary of the beginning first.
    #[must_use]
    pub fn servers(&self) -> &[RedisServer] {
        &self.servers
    }

    /// The primary on which all running sentinels agree.
    ///
    /// # Errors
    /// `Overdue` when they do not.
    pub async fn primary(&self) -> Result<&RedisServer, Error> {
        wait::until("the sentinels to name a primary", async || self.named().await).await
    }

    /// Kills the primary, and returns it.
    ///
    /// # Errors
    /// As `primary`.
    pub async fn kill_primary(&self) -> Result<&RedisServer, Error> {
        let primary = self.primary().await?;
        primary.kill();
        Ok(primary)
    }

    /// Waits until all running sentinels name another primary than `old` and the other servers follow that one, and
    /// returns it.
    ///
    /// # Errors
    /// `Overdue` when nobody takes over.
    pub async fn until_failed_over(&self, old: &RedisServer) -> Result<&RedisServer, Error> {
        wait::until(format!("a replica to take over from {old}"), async || {
            let primary = self.named().await?;
            if primary.port() == old.port() {
                return Err("the sentinels still name the old one".to_owned());
            }
            self.check_followers(primary).await?;
            Ok(primary)
        })
        .await
    }

    /// Waits until the group is ready to fail over; for after a restart of one of it.
    ///
    /// # Errors
    /// `Overdue` with what is missing.
    pub async fn until_whole(&self) -> Result<(), Error> {
        wait::until("the sentinels to be ready", async || {
            self.check_followers(self.named().await?).await?;
            for sentinel in running(&self.sentinels) {
                self.check_sentinel(sentinel).await?;
            }
            Ok::<(), String>(())
        })
        .await
    }

    async fn named(&self) -> Result<&RedisServer, String> {
        let mut named = None;
        for sentinel in running(&self.sentinels) {
            let address = ask(sentinel, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]).await?;
            let port = address.items().get(1).and_then(Reply::integer);
            if named.replace(port).is_some_and(|other| other != port) {
                return Err("the sentinels name different ones".to_owned());
            }
        }
        let port = named.flatten().ok_or("no sentinel names one")?;
        let server = self.servers.iter().find(|server| i64::from(server.port()) == port);
        server.ok_or_else(|| format!("they name port {port}, which is none of ours"))
    }

    /// Whether the primary is one, and all others that run follow it.
    async fn check_followers(&self, primary: &RedisServer) -> Result<(), String> {
        for server in running(&self.servers) {
            let info = ask(server, &["INFO", "replication"]).await?;
            let word = |name| info.line(name).unwrap_or_default();
            if server.port() == primary.port() {
                if word("role") != "master" {
                    return Err(format!("{server} is named, and no primary yet"));
                }
            } else if word("master_port") != primary.port().to_string() || word("master_link_status") != "up"
            {
                return Err(format!("{server} does not follow {primary} yet"));
            }
        }
        Ok(())
    }

    /// Whether a sentinel sees all others, and all running replicas in a state in which it would promote them.
    async fn check_sentinel(&self, sentinel: &RedisServer) -> Result<(), String> {
        let primary = ask(sentinel, &["SENTINEL", "MASTER", NAME]).await?;
        let word = |name| primary.field(name).and_then(Reply::text).unwrap_or_default();
        let others = running(&self.sentinels).count() - 1;
        if word("flags") != "master" || word("num-other-sentinels") != others.to_string() {
            let (flags, others) = (word("flags"), word("num-other-sentinels"));
            return Err(format!("{sentinel} sees the primary as {flags}, and {others} other sentinels"));
        }
        let replicas = ask(sentinel, &["SENTINEL", "SLAVES", NAME]).await?;
        let sound = |replica: &&Reply| {
            replica.field("flags").is_some_and(|flags| *flags == "slave")
                && replica.field("master-link-status").is_some_and(|status| *status == "ok")
        };
        let (sound, expected) =
            (replicas.items().iter().filter(sound).count(), running(&self.servers).count() - 1);
        if sound != expected {
            return Err(format!("{sentinel} sees {sound} sound replicas, expected {expected}"));
        }
        ask(sentinel, &["SENTINEL", "CKQUORUM", NAME]).await?;
        Ok(())
    }
}

/// A sentinel for this primary.
fn watcher(primary: &RedisServer) -> Options {
    Options::default()
        .kind(Kind::Sentinel)
        .line(&format!("sentinel monitor {NAME} 127.0.0.1 {} {QUORUM}", primary.port()))
        .line(&format!("sentinel down-after-milliseconds {NAME} {DOWN_AFTER_MS}"))
        .line(&format!("sentinel failover-timeout {NAME} {FAILOVER_MS}"))
}

async fn hasten(sentinel: &RedisServer) -> Result<(), Error> {
    for (name, value) in HASTE {
        match sentinel.command(&["SENTINEL", "DEBUG", name, value]).await {
            // An older one looks when it looks.
            Ok(_) | Err(Error::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn running(servers: &[RedisServer]) -> impl Iterator<Item = &RedisServer> {
    servers.iter().filter(|server| server.is_running())
}

async fn ask(server: &RedisServer, args: &[&str]) -> Result<Reply, String> {
    server.command(args).await.map_err(|error| error.to_string())
}
