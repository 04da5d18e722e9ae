//! Servers that forget, refuse, fill up, change their role or lose what they said: nothing is lost, done twice or stuck, and the
//! error says what it was.
//!
//! | File | Its one duty |
//! | --- | --- |
//! | `calls` | what workers and producers ask, cut off at any byte |
//! | `upkeep` | the same for what time does to tasks |
//! | `operations` | the same for what people do by hand |
//! | `server` | a server that is full, forgetful, a replica or holds rubbish |
//! | `sound` | the look at all keys that ends these tests sees what is wrong |
//! | `scene` | a server, a proxy that cuts, a store behind it, a clock |

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod calls;
mod operations;
mod scene;
mod server;
mod sound;
#[path = "../stage/mod.rs"]
mod stage;
mod upkeep;

use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::{Error, Inspect};
use poolwright_conformance::builders::queues;
use poolwright_store_redis::{RedisOptions, RedisStore};

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// The options of a store that is cut off again and again, so it does not wait long before it connects anew.
fn eager(url: &str) -> RedisOptions {
    let mut options = RedisOptions::from_url(url).unwrap();
    (options.backoff_min, options.backoff_max) = (Duration::from_millis(1), Duration::from_millis(4));
    // Thousands of tasks at once on a busy machine take their time; what is cut tells at once.
    (options.read_timeout, options.write_timeout) = (PATIENCE, PATIENCE);
    options
}

async fn open(url: &str) -> Arc<RedisStore> {
    RedisStore::open(eager(url)).await.unwrap()
}

async fn numbers(store: &RedisStore) -> (u64, u64, u64) {
    let stats = store.queue_stats(queues(&["q"])).await.unwrap().remove(0);
    (stats.pending, stats.active, stats.processed)
}

/// Sends each call again whose answer was lost, as the worker does.
async fn until_answered<T>(mut call: impl AsyncFnMut() -> Result<T, Error>) -> T {
    loop {
        match call().await {
            Ok(answer) => return answer,
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }
}
