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

pub(crate) mod servers;

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
            let at = self.servers.command(&key, &["PEXPIRETIME", &key]).await;
            // Rounded up to its millisecond when it was written.
            let over = at.integer().is_some_and(|at| at > 0 && Timestamp::from_millis(at - 1) < now);
            if over {
                self.servers.command(&key, &["DEL", &key]).await;
            }
        }
    }
}

async fn open(servers: &Servers, clock: &ManualClock, chance: &Chance) -> Arc<RedisStore> {
    let options = RedisOptions::from_url(&servers.url()).unwrap();
    RedisStore::open_with_clock(options, Arc::new(clock.clone()), chance.clone()).await.unwrap()
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
