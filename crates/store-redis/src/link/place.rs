//! What stands behind a link, as the options say: opened, looked at, and asked alike.

use std::sync::Arc;

use redis::{Cmd, Pipeline, Value};

use super::Answers;
use super::check::check;
use super::cluster::Cluster;
use super::dial::Dialer;
use super::fault::CallError;
use super::node::{Backoff, Epoch, Finder, Node};
use super::sentinel::Sentinels;
use super::session::{Limit, Session};
use crate::error::Error;
use crate::options::{Endpoint, RedisOptions};

/// One server or many.
pub(super) enum Place {
    /// One server, or the primary of sentinels.
    One(Node),
    Cluster(Cluster),
}

impl Place {
    /// Connects and looks at every server that is needed.
    pub(super) async fn open(options: &RedisOptions, epoch: &Epoch) -> Result<Self, Error> {
        let is_cluster = matches!(options.endpoint, Endpoint::Cluster { .. });
        // In a cluster the map of slots says who is a primary.
        let dialer = Dialer::new(options, !is_cluster)?;
        let (backoff, epoch) = (Backoff::new(options), Arc::clone(epoch));
        // Longer than any attempt, so that the reason of its failure is seen.
        let limit = Limit::of(options.connect_timeout.saturating_mul(3));
        let finder = match &options.endpoint {
            Endpoint::Single(address) => Finder::At(address.clone()),
            Endpoint::Sentinel { sentinels, master, login } => {
                let theirs = dialer.sentinels(login.clone());
                Finder::Sentinels(Box::new(Sentinels::new(theirs, master.clone(), sentinels.clone())))
            }
            Endpoint::Cluster { seeds } => {
                let cluster = Cluster::new(dialer, backoff, epoch, seeds.clone());
                cluster.learn(limit).await?;
                check_all(&cluster, limit).await?;
                return Ok(Self::Cluster(cluster));
            }
        };
        let node = Node::new(dialer, finder, backoff, epoch);
        let session = node.session(limit).await.map_err(|error| replica_at_start(error, options))?;
        check(&session, limit, false).await?;
        Ok(Self::One(node))
    }

    /// Sends one command; `may` is asked once there is a connection.
    pub(super) async fn call(
        &self,
        key: Option<&[u8]>,
        cmd: &Cmd,
        limit: Limit,
        may: impl Fn() -> Result<(), CallError>,
    ) -> Result<Value, CallError> {
        match self {
            Self::One(node) => {
                let session = node.session(limit).await?;
                may()?;
                session.call(cmd, Some(limit)).await.map_err(|error| unexpected_cluster(error, &session))
            }
            Self::Cluster(cluster) => cluster.call(key, cmd, limit, may).await,
        }
    }

    pub(super) async fn pipeline(
        &self,
        key: Option<&[u8]>,
        pipeline: &Pipeline,
        limit: Limit,
    ) -> Result<Answers, CallError> {
        match self {
            Self::One(node) => {
                let session = node.session(limit).await?;
                let answers = session.pipeline(pipeline, limit).await?;
                let each = answers.into_iter();
                Ok(each.map(|answer| answer.map_err(|error| unexpected_cluster(error, &session))).collect())
            }
            Self::Cluster(cluster) => cluster.pipeline(key, pipeline, limit).await,
        }
    }

    /// The session with whoever owns the key.
    pub(super) async fn session(&self, key: Option<&[u8]>, limit: Limit) -> Result<Arc<Session>, CallError> {
        match self {
            Self::One(node) => node.session(limit).await,
            Self::Cluster(cluster) => cluster.session(key, limit).await,
        }
    }

    pub(super) fn dialer(&self) -> &Dialer {
        match self {
            Self::One(node) => node.dialer(),
            Self::Cluster(cluster) => cluster.dialer(),
        }
    }

    pub(super) fn close(&self) {
        match self {
            Self::One(node) => node.close(),
            Self::Cluster(cluster) => cluster.close(),
        }
    }
}

/// Looks at all primaries. One that is away is no reason not to begin: a cluster is made for that.
async fn check_all(cluster: &Cluster, limit: Limit) -> Result<(), CallError> {
    let primaries = cluster.primaries();
    let mut away = Vec::new();
    for node in &primaries {
        let looked = match node.session(limit).await {
            Ok(session) => check(&session, limit, true).await,
            Err(error) => Err(error),
        };
        match looked {
            Ok(()) => {}
            Err(error) if error.broker().is_retryable() => away.push(error),
            Err(error) => return Err(error),
        }
    }
    if away.len() == primaries.len() {
        return Err(CallError::all("no primary of the cluster answers", &away));
    }
    for error in &away {
        tracing::warn!(%error, "a node of the redis cluster is away");
    }
    Ok(())
}

/// A replica that somebody named is a mistake; one that sentinels named is a failover that is not over.
fn replica_at_start(error: CallError, options: &RedisOptions) -> Error {
    match options.endpoint {
        Endpoint::Single(_) if error.code() == Some("READONLY") => Error::Unfit { why: error.why() },
        _ => error.into(),
    }
}

/// A server that was none when the store was opened has become a node of a cluster.
fn unexpected_cluster(error: CallError, session: &Session) -> CallError {
    if error.redirect().is_none() {
        return error;
    }
    CallError::refused(format!("{} is a node of a cluster now: write redis-cluster://", session.server()))
}
