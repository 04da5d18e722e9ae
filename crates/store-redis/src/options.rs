//! All knobs for reaching Redis, their defaults, and where they come from: a URL, the environment, or both.
//!
//! Invariant: no password is ever part of a message, of `Debug` or of [`RedisOptions::describe`].

mod draft;
mod env;
mod secret;
mod url;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use poolwright_core::Chance;

pub use secret::Secret;

use crate::error::Error;

/// Where one server listens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// A host name or an IP address (version 6 without brackets), and a port.
    Tcp {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// A unix socket.
    Unix(PathBuf),
}

impl Address {
    /// A host and a port.
    pub fn tcp(host: impl Into<String>, port: u16) -> Self {
        Self::Tcp { host: host.into(), port }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Who one is to a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// The user of Redis' access lists. Default: none, which is the user `default`.
    pub user: Option<String>,
    /// The password. Default: none.
    pub password: Option<Secret>,
}

impl Login {
    /// There is something to say to the server.
    pub(crate) const fn is_some(&self) -> bool {
        self.user.is_some() || self.password.is_some()
    }
}

/// Which servers make up the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// One server.
    Single(Address),
    /// A primary that sentinels know.
    Sentinel {
        /// The sentinels; any one that answers is enough.
        sentinels: Vec<Address>,
        /// What the sentinels call the primary.
        master: String,
        /// Who one is to the sentinels. [`RedisOptions::login`] is for the data node.
        login: Login,
    },
    /// A cluster.
    Cluster {
        /// Some of its nodes; any one that answers is enough.
        seeds: Vec<Address>,
    },
}

/// How connections are encrypted. TLS 1.2 or later.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// A file in PEM form with the authorities that are trusted, and no others. Default: those of the system.
    pub ca_file: Option<PathBuf>,
    /// A file in PEM form with the client's certificate and its chain. Default: none. Goes with [`Tls::key_file`].
    pub cert_file: Option<PathBuf>,
    /// A file in PEM form with the key of the client's certificate. Default: none.
    pub key_file: Option<PathBuf>,
    /// The name that the server's certificate must carry. Default: the host that is connected to.
    pub server_name: Option<String>,
    /// Takes any certificate: whoever sits between can read and change everything. Default: no. Warned about at start.
    pub insecure: bool,
}

/// How Redis is reached.
#[derive(Debug, Clone)]
pub struct RedisOptions {
    /// Which servers.
    pub endpoint: Endpoint,
    /// The number of the database. Default: 0. A cluster has no other.
    pub db: u32,
    /// Who one is to the servers that hold the data. Default: nobody.
    pub login: Login,
    /// Encryption. Default: none.
    pub tls: Option<Tls>,
    /// How long making a connection may take, with everything that is said at its beginning. Default: 5 s.
    pub connect_timeout: Duration,
    /// How long a call that only reads may take. Default: 500 ms.
    pub read_timeout: Duration,
    /// How long a call that writes may take. Default: 1 s.
    pub write_timeout: Duration,
    /// A connection on which answers are due and none came for this long is closed and made anew: the host behind it may
    /// be gone without a word. Default: 5 s.
    pub silence_max: Duration,
    /// For how long a call may look for its answer itself, awake, before it sleeps until it is woken. Waking a thread takes longer
    /// than a server nearby takes to answer, so calls that come one after another are the sooner done; where the answers come
    /// later than this, nobody looks any more. At most 10 ms. Default: 150 µs. Zero: never, which spares a processor that
    /// others need.
    pub spin_max: Duration,
    /// How long is waited after a failed attempt to connect; each further failure doubles it. A random part of up to a
    /// half is taken off, so that many processes do not come back at one moment. Default: 50 ms.
    pub backoff_min: Duration,
    /// The longest wait between two attempts to connect. Default: 2 s.
    pub backoff_max: Duration,
    /// How many replicas must have a task before its enqueue is answered, which takes a connection of its own and a round trip
    /// more. Where they do not within [`RedisOptions::write_timeout`], the answer says that it is unavailable, although the
    /// primary has the task. Default: 0, the primary alone; then a task that was just acknowledged is lost with it.
    pub enqueue_replicas: u32,
    /// Where the random part of waits comes from. Default: seeded by the system.
    pub chance: Chance,
}

/// The port of Redis.
const PORT: u16 = 6_379;

/// The port of a sentinel.
const SENTINEL_PORT: u16 = 26_379;

impl RedisOptions {
    /// The defaults for these servers.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        let read_timeout = Duration::from_millis(500);
        Self {
            endpoint,
            db: 0,
            login: Login::default(),
            tls: None,
            connect_timeout: Duration::from_secs(5),
            read_timeout,
            write_timeout: 2 * read_timeout,
            silence_max: Duration::from_secs(5),
            spin_max: Duration::from_micros(150),
            backoff_min: Duration::from_millis(50),
            backoff_max: Duration::from_secs(2),
            enqueue_replicas: 0,
            chance: Chance::from_entropy(),
        }
    }

    /// Reads a URL, and nothing else.
    ///
    /// | Form | What it names |
    /// | --- | --- |
    /// | `redis://[user:password@]host[:6379][/db]` | one server; `rediss://` with TLS |
    /// | `redis+unix:///path[?db=n&user=…&pass=…]`, `redis-socket://[user:password@]/path[?db=n]` | one server on a unix socket |
    /// | `redis-sentinel://[user:password@]host[:26379],host…[/db]?master=name` | a primary that these sentinels know; the user and password before the hosts are for the **sentinels**, those of the data node are the parameters `node_user` and `node_password`; `rediss-sentinel://` with TLS to both |
    /// | `redis-cluster://[user:password@]host[:6379],host…` | a cluster; `rediss-cluster://` with TLS |
    ///
    /// Users, passwords, paths and values are percent-decoded. Parameters, all optional:
    ///
    /// | Parameter | Sets |
    /// | --- | --- |
    /// | `db=0` | [`RedisOptions::db`], if the path does not |
    /// | `op_timeout_ms=500` | [`RedisOptions::read_timeout`], and twice that as [`RedisOptions::write_timeout`] |
    /// | `read_timeout_ms`, `write_timeout_ms`, `connect_timeout_ms`, `silence_max_ms`, `backoff_min_ms`, `backoff_max_ms` | the option of that name |
    /// | `spin_max_us=150` | [`RedisOptions::spin_max`] |
    /// | `enqueue_replicas=0` | [`RedisOptions::enqueue_replicas`] |
    /// | `tls_ca_file`, `tls_cert_file`, `tls_key_file`, `tls_server_name`, `tls_insecure=true` | [`Tls`] |
    /// | `master`, `node_user`, `node_password` | for sentinels, see above |
    ///
    /// # Errors
    /// [`Error::BadOptions`] with all problems at once.
    pub fn from_url(url: &str) -> Result<Self, Error> {
        Self::gather(Some(url), |_| None)
    }

    /// Reads the environment, and nothing else. An empty variable counts as absent.
    ///
    /// | Variable | Sets |
    /// | --- | --- |
    /// | `REDIS_ADDR` | `host:port`, or any URL of [`RedisOptions::from_url`]; required |
    /// | `REDIS_USERNAME`, `REDIS_PASSWORD` | [`RedisOptions::login`] |
    /// | `REDIS_DB` | [`RedisOptions::db`] |
    /// | `REDIS_USE_TLS=true` | turns TLS on |
    /// | `REDIS_TLS_SERVER_NAME`, `REDIS_TLS_INSECURE_SKIP_VERIFY=true` | [`Tls::server_name`], [`Tls::insecure`] |
    /// | `REDIS_TLS_CA_FILE`, `REDIS_TLS_CERT_FILE`, `REDIS_TLS_KEY_FILE` | the files of [`Tls`] |
    /// | `WEKNORA_REDIS_OP_TIMEOUT_MS` | as `op_timeout_ms` in a URL |
    ///
    /// A value that cannot be understood is refused, where `WeKnora` would quietly take database 0 or 500 ms.
    ///
    /// # Errors
    /// [`Error::BadOptions`] with all problems at once.
    pub fn from_env() -> Result<Self, Error> {
        Self::gather(None, env::process)
    }

    /// Reads a URL, and lets the environment fill what it leaves open.
    ///
    /// What the URL says wins, name by name; `REDIS_ADDR` is not looked at. Two things are not single names: a URL that
    /// carries a password is not given another user, and TLS is on if either asks for it.
    ///
    /// # Errors
    /// [`Error::BadOptions`] with all problems at once.
    pub fn from_url_and_env(url: &str) -> Result<Self, Error> {
        Self::gather(Some(url), env::process)
    }

    /// What is reached, without users and passwords, such as `redis:127.0.0.1:6379/0`. Fit for logs and messages.
    #[must_use]
    pub fn describe(&self) -> String {
        let s = if self.tls.is_some() { "s" } else { "" };
        let list = |all: &[Address]| all.iter().map(Address::to_string).collect::<Vec<_>>().join(",");
        match &self.endpoint {
            Endpoint::Single(at) => format!("redis{s}:{at}/{}", self.db),
            Endpoint::Sentinel { sentinels, master, .. } => {
                format!("redis{s}-sentinel:{master}@{}/{}", list(sentinels), self.db)
            }
            Endpoint::Cluster { seeds } => format!("redis{s}-cluster:{}", list(seeds)),
        }
    }

    /// Everything from one or two places; the parts of a URL are told from those of the environment in messages.
    fn gather(url: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let mut problems = Vec::new();
        let draft = match url {
            Some(url) => url::read(url, &mut problems).or(env::read(false, &variable, &mut problems)),
            None => env::read(true, &variable, &mut problems),
        };
        let options = draft.finish(&mut problems);
        match options {
            Some(options) if problems.is_empty() => Ok(options),
            _ => Err(Error::BadOptions { problems }),
        }
    }

    /// What cannot be, however the options were made.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let problems = draft::contradictions(self);
        if problems.is_empty() { Ok(()) } else { Err(Error::BadOptions { problems }) }
    }
}

#[cfg(test)]
mod tests;
