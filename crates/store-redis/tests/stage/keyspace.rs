//! All that lies on a server, read in one step, and whether it is sound: every rule of the layout that must hold whenever no
//! script runs, looked at from outside.

mod queue;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use poolwright_testbed::{RedisServer, Reply};
use queue::Queue;

/// One script, so that nothing comes between: each key with its type, its time to live and what it holds.
const READ: &str = "
local out = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  local kind, held = redis.call('TYPE', key).ok, ''
  if kind == 'string' then held = redis.call('GET', key)
  elseif kind == 'list' then held = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'set' then held = redis.call('SMEMBERS', key)
  elseif kind == 'zset' then held = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'hash' then held = redis.call('HGETALL', key)
  end
  out[#out + 1] = { key, kind, redis.call('PTTL', key), held }
end
return out";

/// What a key holds. Members and fields may be any bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Held {
    Text(Vec<u8>),
    List(Vec<Vec<u8>>),
    Set(BTreeSet<Vec<u8>>),
    /// By whole seconds, as asynq before 0.26 wants them; none: the score is a fraction.
    Scored(BTreeMap<Vec<u8>, Option<i64>>),
    Hash(BTreeMap<String, Vec<u8>>),
    Other(String),
}

/// A key and whether it goes by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) held: Held,
    pub(crate) expires: bool,
}

/// Everything on some servers that share the queues among them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Keyspace(BTreeMap<String, Entry>);

impl Keyspace {
    /// What is on one server.
    pub(crate) async fn of(server: &RedisServer) -> Self {
        Self::of_all(&[server]).await
    }

    /// What is on the primaries of a cluster.
    pub(crate) async fn of_all(servers: &[&RedisServer]) -> Self {
        let mut keys = BTreeMap::new();
        for server in servers {
            let reply = server.command(&["EVAL", READ, "0"]).await.unwrap_or_else(|error| panic!("{error}"));
            keys.extend(reply.items().iter().map(entry));
        }
        Self(keys)
    }

    /// The keys of one queue, without what they all begin with.
    pub(crate) fn of_queue(&self, queue: &str) -> BTreeMap<&str, &Entry> {
        let prefix = format!("asynq:{{{queue}}}:");
        let all = self.0.iter();
        all.filter_map(|(key, entry)| Some((key.strip_prefix(prefix.as_str())?, entry))).collect()
    }

    /// The queues that are registered.
    pub(crate) fn registered(&self) -> BTreeSet<String> {
        match self.0.get("asynq:queues").map(|entry| &entry.held) {
            Some(Held::Set(names)) => names.iter().map(|name| text(name)).collect(),
            _ => BTreeSet::new(),
        }
    }

    /// Whatever is not as it must be, a line each.
    pub(crate) fn faults(&self) -> Vec<String> {
        let names: BTreeSet<&str> = self.0.keys().filter_map(|key| queue_of(key)).collect();
        let registered = self.registered();
        names.into_iter().flat_map(|name| Queue::new(self, name).faults(&registered)).collect()
    }
}

/// Panics unless everything on the server is sound; `when` says after what.
pub(crate) async fn assert_sound(server: &RedisServer, when: impl Debug) {
    let keyspace = Keyspace::of(server).await;
    let faults = keyspace.faults();
    assert!(faults.is_empty(), "{when:?}: {faults:#?}\n{keyspace:#?}");
}

/// The name in the hash tag of a queue's key; names may hold anything but a `}`.
fn queue_of(key: &str) -> Option<&str> {
    key.strip_prefix("asynq:{")?.split_once("}:").map(|(name, _)| name)
}

fn entry(reply: &Reply) -> (String, Entry) {
    let [key, kind, lasts, held] = reply.items() else { panic!("the script tells four things of a key") };
    let pairs = || held.items().chunks_exact(2).map(|pair| (bytes(&pair[0]), bytes(&pair[1])));
    let members = || held.items().iter().map(bytes);
    let what = match kind.text().unwrap() {
        "string" => Held::Text(bytes(held)),
        "list" => Held::List(members().collect()),
        "set" => Held::Set(members().collect()),
        "zset" => Held::Scored(pairs().map(|(member, score)| (member, text(&score).parse().ok())).collect()),
        "hash" => Held::Hash(pairs().map(|(name, value)| (text(&name), value)).collect()),
        other => Held::Other(other.to_owned()),
    };
    (text(&bytes(key)), Entry { held: what, expires: lasts.integer().is_some_and(|lasts| lasts >= 0) })
}

fn bytes(reply: &Reply) -> Vec<u8> {
    match reply {
        Reply::Bytes(bytes) => bytes.clone(),
        other => panic!("expected stored bytes, found {other:?}"),
    }
}

/// As text to be read by people; ids and names of keys are text anyway.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
