//! What a store's tests lend to the suite: a broker, and power over its time.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::Broker;
use poolwright_core::clock::ManualClock;
use poolwright_core::{BoxFuture, Clock, TaskKey, Timestamp};

/// Where manual clocks begin: 2030-03-17, with a fraction of a second in every digit, so that a store that drops
/// digits is seen.
pub const START: Timestamp = Timestamp::from_micros(1_900_000_000_123_457);

/// A fresh, empty store under the hands of a test.
///
/// Dropping it removes whatever it put on disk.
pub trait Harness: Send + Sync {
    /// The store.
    fn broker(&self) -> Arc<dyn Broker>;

    /// The store's time.
    fn now(&self) -> Timestamp;

    /// Moves the store's time forward; true time need not pass.
    fn elapse(&self, by: Duration) -> BoxFuture<'_, ()>;

    /// How finely the store keeps due times. They may be later than asked for by less than this, never earlier.
    /// Default: exact to the microsecond.
    fn precision(&self) -> Duration {
        Duration::from_micros(1)
    }

    /// Group `durable`: closes the store, opens it again, and gives the new one. [`Harness::broker`] gives it, too,
    /// from then on.
    fn reopen(&self) -> BoxFuture<'_, Arc<dyn Broker>> {
        unimplemented_group("durable")
    }

    /// Group `poison`: damages the stored record of this task so that it does not decode any more.
    fn poison<'a>(&'a self, key: &'a TaskKey) -> BoxFuture<'a, ()> {
        let _ = key;
        unimplemented_group("poison")
    }
}

fn unimplemented_group<T>(group: &str) -> T {
    panic!("suite!(…; {group}) was asked for, but this harness does not implement what the group needs")
}

/// A harness around any broker that was given a [`ManualClock`].
pub struct ManualHarness {
    broker: Arc<dyn Broker>,
    clock: ManualClock,
    guards: Vec<Box<dyn Any + Send + Sync>>,
}

impl ManualHarness {
    /// Lends this broker, whose time is this clock.
    #[must_use]
    pub fn new(broker: Arc<dyn Broker>, clock: ManualClock) -> Self {
        Self { broker, clock, guards: Vec::new() }
    }

    /// Keeps something alive as long as the harness: a temporary directory, a server's process.
    #[must_use]
    pub fn keeping(mut self, guard: impl Any + Send + Sync) -> Self {
        self.guards.push(Box::new(guard));
        self
    }
}

impl Harness for ManualHarness {
    fn broker(&self) -> Arc<dyn Broker> {
        Arc::clone(&self.broker)
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn elapse(&self, by: Duration) -> BoxFuture<'_, ()> {
        self.clock.advance(by);
        Box::pin(std::future::ready(()))
    }
}
