//! The store on Redis, on the layout of Go's `asynq`, so that producers, workers and screens of both sides share queues.
//!
//! Whatever is decided is decided in a script, one a step (`lua/*.lua`), by the server's clock; Rust draws lots, builds messages and
//! reads answers.
//!
//! | File | Its one duty |
//! | --- | --- |
//! | `options`, `link` | how Redis is reached |
//! | `keys` | the name of every key and channel |
//! | `wire`, `message`, `notes` | messages as asynq writes and reads them, and our header in them |
//! | `script`, `reply` | scripts, and what they answer |
//! | `record` | a stored task as the contract shows it |
//! | `submit`, `durable` | [`Submit`](poolwright_broker::Submit) |
//! | `dispatch`, `claim` | [`Dispatch`](poolwright_broker::Dispatch) |
//! | `upkeep`, `reconcile`, `servers` | [`Upkeep`](poolwright_broker::Upkeep) |
//! | `inspect`, `operate`, `page` | [`Inspect`](poolwright_broker::Inspect) |
//! | `groups`, `schedulers` | what only asynq has, or has in a form of its own |
//! | `feed`, `bells`, `waiter` | [`Signal`](poolwright_broker::Signal) |

mod bells;
mod claim;
mod dispatch;
mod durable;
mod error;
mod feed;
mod gather;
pub mod groups;
mod held;
mod inspect;
pub mod keys;
pub mod link;
mod message;
mod notes;
mod operate;
pub mod options;
mod page;
mod reconcile;
mod record;
mod reply;
pub mod schedulers;
mod script;
mod servers;
mod settle;
mod shared;
mod store;
mod submit;
mod time;
mod upkeep;
mod waiter;
pub mod wire;

pub use error::Error;
pub use options::RedisOptions;
pub use store::RedisStore;
