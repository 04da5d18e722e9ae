//! From a URL to the stores of tasks and of durable records. The only place that names concrete stores.
//!
//! | URL | tasks | durable records | feature |
//! | --- | --- | --- | --- |
//! | `sqlite://PATH`, `sqlite:PATH` | in the file | in the same file | `sqlite` |
//! | `redis://HOST`, `rediss://…`, `redis+unix://…`, `redis-sentinel://…`, `redis-cluster://…` | on Redis | in the SQLite file `poolwright.db` of the working directory, unless another ledger is named | `redis` |
//! | `memory:` | in this process, lost at its end | likewise | `memory` |
//!
//! Redis keeps tasks, and forgets what has ended; durable records want a database. Decision 0010 says more.

use std::fmt;
use std::sync::Arc;

use poolwright_broker::Broker;
use poolwright_core::clock::SystemClock;
use poolwright_core::{Chance, Clock};
use poolwright_ledger::Ledger;

use crate::Error;

/// Where durable records are when tasks are on Redis and no ledger is named: a file in the working directory.
pub const LEDGER: &str = "sqlite://poolwright.db";

/// A store of tasks, and a ledger of what outlives them. Cloning shares both.
#[derive(Clone)]
pub struct Stores {
    /// Where tasks are.
    pub broker: Arc<dyn Broker>,
    /// Where dead letters and settings are.
    pub ledger: Arc<dyn Ledger>,
}

impl Stores {
    /// Opens the store of this URL, and its own ledger or that of another URL. Redis has none of its own: unless one is named,
    /// it is [`LEDGER`].
    ///
    /// Every `memory:` is a new one that nobody else sees.
    ///
    /// # Errors
    /// [`Error::UnknownStore`], [`Error::Sqlite`], [`Error::Redis`].
    pub async fn open(broker: &str, ledger: Option<&str>) -> Result<Self, Error> {
        Self::open_with(broker, ledger, Arc::new(SystemClock), Chance::from_entropy()).await
    }

    /// Whether the store of this URL keeps tasks alone, so that durable records are elsewhere: see [`LEDGER`].
    #[must_use]
    pub fn keeps_tasks_alone(url: &str) -> bool {
        url.split_once(':').is_some_and(|(scheme, _)| is_redis(scheme))
    }

    /// Whether there is a store at this URL already: opening one that is not there makes it. One in memory never is; a server
    /// counts as there, and opening it tells whether it answers.
    ///
    /// A path that cannot be looked at counts as there, so that opening it tells why.
    ///
    /// # Errors
    /// [`Error::UnknownStore`], [`Error::Sqlite`] and [`Error::Redis`] when the URL is none of a store.
    pub fn is_there(url: &str) -> Result<bool, Error> {
        match scheme(url)? {
            #[cfg(feature = "sqlite")]
            "sqlite" => {
                let path = poolwright_store_sqlite::Options::from_url(url)?.path;
                Ok(path.try_exists().unwrap_or(true))
            }
            #[cfg(feature = "redis")]
            scheme if is_redis(scheme) => {
                poolwright_store_redis::RedisOptions::from_url(url)?;
                Ok(true)
            }
            #[cfg(feature = "memory")]
            "memory" => nameless(url).map(|()| false),
            other => Err(unknown(missing(other))),
        }
    }

    pub(crate) async fn open_with(
        broker: &str,
        ledger: Option<&str>,
        clock: Arc<dyn Clock>,
        chance: Chance,
    ) -> Result<Self, Error> {
        let kept = open(broker, clock.clone(), chance.clone()).await?;
        let url = match (ledger, kept.ledger) {
            (Some(url), _) if url != broker => url,
            (_, Some(ledger)) => return Ok(Self { broker: kept.broker, ledger }),
            _ => LEDGER,
        };
        let ledger = open(url, clock, chance).await?.ledger;
        let none =
            || unknown(format!("{} keeps no durable records, name another ledger", kept.broker.describe()));
        Ok(Self { ledger: ledger.ok_or_else(none)?, broker: kept.broker })
    }

    /// Opens the store of tasks alone, for programs that keep no records.
    ///
    /// # Errors
    /// As [`Stores::open`].
    pub async fn open_broker(url: &str) -> Result<Arc<dyn Broker>, Error> {
        Ok(open(url, Arc::new(SystemClock), Chance::from_entropy()).await?.broker)
    }

    /// Empty stores in memory with this clock; `chance` makes the tokens.
    #[cfg(feature = "memory")]
    #[must_use]
    pub fn memory(clock: Arc<dyn Clock>, chance: Chance) -> Self {
        use poolwright_store_memory::{MemoryLedger, MemoryStore};
        Self { broker: MemoryStore::new(clock.clone(), chance), ledger: MemoryLedger::new(clock) }
    }
}

impl fmt::Debug for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stores")
            .field("broker", &self.broker.describe())
            .field("ledger", &self.ledger.describe())
            .finish()
    }
}

/// What is at a URL.
struct Kept {
    broker: Arc<dyn Broker>,
    /// None where there are tasks alone.
    ledger: Option<Arc<dyn Ledger>>,
}

async fn open(url: &str, clock: Arc<dyn Clock>, chance: Chance) -> Result<Kept, Error> {
    match scheme(url)? {
        #[cfg(feature = "sqlite")]
        "sqlite" => sqlite(url, clock, chance).await,
        #[cfg(feature = "redis")]
        scheme if is_redis(scheme) => {
            // The server's clock rules.
            drop(clock);
            redis(url, chance).await
        }
        #[cfg(feature = "memory")]
        "memory" => {
            nameless(url)?;
            let Stores { broker, ledger } = Stores::memory(clock, chance);
            Ok(Kept { broker, ledger: Some(ledger) })
        }
        other => {
            // A build without any store has no use for them.
            drop((clock, chance));
            Err(unknown(missing(other)))
        }
    }
}

/// What stands before the first colon. What follows it may hold a password, so no message shows it.
fn scheme(url: &str) -> Result<&str, Error> {
    match url.split_once(':') {
        Some((scheme, _)) => Ok(scheme),
        None => Err(unknown(format!("`{url}` names no kind of store, did you mean `sqlite://{url}`?"))),
    }
}

#[cfg(feature = "memory")]
fn nameless(url: &str) -> Result<(), Error> {
    match url {
        "memory:" => Ok(()),
        _ => Err(unknown(format!("a store in memory has no name, expected `memory:` and got `{url}`"))),
    }
}

#[cfg(feature = "sqlite")]
async fn sqlite(url: &str, clock: Arc<dyn Clock>, chance: Chance) -> Result<Kept, Error> {
    use poolwright_store_sqlite::{Options, SqliteStore};
    let options = Options { clock, chance, ..Options::from_url(url)? };
    // Opening waits for the disk, and perhaps for another process.
    let opened = tokio::task::spawn_blocking(|| SqliteStore::open(options)).await;
    let store = opened.map_err(|why| Error::Failed { why: why.to_string() })??;
    Ok(Kept { broker: store.clone(), ledger: Some(store) })
}

#[cfg(feature = "redis")]
async fn redis(url: &str, chance: Chance) -> Result<Kept, Error> {
    use poolwright_store_redis::{RedisOptions, RedisStore};
    let options = RedisOptions { chance, ..RedisOptions::from_url_and_env(url)? };
    Ok(Kept { broker: RedisStore::open(options).await?, ledger: None })
}

/// The schemes of servers that speak as Redis does.
fn is_redis(scheme: &str) -> bool {
    ["redis", "rediss", "valkey", "valkeys"].contains(&scheme)
        || ["redis", "rediss", "valkey", "valkeys"]
            .iter()
            .any(|server| scheme.strip_prefix(server).is_some_and(|rest| rest.starts_with(['-', '+'])))
}

/// Why there is no store for this scheme.
fn missing(scheme: &str) -> String {
    match scheme {
        "sqlite" | "memory" => format!("this build has no `{scheme}:` store, its feature `{scheme}` is off"),
        scheme if is_redis(scheme) => {
            format!("this build has no `{scheme}:` store, its feature `redis` is off")
        }
        "postgres" | "postgresql" => {
            format!("there is no store for `{scheme}:` yet, it comes with a later release")
        }
        _ => format!("there is no store for `{scheme}:`"),
    }
}

fn unknown(why: String) -> Error {
    let known = [
        ("sqlite://PATH", cfg!(feature = "sqlite")),
        ("redis://HOST", cfg!(feature = "redis")),
        ("memory:", cfg!(feature = "memory")),
    ];
    let known: Vec<&str> = known.into_iter().filter(|(_, is_here)| *is_here).map(|(url, _)| url).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Error::UnknownStore { why, known }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal(url: &str) -> String {
        Stores::open(url, None).await.expect_err("the URL should be refused").to_string()
    }

    #[tokio::test]
    async fn an_unknown_store_is_refused_and_the_known_ones_are_named() {
        assert_eq!(
            refusal("tasks.db").await,
            "`tasks.db` names no kind of store, did you mean `sqlite://tasks.db`? (known are sqlite://PATH, redis://HOST, memory:)"
        );
        let kafka = refusal("kafka://me:secret@host").await;
        assert!(kafka.starts_with("there is no store for `kafka:` (known are "), "{kafka}");
        assert!(!kafka.contains("secret"));
        assert!(refusal("postgres://localhost").await.contains("comes with a later release"));
        let odd = refusal("redis://me:secret@localhost/many").await;
        assert!(odd.contains("options for Redis") && !odd.contains("secret"), "{odd}");
        assert!(refusal("memory:mine").await.contains("has no name"));
    }

    #[tokio::test]
    async fn a_mistake_in_a_sqlite_url_is_told_by_its_store() {
        assert!(refusal("sqlite://t.db?sync=off").await.contains("unknown parameter `sync`"));
    }

    #[tokio::test]
    async fn a_store_is_there_once_it_was_opened() {
        let here = tempfile::tempdir().expect("a directory for the test");
        let url = format!("sqlite://{}", here.path().join("deep/tasks.db").display());
        assert!(!Stores::is_there(&url).expect("a good URL"));
        assert!(!here.path().join("deep").exists(), "looking made something");
        Stores::open(&url, None).await.expect("a new file");
        assert!(Stores::is_there(&url).expect("a good URL"));
        assert!(!Stores::is_there("memory:").expect("a good URL"));
        assert!(Stores::is_there("redis://localhost").expect("a good URL"), "a server is no file to be made");
        for bad in ["tasks.db", "postgres://localhost", "redis://localhost/many", "sqlite://", "memory:mine"]
        {
            assert!(Stores::is_there(bad).is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn the_ledger_is_beside_the_tasks_unless_it_is_named() {
        let here = tempfile::tempdir().expect("a directory for the test");
        let url = |name: &str| format!("sqlite://{}", here.path().join(name).display());
        let both = Stores::open(&url("tasks.db"), None).await.expect("a new file");
        assert_eq!(both.broker.describe(), both.ledger.describe());
        let apart = Stores::open("memory:", Some(&url("ledger.db"))).await.expect("a new file");
        assert_eq!(apart.broker.describe(), "memory");
        assert!(apart.ledger.describe().ends_with("ledger.db"));
        let text = format!("{apart:?}");
        assert!(text.contains("ledger.db"), "{text}");
    }
}
