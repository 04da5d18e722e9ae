//! Connections beside the shared one: for commands that block, and for subscriptions.
//!
//! Invariant: dropping one closes it at once, so a wait on the server ends with its waiter.

use futures_util::StreamExt;
use redis::aio::{PubSub, PubSubSink, PubSubStream};
use redis::{Cmd, Value};
use tokio::sync::watch;
use tokio::time::timeout_at;

use super::fault::CallError;
use super::session::{Limit, Session};
use std::time::Duration;

/// A connection of one's own to one server.
pub struct Dedicated(pub(super) Session);

impl Dedicated {
    /// Sends one command and waits for its answer, for as long as `limit` says or as the connection lives.
    ///
    /// A command that blocks goes on blocking the connection when this future is dropped or the limit has passed: drop the
    /// connection then.
    ///
    /// # Errors
    /// As [`super::Link::call`]. Whatever the error, a new connection finds out who owns the key now.
    pub async fn call(&self, cmd: &Cmd, limit: Option<Duration>) -> Result<Value, CallError> {
        self.0.call(cmd, limit.map(Limit::of)).await
    }

    /// The connection has ended, or its server has another role now.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        !self.0.is_usable()
    }
}

/// What was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// Where.
    pub channel: Vec<u8>,
    /// What.
    pub payload: Vec<u8>,
}

/// A connection for subscriptions. Messages that come while nobody reads wait in memory without a bound, so read always.
pub struct Subscriber {
    sink: PubSubSink,
    stream: PubSubStream,
    server: String,
    limit: Duration,
    epoch: watch::Receiver<u64>,
}

impl Subscriber {
    pub(super) fn new(pubsub: PubSub, server: String, limit: Duration, epoch: watch::Receiver<u64>) -> Self {
        let (sink, stream) = pubsub.split();
        Self { sink, stream, server, limit, epoch }
    }

    /// Subscribes to a channel. What is published after this returned will come.
    ///
    /// # Errors
    /// As [`super::Link::call`].
    pub async fn subscribe(&mut self, channel: &[u8]) -> Result<(), CallError> {
        let limit = Limit::of(self.limit);
        match timeout_at(limit.at, self.sink.subscribe(channel)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(CallError::of_redis(&self.server, error)),
            Err(_) => Err(CallError::late(&self.server, limit.whole)),
        }
    }

    /// The next message; nothing when the connection has ended, or the link has made another one since: it may go to another
    /// server, on which nothing is subscribed. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Published> {
        tokio::select! {
            biased;
            message = self.stream.next() => {
                let message = message?;
                let channel = message.get_channel::<Vec<u8>>().unwrap_or_default();
                Some(Published { channel, payload: message.get_payload_bytes().to_vec() })
            }
            // Also when the link is gone.
            _ = self.epoch.changed() => None,
        }
    }
}
