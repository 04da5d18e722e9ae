//! The loops that keep a store in order: idempotent, without a leader, the same in every process.
//!
//! | Loop | Does | When |
//! | --- | --- | --- |
//! | [`promote`] | due tasks become pending | at the next due time |
//! | [`reclaim`] | tasks of dead workers are judged | every second |
//! | [`sweep`] | what is kept long enough goes | every minute |
//! | [`beat`] | says that this process lives | every five seconds |
//! | [`letters`] | dead letters reach the sink, by every road | at once, and every minute what was missed |

pub(crate) mod beat;
pub(crate) mod letters;
pub(crate) mod promote;
pub(crate) mod reclaim;
pub(crate) mod sweep;
