//! The store on Redis, on the layout of Go's `asynq`, so that producers, workers and screens of both sides share queues.
//!
//! So far it holds the two modules on which everything else stands: what keys are called and what messages look like. Nothing
//! else may spell a key or know a field number.
//!
//! | File | Its one duty |
//! | --- | --- |
//! | `keys` | the name of every key and channel |
//! | `wire` | the messages, as asynq writes and reads them |

mod error;
pub mod keys;
pub mod link;
pub mod options;
pub mod wire;
