//! Scenarios on Redis: producer, worker and server are processes of their own, and any system can play the parts.

pub(crate) mod drain;
pub(crate) mod enqueue;
