//! The scenarios, a file each.

pub(crate) mod drain;
pub(crate) mod enqueue;
pub(crate) mod idle;
pub(crate) mod isolation;
pub(crate) mod pickup;
