//! From what the file of queues says to what a worker is told: the only file that knows the registry.

use poolwright_broker::{ArchiveLimits, WeightedQueue};
use poolwright_core::PoolName;
use poolwright_registry::{self as registry, Topology};

use crate::{Borrow, Borrowed, Builder, Options, PoolConfig, Rules};

impl Builder {
    /// Takes over everything the file says: the pools that run here, the rules of all types, the limits of all
    /// queues (this process keeps all of them in order, whichever pools it runs), and the times.
    ///
    /// Call it before [`Builder::options`] to have the last word on the times.
    pub fn topology(self, topology: &Topology, runs_here: impl Fn(&PoolName) -> bool) -> Self {
        let pools = topology.pools().iter().filter(|pool| runs_here(&pool.name));
        self.pools(pools.map(|pool| PoolConfig::from(&**pool)))
            .rules(Rules::from(topology))
            .limits(topology.queues().iter().map(|queue| limits(queue)))
            .options(Options::from(topology.runtime()))
    }
}

impl From<&registry::Pool> for PoolConfig {
    fn from(pool: &registry::Pool) -> Self {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let weighted = |weighted: &registry::Weighted| WeightedQueue {
            queue: weighted.queue.stored.clone(),
            weight: weighted.weight,
        };
        let borrowed =
            |lent: &registry::Weighted| Borrowed { queue: weighted(lent), home: lent.queue.home.clone() };
        Self {
            name: pool.name.clone(),
            workers: count(*pool.workers),
            threads: pool.threads.map(count),
            owns: pool.owns.iter().map(weighted).collect(),
            borrows: pool.borrows.iter().map(borrowed).collect(),
            borrow: match pool.borrow {
                registry::Borrow::Always => Borrow::Always,
                registry::Borrow::WhenHomeIsFull => Borrow::WhenHomeIsFull,
            },
        }
    }
}

impl From<&Topology> for Rules {
    fn from(topology: &Topology) -> Self {
        let types = topology.types().iter();
        types.fold(Self::default(), |rules, task| rules.with(task.name.clone(), task.policy.clone()))
    }
}

impl From<&registry::Runtime> for Options {
    fn from(runtime: &registry::Runtime) -> Self {
        Self {
            lease: runtime.lease,
            beat_every: runtime.heartbeat,
            beat_lasts: runtime.heartbeat * 2,
            grace: runtime.grace,
            stop_grace: runtime.stop_grace,
            max_stall: runtime.max_stall,
            ..Self::default()
        }
    }
}

fn limits(queue: &registry::Queue) -> ArchiveLimits {
    ArchiveLimits {
        queue: queue.stored.clone(),
        tasks_max: queue.archive_max as u64,
        age_max: queue.archive_for,
        // Set where a sink is set.
        spare_unrecorded: false,
    }
}

#[cfg(test)]
mod tests {
    use poolwright_core::{QueueName, TypeName};

    use super::*;

    #[test]
    fn a_file_becomes_pools_rules_and_times() {
        let text = r#"
            version = 1
            [runtime]
            lease = "20s"
            [pools.core]
            workers = 8
            threads = 2
            queues = { default = 1, low = 3 }
            [pools.shared]
            workers = 6
            borrows = { default = 2 }
            borrow = "when_home_is_full"
            [queues.low]
            stored = "old_low"
            [tasks."a:b"]
            queue = "low"
            max_crashes = 7
        "#;
        let (topology, _) = Topology::parse("queues.toml", text).unwrap();
        let pools: Vec<_> = topology.pools().iter().map(|pool| PoolConfig::from(&**pool)).collect();
        let weighted = |name: &str, weight| WeightedQueue { queue: QueueName::new(name).unwrap(), weight };
        assert_eq!((pools[0].workers, pools[0].threads), (8, Some(2)));
        assert_eq!(pools[0].owns, [weighted("default", 1), weighted("old_low", 3)]);
        let home = PoolName::new("core").unwrap();
        assert_eq!(pools[1].borrows, [Borrowed { queue: weighted("default", 2), home }]);
        assert_eq!((pools[1].borrow, pools[1].threads), (Borrow::WhenHomeIsFull, None));
        let name = TypeName::new("a:b").unwrap();
        let rules = Rules::from(&topology);
        assert_eq!(rules.of(&name).max_crashes, 7);
        assert!(!rules.knows(&TypeName::new("c:d").unwrap()));
        assert_eq!(Options::from(topology.runtime()).lease.as_secs(), 20);
    }
}
