//! Pools that turn claims into settlements.
//!
//! ```text
//!            slot        claim          call            result        judge          store
//!   pool ──► permit ──► Attempt ──► services.find ──► Ending ──► settle ──► core::verdict ──► settled ──► dead letter
//!     ▲                   │  on the pool's threads       │                                      │
//!     │                   └── roster ◄── keeper, cancel, bounds, heartbeats                     │
//!     └──────────────────────────── the permit comes back ◄─────────────────────────────────────┘
//! ```
//!
//! A worker has a *control thread*, on which everything but handlers runs (claims, leases, settlements, upkeep), and
//! threads for each pool, on which nothing but handlers runs. So handlers may block, panic, ignore their deadline or spawn
//! and forget: leases are kept, other pools go on, and no slot leaks.
//!
//! ```
//! use std::sync::Arc;
//! use poolwright_broker::{Submit, WeightedQueue};
//! use poolwright_core::{BoxError, Chance, NewTask, PoolName, QueueName, TaskId, TypeName, clock::SystemClock};
//! use poolwright_handler::{Raw, States};
//! use poolwright_store_memory::MemoryStore;
//! use poolwright_worker::{PoolConfig, Router, Rules, Server};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), BoxError> {
//! let store = MemoryStore::new(Arc::new(SystemClock), Chance::from_entropy());
//! let queue = QueueName::new("default")?;
//! let task = NewTask::new(queue.clone(), TaskId::new("a1")?, TypeName::new("greet")?, "world");
//! store.enqueue(vec![task]).await?;
//!
//! let mut pool = PoolConfig::new(PoolName::new("core")?, 8);
//! pool.owns.push(WeightedQueue { queue, weight: 1 });
//! let mut router = Router::new();
//! router.handle_as("greet", |name: Raw| async move {
//!     println!("hello, {}", String::from_utf8_lossy(&name.bytes));
//!     Ok::<_, BoxError>(())
//! });
//! let handlers = router.build([&pool.name], &Rules::default(), &States::default())?;
//!
//! let running = Server::builder(store).pools([pool]).services(Arc::new(handlers)).start()?;
//! running.until(|status| status.counts.completed == 1).await; // or `until_signal`
//! running.stop();
//! assert_eq!(running.wait().await.unsettled, 0);
//! # Ok(()) }
//! ```
//!
//! | File | Its one duty |
//! | --- | --- |
//! | `server` | from a description to a running worker and its end |
//! | `control` | all loops start and end, in an order that loses nothing |
//! | `pool`, `pool/*` | free workers become claims; what may be borrowed; sleeping until there is work |
//! | `attempt`, `attempt/*` | a claimed task on its way through its handler; its bounds; how it ended |
//! | `desk`, `inbox` | results out and tasks in, in one call to the store |
//! | `settle` | ends become settlements, until the store has them |
//! | `keeper` | leases |
//! | `cancel` | who is at work here, and how a cancellation finds them |
//! | `upkeep/*` | due tasks, dead workers, retention, heartbeats, dead letters |
//! | `router` | from a type to its service |

#[macro_use]
mod tell;

mod attempt;
mod backoff;
mod cancel;
mod config;
mod contact;
mod control;
mod desk;
mod error;
mod inbox;
mod keeper;
mod options;
mod pool;
mod router;
mod server;
mod settle;
mod signals;
mod site;
mod status;
mod threads;
mod topology;
mod upkeep;

pub use config::{Borrow, Borrowed, PoolConfig, Rules};
pub use error::{Error, Problem};
pub use options::Options;
pub use router::{Router, Routes, Services};
pub use server::{Builder, Running, Server};
pub use status::{Counts, Phase, PoolStatus, Report, Status};
