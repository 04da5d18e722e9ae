//! The cases, one topic a file.

pub(crate) mod archive;
pub(crate) mod batch;
pub(crate) mod bulk;
pub(crate) mod cancel;
pub(crate) mod claim;
pub(crate) mod close;
pub(crate) mod concurrency;
pub(crate) mod counters;
pub(crate) mod durable;
pub(crate) mod follow_up;
pub(crate) mod ids;
pub(crate) mod index;
pub(crate) mod lease;
pub(crate) mod operator;
pub(crate) mod paging;
pub(crate) mod payload;
pub(crate) mod poison;
pub(crate) mod queues;
pub(crate) mod retention;
pub(crate) mod retry;
pub(crate) mod schedule;
pub(crate) mod servers;
pub(crate) mod settle;
pub(crate) mod signals;
pub(crate) mod submit;
pub(crate) mod unique;
