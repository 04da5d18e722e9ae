//! The link to Redis: one way to send commands, whether one server, sentinels or a cluster stand behind it.
//!
//! Invariant: a command is sent once. What may have reached a server is never sent again; only a server that says that it did
//! nothing, but another one would (a cluster's redirection), is believed.
//!
//! | File | Its one duty |
//! | --- | --- |
//! | `stream`, `socket`, `tls` | bytes to and fro |
//! | `greeting` | what is said on a new stream |
//! | `dial` | makes sessions out of these |
//! | `session` | one connection, many callers |
//! | `driver`, `patience` | who moves its bytes: a task, or a caller for as long as that pays |
//! | `node` | one place with a session most of the time: reconnects, waits |
//! | `sentinel` | where the primary is |
//! | `cluster`, `slot` | which node a key belongs to, and what to do when it says otherwise |
//! | `place` | one of these, as the options say, opened and looked at |
//! | `check` | what a server must be |
//! | `side` | connections for waits and for subscriptions |
//! | `fault` | what errors mean |

mod check;
mod cluster;
mod dial;
mod driver;
mod fault;
mod greeting;
mod node;
mod patience;
mod place;
mod sentinel;
mod session;
mod side;
mod slot;
mod socket;
mod stream;
mod tls;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Pipeline, Value};
use tokio::sync::watch;

pub use fault::CallError;
pub use side::{Dedicated, Published, Subscriber};

use crate::error::Error;
use crate::options::RedisOptions;
use node::Epoch;
use place::Place;
use session::Limit;

/// What a command does, for its time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only reads: [`RedisOptions::read_timeout`].
    Read,
    /// It may write: [`RedisOptions::write_timeout`].
    Write,
}

/// One answer for each command of a pipeline.
pub type Answers = Vec<Result<Value, CallError>>;

/// The connection of a store. Clones share it; the last one closes it.
#[derive(Clone)]
pub struct Link(Arc<Inner>);

struct Inner {
    place: Place,
    epoch: Epoch,
    description: String,
    read_timeout: Duration,
    write_timeout: Duration,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Link").field(&self.0.description).finish()
    }
}

impl Link {
    /// Connects and looks whether the servers will do. The connections live on the runtime on which this is called.
    ///
    /// # Errors
    /// [`Error`], with what was found, what was expected and the cure.
    pub async fn open(options: &RedisOptions) -> Result<Self, Error> {
        options.check()?;
        let description = options.describe();
        if options.tls.as_ref().is_some_and(|tls| tls.insecure) {
            tracing::warn!(
                server = description,
                "TLS to redis takes any certificate: whoever sits between can read and change everything"
            );
        }
        let epoch: Epoch = Arc::new(watch::Sender::new(0));
        let place = Place::open(options, &epoch).await?;
        let (read_timeout, write_timeout) = (options.read_timeout, options.write_timeout);
        Ok(Self(Arc::new(Inner { place, epoch, description, read_timeout, write_timeout })))
    }

    /// A cluster: keys of one command must share a slot, and there are as many servers as there are parts.
    #[must_use]
    pub fn is_cluster(&self) -> bool {
        matches!(self.0.place, Place::Cluster(_))
    }

    /// What is reached, such as `redis:127.0.0.1:6379/0`, without secrets.
    #[must_use]
    pub fn describe(&self) -> &str {
        &self.0.description
    }

    /// Sends one command to the server that owns `key`, or to any one.
    ///
    /// # Errors
    /// [`CallError`]: the server's own error, or the lack of an answer within the time limit of `kind`.
    pub async fn call(&self, key: Option<&[u8]>, cmd: Cmd, kind: Kind) -> Result<Value, CallError> {
        self.0.place.call(key, &cmd, self.limit(kind), || Ok(())).await
    }

    /// As [`Link::call`], but only while [`Link::epoch`] is `epoch`: never as the first on a new connection.
    ///
    /// # Errors
    /// As [`Link::call`]; it was certainly not executed if the epoch is another one.
    pub async fn call_in(
        &self,
        epoch: u64,
        key: Option<&[u8]>,
        cmd: Cmd,
        kind: Kind,
    ) -> Result<Value, CallError> {
        // It is asked when there is a session, and a session is only seen after the epoch that it began.
        let may = || {
            let is_same = epoch == self.epoch();
            let why =
                || CallError::unreachable(format!("the connection to {} is a new one", self.describe()));
            is_same.then_some(()).ok_or_else(why)
        };
        self.0.place.call(key, &cmd, self.limit(kind), may).await
    }

    /// Sends several commands, all for the server that owns `key`, with nothing of ours between them. They are no transaction:
    /// each has its own answer. An error inside of an answer's array stays there.
    ///
    /// # Errors
    /// [`CallError`] if there are no answers.
    pub async fn pipeline(
        &self,
        key: Option<&[u8]>,
        pipeline: Pipeline,
        kind: Kind,
    ) -> Result<Answers, CallError> {
        debug_assert!(!pipeline.is_transaction(), "a transaction has one answer, not one for each command");
        if pipeline.is_empty() {
            return Ok(Vec::new());
        }
        self.0.place.pipeline(key, &pipeline, self.limit(kind)).await
    }

    /// Opens a connection of one's own to the server that owns `key`, for commands that block. It may take as long as
    /// [`RedisOptions::connect_timeout`], but while there is no connection at all it fails as soon as a call does.
    ///
    /// # Errors
    /// [`CallError`] if it cannot be made; nothing was executed.
    pub async fn dedicated(&self, key: &[u8]) -> Result<Dedicated, CallError> {
        let session = self.0.place.session(Some(key), self.limit(Kind::Write)).await?;
        let address = session.address().clone();
        Ok(Dedicated(self.0.place.dialer().session_from_anywhere(address).await?))
    }

    /// Opens a connection for subscriptions. When it ends, a new one has to be opened and subscribed.
    ///
    /// # Errors
    /// [`CallError`] if it cannot be made.
    pub async fn pubsub(&self) -> Result<Subscriber, CallError> {
        let session = self.0.place.session(None, self.limit(Kind::Write)).await?;
        let epoch = self.0.epoch.subscribe();
        let pubsub = self.0.place.dialer().pubsub_from_anywhere(session.address().clone()).await?;
        Ok(Subscriber::new(pubsub, session.server().to_owned(), self.0.write_timeout, epoch))
    }

    /// Counts what may have cost writes or time: each connection made anew, each primary that was replaced by another.
    ///
    /// It has changed before the first command goes through a new connection.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        *self.0.epoch.borrow()
    }

    /// Tells of changes of [`Link::epoch`].
    #[must_use]
    pub fn epochs(&self) -> watch::Receiver<u64> {
        self.0.epoch.subscribe()
    }

    /// Later calls are refused; those on their way may end. Connections of [`Link::dedicated`] and [`Link::pubsub`] are their
    /// holders'.
    pub fn close(&self) {
        self.0.place.close();
    }

    fn limit(&self, kind: Kind) -> Limit {
        Limit::of(match kind {
            Kind::Read => self.0.read_timeout,
            Kind::Write => self.0.write_timeout,
        })
    }
}
