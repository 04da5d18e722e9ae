//! The scenarios, a file each.

pub(crate) mod redis;
pub(crate) mod sqlite;
