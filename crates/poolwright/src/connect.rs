//! `Client::connect` and `TaskInspector::connect`: a store by its URL, for programs that run no workers.

use poolwright_client::Client;
use poolwright_inspector::TaskInspector;
use poolwright_registry::Topology;

use crate::stores::Stores;
use crate::{Error, inject};

/// What can be made of a store's URL and a topology. It is in the prelude, so that the calls read as if they were the
/// types' own.
///
/// Each call opens the store anew. A program that also runs workers takes [`Running::client`](crate::Running::client)
/// and [`Running::inspector`](crate::Running::inspector), which share its store; with `memory:` there is no other way.
///
/// ```no_run
/// use poolwright::prelude::*;
///
/// # async fn f() -> Result<(), BoxError> {
/// let (topology, _warnings) = Topology::load("queues.toml")?;
/// let client = Client::connect("sqlite://tasks.db", &topology).await?;
/// let inspector = TaskInspector::connect("sqlite://tasks.db", &topology).await?;
/// # Ok(()) }
/// ```
pub trait Connect: Sized {
    /// Opens the store of this URL for the types and queues of this topology.
    ///
    /// # Errors
    /// [`Error::UnknownStore`], [`Error::Sqlite`], [`Error::Redis`].
    fn connect(url: &str, topology: &Topology) -> impl Future<Output = Result<Self, Error>> + Send;
}

impl Connect for Client {
    async fn connect(url: &str, topology: &Topology) -> Result<Self, Error> {
        let broker = Stores::open_broker(url).await?;
        Ok(Self::new(broker, topology.clone()).with_inject(inject()))
    }
}

impl Connect for TaskInspector {
    async fn connect(url: &str, topology: &Topology) -> Result<Self, Error> {
        let broker = Stores::open_broker(url).await?;
        Ok(Self::new(broker, topology.clone()))
    }
}
