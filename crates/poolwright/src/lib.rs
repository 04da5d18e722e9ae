//! Background tasks in isolated pools: described in one file, kept in a SQLite file, run through `tower` layers.
//!
//! # From nothing to a running worker
//!
#![cfg_attr(feature = "sqlite", doc = "```no_run")]
#![cfg_attr(not(feature = "sqlite"), doc = "```text")]
#![doc = include_str!("../examples/quickstart.rs")]
//! ```
//!
//! With a file, `queues.toml`, instead of pools in code:
//!
//! ```toml
//! version = 1
//!
//! [pools.core]
//! workers = 8
//! queues = { mail = 3, reports = 1 }     # mail is drawn three times as often
//!
//! [tasks."mail:send"]
//! queue = "mail"
//! max_retry = 5
//! timeout = "30s"
//! ```
//!
//! ```no_run
//! use poolwright::prelude::*;
//!
//! # #[derive(Serialize, Deserialize, TaskType)]
//! # #[task("mail:send")]
//! # struct SendMail { to: String }
//! # async fn send_mail(_: SendMail) -> Result<(), BoxError> { Ok(()) }
//! # async fn f() -> Result<(), BoxError> {
//! Orchestrator::load("queues.toml")?      // refuses a file with a mistake, naming line and cure
//!     .broker("sqlite://tasks.db")
//!     .handle(send_mail)
//!     .run().await?;                      // until SIGTERM or Ctrl-C, then a graceful stop
//! # Ok(()) }
//! ```
//!
//! # Handlers
//!
//! A handler is an async function of one payload and, in any order, a [`Context`](handler::Context), a
//! [`State<T>`](handler::State) and a [`Client`]. It returns `Result<T, E>`: what serializes is kept as the task's result
//! if the type has a retention, and the error says what happens next.
//!
//! ```
//! use poolwright::prelude::*;
//!
//! #[derive(Serialize, Deserialize, TaskType)]
//! #[task("page:fetch")]
//! struct Fetch { url: String }
//!
//! # async fn get(url: &str) -> Result<String, BoxError> { Ok(url.to_owned()) }
//! async fn fetch(task: Fetch, cx: Context, State(agent): State<String>, client: Client) -> Result<(), BoxError> {
//!     let page = get(&task.url).await?;                                     // any error: retried by the type's policy
//!     if page.is_empty() {
//!         return Err(TaskError::permanent("the page is empty").into());     // never works: a dead letter now
//!     }
//!     cx.progress(0.5, "fetched").await;                                    // shown by the inspector
//!     cx.checkpoint()?;                                                     // stops here if cancelled or out of time
//!     client.task(&Fetch { url: page }).delay(Duration::from_secs(60)).send().await?;
//!     # let _ = agent;
//!     Ok(())
//! }
//! # let _ = poolwright::handler::service(fetch);
//! ```
//!
//! # Where to go on
//!
//! | You want to | See |
//! | --- | --- |
//! | run pools | [`Orchestrator`], [`Running`] |
//! | enqueue from another program | [`Client`], [`Connect`] |
//! | look, cancel, replay | [`TaskInspector`], [`inspector::Letters`] |
//! | say what an error means | [`TaskError`](core::TaskError) |
//! | put `tower` layers around handlers | [`Orchestrator::layer`] |
//! | test handlers and whole programs | [`testing`] |
//! | write `queues.toml` | [`registry`] |
//!
//! # Features
//!
//! | Feature | Default | Gives |
//! | --- | --- | --- |
//! | `sqlite` | yes | `sqlite://PATH` |
//! | `redis` | yes | `redis://HOST`, `rediss://`, sentinels, clusters: the layout of Go's asynq |
//! | `memory` | yes | `memory:` and the test kit |

mod assembly;
mod chain;
mod connect;
mod error;
mod orchestrator;
mod plan;
pub mod prelude;
mod running;
mod sink;
mod stores;
#[cfg(feature = "memory")]
pub mod testing;

pub use poolwright_broker as broker;
pub use poolwright_client as client;
pub use poolwright_core as core;
pub use poolwright_handler as handler;
pub use poolwright_inspector as inspector;
pub use poolwright_ledger as ledger;
pub use poolwright_middleware as middleware;
pub use poolwright_registry as registry;
pub use poolwright_worker as worker;

pub use connect::Connect;
pub use error::{Error, Problem};
pub use orchestrator::Orchestrator;
pub use poolwright_client::Client;
pub use poolwright_derive::{TaskType, Tasks};
pub use poolwright_inspector::TaskInspector;
pub use poolwright_registry::Topology;
pub use running::Running;
pub use stores::{LEDGER, Stores};

pub(crate) use assembly::inject;

/// What the README shows compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
