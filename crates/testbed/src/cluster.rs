//! A cluster of three primaries with a replica each, whose primaries a test may kill.
//!
//! Invariant: a cluster that was returned is whole: every node knows every other one, all slots are served and every
//! replica follows its primary.

mod slot;
mod view;

use crate::error::Error;
use crate::options::{Kind, Options};
use crate::reply::Reply;
use crate::server::RedisServer;
use crate::wait;
use slot::Slot;
use view::View;

const PRIMARIES: usize = 3;
const REPLICAS_EACH: usize = 1;
const NODES: usize = PRIMARIES * (1 + REPLICAS_EACH);

/// After so long without a word from a node, the others take it for dead. Less, and a busy machine kills.
const NODE_TIMEOUT_MS: u32 = 1000;

/// Six nodes on free ports. Redis names them to clients by their addresses, so a proxy stands before none of them.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts the nodes, joins them and waits until they agree, which takes Redis some seconds.
    ///
    /// # Errors
    /// As [`Options::start`]; `Overdue` when they do not come to agree.
    pub async fn start() -> Result<Self, Error> {
        Self::start_with(Options::default()).await
    }

    /// Starts nodes that have these options, too.
    ///
    /// # Errors
    /// As `start`.
    pub async fn start_with(options: Options) -> Result<Self, Error> {
        let options = options
            .kind(Kind::Node)
            .line(&format!("cluster-node-timeout {NODE_TIMEOUT_MS}"))
            // A replica never counts as too stale to take over; tests know what they wrote.
            .line("cluster-replica-validity-factor 0");
        let mut nodes = Vec::new();
        for _ in 0..NODES {
            nodes.push(options.clone().start().await?);
        }
        let cluster = Self { nodes };
        cluster.form().await?;
        cluster.until_whole().await?;
        Ok(cluster)
    }

    /// All nodes, the killed ones too; primaries of the beginning first.
    #[must_use]
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The URLs of all nodes.
    #[must_use]
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }

    /// The primary that serves a key, as the first running node sees it.
    ///
    /// # Errors
    /// `Overdue` when none is known to.
    pub async fn owner(&self, key: &str) -> Result<&RedisServer, Error> {
        wait::until(format!("somebody to own {key}"), async || {
            let node = self.running().next().ok_or("no node runs")?;
            self.seen_owner(node, Slot::of(key)).await
        })
        .await
    }

    /// Sends a command to the primary that serves a key.
    ///
    /// # Errors
    /// As [`RedisServer::command`] and `owner`.
    pub async fn command(&self, key: &str, args: &[impl AsRef<[u8]>]) -> Result<Reply, Error> {
        self.owner(key).await?.command(args).await
    }

    /// Kills the primary that serves a key, and returns it.
    ///
    /// # Errors
    /// As `owner`.
    pub async fn kill_owner(&self, key: &str) -> Result<&RedisServer, Error> {
        let owner = self.owner(key).await?;
        owner.kill();
        Ok(owner)
    }

    /// Waits until every running node knows another owner of the key than `old`, and returns the new one.
    ///
    /// # Errors
    /// `Overdue` when nobody takes over.
    pub async fn until_failed_over(&self, key: &str, old: &RedisServer) -> Result<&RedisServer, Error> {
        wait::until(format!("a replica to take over {key} from {old}"), async || {
            let mut owner = None;
            for node in self.running() {
                check_state(node).await?;
                let seen = self.seen_owner(node, Slot::of(key)).await?;
                if seen.port() == old.port() {
                    return Err(format!("{node} still sees the old one"));
                }
                if owner.replace(seen).is_some_and(|other| other.port() != seen.port()) {
                    return Err(format!("{node} sees {seen}, another does not"));
                }
            }
            owner.ok_or_else(|| "no node runs".to_owned())
        })
        .await
    }

    /// Waits until all running nodes serve, agree on who owns what, and every replica follows its primary; for after
    /// a restart of one.
    ///
    /// # Errors
    /// `Overdue` with what is missing.
    pub async fn until_whole(&self) -> Result<(), Error> {
        wait::until("the cluster to be whole", async || {
            let mut owners = None;
            for node in self.running() {
                let view = self.check_whole(node).await?;
                if owners.replace(view.owners()).is_some_and(|others| others != view.owners()) {
                    return Err(format!("{node} sees other owners than another"));
                }
            }
            Ok::<(), String>(())
        })
        .await
    }

    fn running(&self) -> impl Iterator<Item = &RedisServer> {
        self.nodes.iter().filter(|node| node.is_running())
    }

    async fn check_whole(&self, node: &RedisServer) -> Result<View, String> {
        check_state(node).await?;
        let view = View::of(node).await?;
        let running: Vec<u16> = self.running().map(RedisServer::port).collect();
        view.knows(&running).map_err(|missing| format!("{node} {missing}"))?;
        if view.is_replica(node.port()) {
            let info = ask(node, &["INFO", "replication"]).await?;
            let link = info.line("master_link_status").unwrap_or("no word of it");
            if link != "up" {
                return Err(format!("the link of {node} to its primary: {link}"));
            }
        }
        Ok(view)
    }

    async fn seen_owner(&self, node: &RedisServer, slot: Slot) -> Result<&RedisServer, String> {
        let port = View::of(node).await?.owner(slot).ok_or_else(|| format!("{node} knows no owner"))?;
        let owner = self.nodes.iter().find(|node| node.port() == port);
        owner.ok_or_else(|| format!("{node} names port {port}, which is none of ours"))
    }

    /// Gives every primary its slots and every replica its primary.
    async fn form(&self) -> Result<(), Error> {
        let (primaries, replicas) = self.nodes.split_at(PRIMARIES);
        for (index, node) in self.nodes.iter().enumerate() {
            // Different from the beginning; else they would settle that among themselves, later.
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]).await?;
        }
        for (index, node) in primaries.iter().enumerate() {
            let slots = Slot::share(index, PRIMARIES).map(|slot| slot.to_string());
            let words: Vec<String> =
                ["CLUSTER", "ADDSLOTS"].map(str::to_owned).into_iter().chain(slots).collect();
            node.command(&words).await?;
        }
        self.introduce().await?;
        for (replica, primary) in replicas.iter().zip(primaries.iter().cycle()) {
            let id = primary.command(&["CLUSTER", "MYID"]).await?;
            let id = id.text().unwrap_or_default();
            replica.command(&["CLUSTER", "REPLICATE", id]).await?;
        }
        Ok(())
    }

    /// Each node meets each other one, which is quicker than rumour.
    async fn introduce(&self) -> Result<(), Error> {
        for (index, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[index + 1..] {
                node.command(&["CLUSTER", "MEET", "127.0.0.1", &other.port().to_string()]).await?;
            }
        }
        let all: Vec<u16> = self.nodes.iter().map(RedisServer::port).collect();
        wait::until("the nodes to know each other", async || {
            for node in &self.nodes {
                View::of(node).await?.knows(&all).map_err(|missing| format!("{node} {missing}"))?;
            }
            Ok::<(), String>(())
        })
        .await
    }
}

async fn ask(node: &RedisServer, args: &[&str]) -> Result<Reply, String> {
    node.command(args).await.map_err(|error| error.to_string())
}

async fn check_state(node: &RedisServer) -> Result<(), String> {
    let info = ask(node, &["CLUSTER", "INFO"]).await?;
    let state = info.line("cluster_state").unwrap_or("unknown");
    let assigned = info.line("cluster_slots_assigned").and_then(|count| count.parse().ok());
    if state != "ok" || assigned != Some(slot::COUNT) {
        return Err(format!("{node} is in state {state} with {assigned:?} slots"));
    }
    Ok(())
}
