//! Queues on which Go servers work, too: what we do there as they would.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use poolwright_core::QueueName;

/// What asynq's leases last. Its servers take over whatever their own clock shows 30 s past, so beside them a lease of ours lasts
/// as long: then it takes a clock that is wrong by a minute to take a task from its living worker.
const GO_LEASE: Duration = Duration::from_secs(30);

/// The queues on which Go servers work, as the last heartbeat found them.
#[derive(Default)]
pub(crate) struct SharedQueues(Mutex<Arc<HashSet<QueueName>>>);

impl SharedQueues {
    /// These are the queues on which Go servers work now.
    pub(crate) fn note(&self, queues: HashSet<QueueName>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(queues);
    }

    /// For each of these queues whether Go servers work on it.
    pub(crate) fn among(&self, queues: &[QueueName]) -> Vec<bool> {
        let shared = Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner));
        queues.iter().map(|queue| shared.contains(queue)).collect()
    }
}

/// How long a lease of this length lasts, on a queue that is shared with Go servers or not.
pub(crate) fn lease_of(lease: Duration, shared: bool) -> Duration {
    if shared { lease.max(GO_LEASE) } else { lease }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_beside_go_servers_lasts_as_long_as_theirs() {
        let (default, patient) = (QueueName::new("default").unwrap(), Duration::from_secs(60));
        let shared = SharedQueues::default();
        shared.note(HashSet::from([default.clone()]));
        assert_eq!(shared.among(&[default, QueueName::new("core").unwrap()]), [true, false]);
        assert_eq!(lease_of(Duration::from_secs(10), false), Duration::from_secs(10));
        assert_eq!(lease_of(Duration::from_secs(10), true), GO_LEASE);
        assert_eq!(lease_of(patient, true), patient);
    }
}
