//! The steps: what is done with one task, or one list, in an open transaction. One verb a file.
//!
//! Invariant: a step decides before its first write. When it refuses it has written nothing; when SQLite fails half way
//! the whole transaction is undone.

pub(crate) mod claim;
pub(crate) mod enqueue;
pub(crate) mod exit;
pub(crate) mod follow;
pub(crate) mod lease;
pub(crate) mod operate;
pub(crate) mod promote;
pub(crate) mod quarantine;
pub(crate) mod queue;
pub(crate) mod reconcile;
pub(crate) mod record;
pub(crate) mod server;
pub(crate) mod settle;
pub(crate) mod store;
pub(crate) mod sweep;

#[cfg(test)]
mod tests;
