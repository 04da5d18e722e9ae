//! From a URL to the stores of tasks and of durable records. The only place that names concrete stores.
//!
//! | URL | tasks | durable records | feature |
//! | --- | --- | --- | --- |
//! | `sqlite://PATH`, `sqlite:PATH` | in the file | in the same file | `sqlite` |
//! | `memory:` | in this process, lost at its end | likewise | `memory` |

use std::fmt;
use std::sync::Arc;

use poolwright_broker::Broker;
use poolwright_core::clock::SystemClock;
use poolwright_core::{Chance, Clock};
use poolwright_ledger::Ledger;

use crate::Error;

/// A store of tasks, and a ledger of what outlives them. Cloning shares both.
#[derive(Clone)]
pub struct Stores {
    /// Where tasks are.
    pub broker: Arc<dyn Broker>,
    /// Where dead letters and settings are.
    pub ledger: Arc<dyn Ledger>,
}

impl Stores {
    /// Opens the store of this URL, and its own ledger or that of another URL.
    ///
    /// Every `memory:` is a new one that nobody else sees.
    ///
    /// # Errors
    /// [`Error::UnknownStore`], [`Error::Sqlite`].
    pub async fn open(broker: &str, ledger: Option<&str>) -> Result<Self, Error> {
        Self::open_with(broker, ledger, Arc::new(SystemClock), Chance::from_entropy()).await
    }

    /// Whether there is a store at this URL already: opening one that is not there makes it. One in memory never is.
    ///
    /// A path that cannot be looked at counts as there, so that opening it tells why.
    ///
    /// # Errors
    /// [`Error::UnknownStore`] and [`Error::Sqlite`] when the URL is none of a store.
    pub fn is_there(url: &str) -> Result<bool, Error> {
        match scheme(url)? {
            #[cfg(feature = "sqlite")]
            "sqlite" => {
                let path = poolwright_store_sqlite::Options::from_url(url)?.path;
                Ok(path.try_exists().unwrap_or(true))
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
        let stores = open(broker, clock.clone(), chance.clone()).await?;
        match ledger {
            Some(url) if url != broker => {
                let ledger = open(url, clock, chance).await?.ledger;
                Ok(Self { ledger, ..stores })
            }
            _ => Ok(stores),
        }
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

async fn open(url: &str, clock: Arc<dyn Clock>, chance: Chance) -> Result<Stores, Error> {
    match scheme(url)? {
        #[cfg(feature = "sqlite")]
        "sqlite" => sqlite(url, clock, chance).await,
        #[cfg(feature = "memory")]
        "memory" => nameless(url).map(|()| Stores::memory(clock, chance)),
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
async fn sqlite(url: &str, clock: Arc<dyn Clock>, chance: Chance) -> Result<Stores, Error> {
    use poolwright_store_sqlite::{Options, SqliteStore};
    let options = Options { clock, chance, ..Options::from_url(url)? };
    // Opening waits for the disk, and perhaps for another process.
    let opened = tokio::task::spawn_blocking(|| SqliteStore::open(options)).await;
    let store = opened.map_err(|why| Error::Failed { why: why.to_string() })??;
    Ok(Stores { broker: store.clone(), ledger: store })
}

/// Why there is no store for this scheme.
fn missing(scheme: &str) -> String {
    match scheme {
        "sqlite" | "memory" => format!("this build has no `{scheme}:` store, its feature `{scheme}` is off"),
        "redis" | "rediss" | "valkey" | "postgres" | "postgresql" => {
            format!("there is no store for `{scheme}:` yet, it comes with a later release")
        }
        _ => format!("there is no store for `{scheme}:`"),
    }
}

fn unknown(why: String) -> Error {
    let known = [("sqlite://PATH", cfg!(feature = "sqlite")), ("memory:", cfg!(feature = "memory"))];
    let known: Vec<&str> = known.into_iter().filter(|(_, is_here)| *is_here).map(|(url, _)| url).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(" and ") };
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
            "`tasks.db` names no kind of store, did you mean `sqlite://tasks.db`? (known are sqlite://PATH and memory:)"
        );
        let kafka = refusal("kafka://me:secret@host").await;
        assert!(kafka.starts_with("there is no store for `kafka:` (known are "), "{kafka}");
        assert!(!kafka.contains("secret"));
        assert!(refusal("redis://localhost").await.contains("comes with a later release"));
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
        for bad in ["tasks.db", "redis://localhost", "sqlite://", "memory:mine"] {
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
