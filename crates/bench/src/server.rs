//! The Redis that is measured: a private one, or one that was named.
//!
//! Invariant: a server that was named is empty when we begin and empty when we end; one with anything in it is refused.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use poolwright_store_redis::RedisOptions;
use poolwright_store_redis::options::{Address, Endpoint};
use poolwright_testbed::{Connection, RedisServer, Reply};
use tokio::sync::Mutex;

/// One server with its own connection for questions.
pub(crate) struct Server {
    /// Keeps a private server alive.
    private: Option<RedisServer>,
    url: String,
    address: Address,
    control: Mutex<Connection>,
}

impl Server {
    /// The server of this URL, or without one a fresh private server: in memory, no snapshots, no log.
    pub(crate) async fn start(broker: Option<&str>) -> Result<Self> {
        let Some(broker) = broker else {
            let server = RedisServer::start().await?;
            let control = Mutex::new(server.connect().await?);
            let address = Address::Unix(server.socket());
            return Ok(Self { url: server.url(), address, private: Some(server), control });
        };
        let server = Self::join(broker).await?;
        let keys = server.number(&["DBSIZE"]).await?;
        ensure!(
            keys == 0,
            "expected an empty database at {}, found {keys} keys; name another one",
            server.url
        );
        Ok(server)
    }

    /// The server of this URL as it is.
    pub(crate) async fn join(broker: &str) -> Result<Self> {
        let options = RedisOptions::from_url(broker)?;
        let plain = options.login.user.is_none() && options.login.password.is_none() && options.tls.is_none();
        ensure!(plain, "the bench measures one plain server, without TLS and without a password");
        let Endpoint::Single(address) = options.endpoint else {
            bail!("the bench measures one server, no sentinels and no cluster");
        };
        let db = options.db;
        let url = match &address {
            Address::Tcp { .. } => format!("redis://{address}/{db}"),
            Address::Unix(path) => format!("redis-socket://{}?db={db}", path.display()),
        };
        let mut control = connect(&address).await?;
        control.command(&["SELECT", &db.to_string()]).await?;
        Ok(Self { private: None, url, address, control: Mutex::new(control) })
    }

    /// Its URL, in a form that asynq reads as well.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Asks it something.
    pub(crate) async fn command(&self, args: &[impl AsRef<[u8]>]) -> Result<Reply> {
        Ok(self.control.lock().await.command(args).await?)
    }

    /// A number out of a key or a count; 0 for what is not there.
    pub(crate) async fn number(&self, args: &[&str]) -> Result<u64> {
        let number = self.command(args).await?.integer().unwrap_or(0);
        Ok(u64::try_from(number)?)
    }

    /// User and system time of the server, in microseconds.
    pub(crate) async fn processor(&self) -> Result<Duration> {
        let info = self.command(&["INFO", "cpu"]).await?;
        let secs = |name| info.line(name).and_then(|text| text.trim().parse::<f64>().ok());
        let both = secs("used_cpu_user").zip(secs("used_cpu_sys"));
        let (user, system) = both.context("INFO tells no processor time")?;
        Ok(Duration::from_secs_f64(user + system))
    }

    /// Bytes that it has allocated.
    pub(crate) async fn memory(&self) -> Result<u64> {
        let info = self.command(&["INFO", "memory"]).await?;
        let used = info.line("used_memory").and_then(|text| text.trim().parse().ok());
        used.context("INFO tells no memory")
    }

    /// How often it has read from its clients.
    pub(crate) async fn reads(&self) -> Result<u64> {
        let info = self.command(&["INFO", "stats"]).await?;
        let reads = info.line("total_reads_processed").and_then(|text| text.trim().parse().ok());
        reads.context("INFO tells no number of reads")
    }

    /// What is waiting or running in a queue, and what has been processed.
    pub(crate) async fn progress(&self, queue: &str) -> Result<Progress> {
        let key = |end: &str| format!("asynq:{{{queue}}}:{end}");
        Ok(Progress {
            pending: self.number(&["LLEN", &key("pending")]).await?,
            active: self.number(&["LLEN", &key("active")]).await?,
            processed: self.number(&["GET", &key("processed")]).await?,
        })
    }

    /// How many requests clients send in this time: what `MONITOR` shows that no script did.
    pub(crate) async fn requests(&self, during: Duration) -> Result<usize> {
        let mut monitor = connect(&self.address).await?;
        monitor.command(&["MONITOR"]).await?;
        let mut count = 0;
        let counting = async {
            loop {
                let line = monitor.next().await?;
                let (who, _) = line.text().and_then(|text| text.split_once(']')).unwrap_or_default();
                count += usize::from(!who.ends_with(" lua"));
            }
        };
        match tokio::time::timeout(during, counting).await {
            Ok(ended) => ended,
            Err(_) => Ok(count),
        }
    }

    /// Forgets all tasks.
    pub(crate) async fn empty(&self) -> Result<()> {
        self.command(&["FLUSHDB"]).await.map(drop)
    }

    /// Lets a private server go and empties one that was named.
    pub(crate) async fn end(self) -> Result<()> {
        if self.private.is_none() { self.empty().await } else { Ok(()) }
    }
}

/// Where the tasks of a queue are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) pending: u64,
    pub(crate) active: u64,
    pub(crate) processed: u64,
}

async fn connect(address: &Address) -> Result<Connection> {
    match address {
        Address::Unix(path) => Ok(Connection::unix(path).await?),
        Address::Tcp { host, port } => {
            let mut found = tokio::net::lookup_host((host.as_str(), *port)).await?;
            let at: SocketAddr = found.next().with_context(|| format!("no address for {host}"))?;
            Ok(Connection::tcp(at).await?)
        }
    }
}
