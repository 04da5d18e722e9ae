//! Tasks and calls in few words.

use std::time::Duration;

use poolwright_broker::{ClaimId, ClaimRequest, Demand, Held, WeightedQueue};
use poolwright_core::{Chance, NewTask, PoolName, QueueName, Settlement, TaskId, TaskKey, TypeName};

pub(crate) fn queue() -> QueueName {
    QueueName::new("default").unwrap()
}

pub(crate) fn key(id: &str) -> TaskKey {
    TaskKey::new(queue(), TaskId::new(id).unwrap())
}

pub(crate) fn task(id: &str) -> NewTask {
    NewTask::new(queue(), TaskId::new(id).unwrap(), TypeName::new("x:y").unwrap(), &b"{}"[..])
}

pub(crate) fn request(slots: u32, chance: &Chance) -> ClaimRequest {
    let queues = vec![WeightedQueue { queue: queue(), weight: 1 }];
    let demand = Demand { pool: PoolName::new("core").unwrap(), slots, queues, seed: chance.next() };
    ClaimRequest {
        id: ClaimId::fresh(chance),
        resent: false,
        lease: Duration::from_secs(30),
        demands: vec![demand],
    }
}

pub(crate) fn done(task: &poolwright_core::TaskRecord) -> (Held, Settlement) {
    (Held::of(task).unwrap(), Settlement::Complete { retain_for: Duration::ZERO, result: None })
}
