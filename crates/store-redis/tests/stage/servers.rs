//! What a store can stand on: one server, a cluster, or a primary that sentinels know.
//!
//! A server costs some milliseconds, so each case has its own. A cluster and sentinels cost seconds: one of each serves a whole
//! test program, one case after the other, emptied before each.

use std::sync::Arc;

use poolwright_testbed::{RedisCluster, RedisSentinels, RedisServer, Reply};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use super::keyspace::Keyspace;

/// Looking at more keys than this would cost a test more than all that it does.
const KEYS_MAX: i64 = 10_000;

static TURN: Mutex<()> = Mutex::const_new(());
static CLUSTER: OnceCell<Arc<RedisCluster>> = OnceCell::const_new();
static SENTINELS: OnceCell<Arc<RedisSentinels>> = OnceCell::const_new();

/// Servers that hold nothing at first.
pub(crate) enum Servers {
    Single(Arc<RedisServer>),
    Cluster(Arc<RedisCluster>, MutexGuard<'static, ()>),
    Sentinels(Arc<RedisSentinels>, MutexGuard<'static, ()>),
}

impl Servers {
    /// The program's cluster: three primaries, each with a replica.
    pub(crate) async fn cluster() -> Self {
        let turn = TURN.lock().await;
        let start = || async { Arc::new(RedisCluster::start().await.unwrap()) };
        let servers = Self::Cluster(CLUSTER.get_or_init(start).await.clone(), turn);
        servers.flush().await;
        servers
    }

    /// The program's sentinels, with the primary that they know.
    pub(crate) async fn sentinels() -> Self {
        let turn = TURN.lock().await;
        let start = || async { Arc::new(RedisSentinels::start().await.unwrap()) };
        let servers = Self::Sentinels(SENTINELS.get_or_init(start).await.clone(), turn);
        servers.flush().await;
        servers
    }

    /// How a store reaches them.
    pub(crate) fn url(&self) -> String {
        match self {
            Self::Single(server) => server.unix_url(),
            Self::Cluster(cluster, _) => {
                let seeds: Vec<_> =
                    cluster.nodes().iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
                format!("redis-cluster://{}", seeds.join(","))
            }
            Self::Sentinels(sentinels, _) => {
                let places: Vec<_> = sentinels.addresses().iter().map(ToString::to_string).collect();
                format!("redis-sentinel://{}/0?master={}", places.join(","), sentinels.master_name())
            }
        }
    }

    /// The server, where it is one.
    pub(crate) fn single(&self) -> &RedisServer {
        match self {
            Self::Single(server) => server,
            _ => panic!("these are several servers"),
        }
    }

    /// Sends a command to the server that owns this key.
    pub(crate) async fn command(&self, key: &str, args: &[impl AsRef<[u8]>]) -> Reply {
        let reply = match self {
            Self::Single(server) => server.command(args).await,
            Self::Cluster(cluster, _) => cluster.command(key, args).await,
            Self::Sentinels(sentinels, _) => sentinels.primary().await.unwrap().command(args).await,
        };
        reply.unwrap_or_else(|error| panic!("{error}"))
    }

    /// All keys, in order.
    pub(crate) async fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for server in self.primaries().await {
            let reply = server.command(&["KEYS", "*"]).await.unwrap();
            keys.extend(reply.items().iter().map(|key| key.text().unwrap().to_owned()));
        }
        keys.sort_unstable();
        keys
    }

    /// Panics unless everything on them is sound. Where there is very much, a test is about that and looks by itself.
    pub(crate) async fn assert_sound(&self) {
        let servers = self.primaries().await;
        for server in &servers {
            if server.command(&["DBSIZE"]).await.unwrap().integer().is_none_or(|keys| keys > KEYS_MAX) {
                return;
            }
        }
        let keyspace = Keyspace::of_all(&servers).await;
        let faults = keyspace.faults();
        assert!(faults.is_empty(), "at the end: {faults:#?}\n{keyspace:#?}");
    }

    async fn flush(&self) {
        for server in self.primaries().await {
            server.command(&["FLUSHALL"]).await.unwrap();
        }
    }

    async fn primaries(&self) -> Vec<&RedisServer> {
        match self {
            Self::Single(server) => vec![&**server],
            Self::Cluster(cluster, _) => {
                let mut primaries = Vec::new();
                for node in cluster.nodes().iter().filter(|node| node.is_running()) {
                    let role = node.command(&["ROLE"]).await.unwrap();
                    if role.items()[0].text() == Some("master") {
                        primaries.push(node);
                    }
                }
                primaries
            }
            Self::Sentinels(sentinels, _) => vec![sentinels.primary().await.unwrap()],
        }
    }
}
