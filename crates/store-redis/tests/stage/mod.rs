//! A store on a server of its own, for the suite and for the store's own tests.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use poolwright_broker::Broker;
use poolwright_conformance::{Harness, START};
use poolwright_core::clock::ManualClock;
use poolwright_core::{BoxFuture, Chance, Clock, TaskKey, Timestamp};
use poolwright_store_redis::keys::Keys;
use poolwright_store_redis::{RedisOptions, RedisStore};
use poolwright_testbed::{RedisServer, Reply};
use servers::Servers;

pub(crate) mod go_server;
pub(crate) mod keyspace;
pub(crate) mod servers;

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Servers, the store on them, and the clock that rules.
///
/// The clock begins years ahead of the server's, so nothing that has an expiry goes by itself; what time would have taken goes
/// when the clock is moved.
pub(crate) struct RedisHarness {
    servers: Servers,
    store: Mutex<Arc<RedisStore>>,
    clock: ManualClock,
    chance: Chance,
}

impl RedisHarness {
    /// A fresh server.
    pub(crate) async fn new(seed: u64) -> Self {
        Self::at(seed, START).await
    }

    /// A fresh server, whose clock stands there.
    pub(crate) async fn at(seed: u64, start: Timestamp) -> Self {
        Self::on(Servers::Single(Arc::new(RedisServer::start().await.unwrap())), seed, start).await
    }

    /// These servers, which hold nothing.
    pub(crate) async fn on(servers: Servers, seed: u64, start: Timestamp) -> Self {
        let (clock, chance) = (ManualClock::at(start), Chance::seeded(seed));
        let store = open(&servers, &clock, &chance).await;
        Self { servers, store: Mutex::new(store), clock, chance }
    }

    /// The store itself.
    pub(crate) fn store(&self) -> Arc<RedisStore> {
        Arc::clone(&self.store.lock().unwrap())
    }

    /// The servers behind the store's back.
    pub(crate) const fn servers(&self) -> &Servers {
        &self.servers
    }

    /// A second store on the same servers and clock, as another process would have.
    pub(crate) async fn another(&self) -> Arc<RedisStore> {
        open(&self.servers, &self.clock, &self.chance).await
    }

    /// Removes keys whose time is over by the clock that rules.
    async fn expire(&self) {
        let now = self.clock.now();
        for key in self.servers.keys().await {
            // Redis 7 would tell the time itself; 6.2 tells what is left of it.
            let time = self.servers.command(&key, &["TIME"]).await;
            let left = self.servers.command(&key, &["PTTL", &key]).await.integer().unwrap();
            if left < 0 {
                continue;
            }
            let part = |at: usize| time.items()[at].integer().unwrap();
            let server_now = Timestamp::from_micros(part(0) * 1_000_000 + part(1));
            let over = server_now + Duration::from_millis(left.unsigned_abs());
            // The two answers are some time apart; cases move their clock by whole seconds.
            if over <= now + Duration::from_millis(100) {
                self.servers.command(&key, &["DEL", &key]).await;
            }
        }
    }
}

async fn open(servers: &Servers, clock: &ManualClock, chance: &Chance) -> Arc<RedisStore> {
    let mut options = RedisOptions::from_url(&servers.url()).unwrap();
    // No case loses an answer, and thousands of tasks at once on a busy machine take their time.
    (options.read_timeout, options.write_timeout) = (PATIENCE, PATIENCE);
    RedisStore::open_with_clock(options, Arc::new(clock.clone()), chance.clone()).await.unwrap()
}

/// Whatever a test did, what it leaves behind is sound.
impl Drop for RedisHarness {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let runtime = tokio::runtime::Handle::current();
            tokio::task::block_in_place(|| runtime.block_on(self.servers.assert_sound()));
        }
    }
}

impl Harness for RedisHarness {
    fn broker(&self) -> Arc<dyn Broker> {
        self.store()
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn elapse(&self, by: Duration) -> BoxFuture<'_, ()> {
        self.clock.advance(by);
        Box::pin(self.expire())
    }

    fn precision(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn reopen(&self) -> BoxFuture<'_, Arc<dyn Broker>> {
        Box::pin(async {
            self.store().close().await.unwrap();
            let store = self.another().await;
            *self.store.lock().unwrap() = Arc::clone(&store);
            store as Arc<dyn Broker>
        })
    }

    fn poison<'a>(&'a self, key: &'a TaskKey) -> BoxFuture<'a, ()> {
        Box::pin(async {
            let hash = Keys::of(&key.queue).task(&key.id);
            let message = self.servers.command(&hash, &["HGET", &hash, "msg"]).await;
            let Reply::Bytes(mut bytes) = message else { panic!("the task to damage is there") };
            // The first field claims to be longer than all that follows.
            bytes[1] = 0x7f;
            bytes.truncate(40);
            let args: [&[u8]; 4] = [b"HSET", hash.as_bytes(), b"msg", &bytes];
            self.servers.command(&hash, &args).await;
        })
    }
}
