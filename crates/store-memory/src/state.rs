//! What the store knows: the queues and the servers, as plain structures under one lock.
//!
//! Invariant: queues share nothing but the count of claims. Whatever happens to a task happens in its [`Queue`], in one
//! call.

mod attempt;
mod count;
mod entry;
mod index;
mod lock;
mod look;
mod operate;
mod queue;
mod submit;
mod upkeep;

use std::collections::BTreeMap;

use poolwright_broker::{ServerBeat, ServerId};
use poolwright_core::{QueueName, Timestamp};

pub(crate) use attempt::Claimant;
pub(crate) use count::Counters;
pub(crate) use look::Place;
pub(crate) use queue::Queue;

/// Everything.
#[derive(Debug, Default)]
pub(crate) struct Content {
    pub(crate) queues: BTreeMap<QueueName, Queue>,
    /// The last heartbeats, and until when each lasts.
    pub(crate) servers: BTreeMap<ServerId, (ServerBeat, Timestamp)>,
    last_turn: i64,
}

impl Content {
    /// The queue of this name; an empty one appears where there was none.
    pub(crate) fn queue(&mut self, name: &QueueName) -> &mut Queue {
        // Two look-ups instead of a cloned name for each call on a queue that is there.
        if !self.queues.contains_key(name) {
            self.queues.insert(name.clone(), Queue::new(name.clone()));
        }
        self.queues.get_mut(name).expect("it was there or was put there")
    }

    /// The place of the next claimed task among all that ever were: a claim takes from many queues, and its order is one.
    pub(crate) const fn next_turn(&mut self) -> i64 {
        self.last_turn += 1;
        self.last_turn
    }

    /// The queues that got something to wait for since the last call.
    pub(crate) fn take_woken(&mut self) -> Vec<QueueName> {
        let woken =
            self.queues.values_mut().filter_map(|queue| queue.take_woken().then(|| queue.name().clone()));
        woken.collect()
    }
}
