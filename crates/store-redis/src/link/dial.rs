//! Makes sessions: connects, encrypts, greets.
//!
//! Invariant: whatever is opened here lives on the runtime on which the store was opened, whoever asks for it. Else a
//! connection would die with the runtime of a handler, or stand still with it.

use std::sync::Arc;
use std::time::Duration;

use redis::RedisConnectionInfo;
use redis::aio::PubSub;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout_at;

use super::fault::CallError;
use super::greeting::{Greeting, Role};
use super::session::{Limit, Session};
use super::stream::{self, Stream};
use super::tls::Encryption;
use crate::error::Error;
use crate::options::{Address, Login, RedisOptions};

/// How servers of one kind are reached.
#[derive(Clone)]
pub(super) struct Dialer {
    encryption: Option<Encryption>,
    login: Login,
    db: u32,
    connect_timeout: Duration,
    silence_max: Duration,
    spin_max: Duration,
    /// A word for messages.
    kind: &'static str,
    wants_primary: bool,
    runtime: Handle,
}

impl Dialer {
    /// Reaches servers that hold data. To be called on the runtime that connections shall live on.
    pub(super) fn new(options: &RedisOptions, wants_primary: bool) -> Result<Self, Error> {
        Ok(Self {
            encryption: options.tls.as_ref().map(Encryption::new).transpose()?,
            login: options.login.clone(),
            db: options.db,
            connect_timeout: options.connect_timeout,
            silence_max: options.silence_max,
            spin_max: options.spin_max,
            kind: "redis",
            wants_primary,
            runtime: Handle::current(),
        })
    }

    /// Does some work on the store's runtime, to its end.
    pub(super) fn detach(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.runtime.spawn(work));
    }

    /// Does some work on the store's runtime and waits for it; the work ends with the wait.
    async fn there<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, CallError>> + Send + 'static,
    ) -> Result<T, CallError> {
        let mut task = Leashed(self.runtime.spawn(work));
        (&mut task.0).await.unwrap_or_else(|_| Err(CallError::no_runtime()))
    }

    /// Opens a session. To be called on the store's runtime.
    pub(super) async fn session(&self, address: &Address) -> Result<Session, CallError> {
        let server: Arc<str> = self.name(address).into();
        let stream = self.greeted(&server, address).await?;
        Session::new(server, address.clone(), stream, self.silence_max, self.spin_max).await
    }

    /// Opens a session for commands that block, from any runtime: on it one always sleeps until there is an answer.
    pub(super) async fn session_from_anywhere(&self, address: Address) -> Result<Session, CallError> {
        let dialer = Self { spin_max: Duration::ZERO, ..self.clone() };
        self.there(async move { dialer.session(&address).await }).await
    }

    /// Opens a connection for subscriptions, from any runtime.
    pub(super) async fn pubsub_from_anywhere(&self, address: Address) -> Result<PubSub, CallError> {
        let dialer = self.clone();
        let open = async move {
            let server = dialer.name(&address);
            let stream = dialer.greeted(&server, &address).await?;
            let mine = RedisConnectionInfo::default().set_skip_set_lib_name();
            PubSub::new(&mine, stream).await.map_err(|error| CallError::broken(&server, &error))
        };
        self.there(open).await
    }

    /// Reaches the sentinels. One that does not answer soon is passed over.
    pub(super) fn sentinels(&self, login: Login) -> Self {
        Self {
            login,
            db: 0,
            connect_timeout: self.connect_timeout.min(Duration::from_secs(1)),
            spin_max: Duration::ZERO,
            kind: "sentinel",
            wants_primary: false,
            ..self.clone()
        }
    }

    pub(super) fn connect_limit(&self) -> Limit {
        Limit::of(self.connect_timeout)
    }

    pub(super) fn name(&self, address: &Address) -> String {
        format!("{} at {address}", self.kind)
    }

    async fn greeted(&self, server: &str, address: &Address) -> Result<Stream, CallError> {
        let late = |doing: &str| {
            let ms = self.connect_timeout.as_millis();
            CallError::unreachable(format!("{server} {doing} within {ms} ms"))
        };
        let limit = Limit::of(self.connect_timeout);
        let connect = stream::connect(address, self.encryption.as_ref());
        let mut stream = match timeout_at(limit.at, connect).await {
            Ok(opened) => opened.map_err(|error| CallError::not_connected(server, &error))?,
            Err(_) if self.encryption.is_some() => return Err(late("took no connection, or spoke no TLS,")),
            Err(_) => return Err(late("took no connection")),
        };
        let greeting = Greeting { server, login: &self.login, db: self.db };
        let talk = async {
            greeting.say(&mut stream).await?;
            if self.wants_primary { greeting.role(&mut stream).await } else { Ok(Role::Unknown) }
        };
        let role = timeout_at(limit.at, talk).await.map_err(|_| late("did not answer a greeting"))??;
        if role == Role::Replica {
            return Err(CallError::replica(server));
        }
        Ok(stream)
    }
}

/// Work that ends when nobody waits for it any more.
struct Leashed<T>(JoinHandle<T>);

impl<T> Drop for Leashed<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
