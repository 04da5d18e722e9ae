//! The whole demo over real folders: six pools, a store, handlers, the wiki.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bad_files;
mod pipeline;
mod place;
mod queues;
mod trouble;
