//! What the file says, in the words of the worker.

use std::time::Duration;

use poolwright_broker::{ArchiveLimits, WeightedQueue};
use poolwright_registry::{Borrow, Pool, Topology, Weighted};
use poolwright_worker::{Borrow as WorkerBorrow, Borrowed, Options, PoolConfig, Rules};

/// How long a heartbeat lasts at least.
const BEAT_LASTS_MIN: Duration = Duration::from_secs(10);

/// A pool, as the worker runs it.
pub(crate) fn pool(pool: &Pool) -> PoolConfig {
    let mut config = PoolConfig::new(pool.name.clone(), count(*pool.workers));
    config.threads = pool.threads.map(count);
    config.owns = pool.owns.iter().map(weighted).collect();
    config.borrows = pool
        .borrows
        .iter()
        .map(|borrowed| Borrowed { queue: weighted(borrowed), home: borrowed.queue.home.clone() })
        .collect();
    config.borrow = match pool.borrow {
        Borrow::Always => WorkerBorrow::Always,
        Borrow::WhenHomeIsFull => WorkerBorrow::WhenHomeIsFull,
    };
    config
}

/// The knobs that the file sets under `[runtime]`; the others as the worker has them.
pub(crate) fn options(topology: &Topology) -> Options {
    let runtime = topology.runtime();
    Options {
        lease: runtime.lease,
        stop_grace: runtime.stop_grace,
        max_stall: runtime.max_stall,
        grace: runtime.grace,
        beat_every: runtime.heartbeat,
        beat_lasts: (runtime.heartbeat * 2).max(BEAT_LASTS_MIN),
        ..Options::default()
    }
}

/// The rules by which attempts are judged.
pub(crate) fn rules(topology: &Topology) -> Rules {
    let types = topology.types().iter();
    types.fold(Rules::default(), |rules, of| rules.with(of.name.clone(), of.policy.clone()))
}

/// Every queue of the file, whichever pools run here: upkeep has no leader, so each process looks after all.
pub(crate) fn limits(topology: &Topology) -> Vec<ArchiveLimits> {
    let of_queue = topology.queues().iter().map(|queue| ArchiveLimits {
        queue: queue.stored.clone(),
        tasks_max: queue.archive_max as u64,
        age_max: queue.archive_for,
        spare_unrecorded: true,
    });
    of_queue.collect()
}

fn weighted(of: &Weighted) -> WeightedQueue {
    WeightedQueue { queue: of.queue.stored.clone(), weight: of.weight }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preset_becomes_six_pools_with_stored_names_and_homes() {
        let (topology, _) = Topology::parse("queues.toml", include_str!("../../../queues.toml")).unwrap();
        let pools: Vec<PoolConfig> = topology.pools().iter().map(|of| pool(of)).collect();
        assert_eq!(pools.len(), 6);
        let maintenance = pools.iter().find(|pool| pool.name == "maintenance").unwrap();
        assert_eq!(maintenance.owns[1].queue, "low");
        let shared = pools.iter().find(|pool| pool.name == "shared").unwrap();
        assert!(shared.owns.is_empty());
        assert_eq!((shared.borrows[0].queue.weight, shared.borrows[0].home.as_str()), (3, "core"));
        assert_eq!(limits(&topology).len(), 11);
    }

    #[test]
    fn a_heartbeat_outlasts_the_next_one() {
        let of = |lines: &str| {
            let builder = Topology::simple([("a", 1)]).task("t", "a").lines(lines);
            options(&builder.build().unwrap())
        };
        let quick = of("[runtime]\nheartbeat = \"1s\"\nlease = \"3s\"");
        assert_eq!((quick.beat_every, quick.beat_lasts), (Duration::from_secs(1), BEAT_LASTS_MIN));
        assert_eq!(quick.lease, Duration::from_secs(3));
        assert_eq!(of("[runtime]\nheartbeat = \"10s\"").beat_lasts, Duration::from_secs(20));
    }

    #[test]
    fn the_rules_of_a_type_reach_the_judge() {
        let builder = Topology::simple([("a", 1)]).task_with("t", "a", "max_crashes = 7");
        let rules = rules(&builder.build().unwrap());
        assert_eq!(rules.of(&"t".parse().unwrap()).max_crashes, 7);
        assert!(!rules.knows(&"u".parse().unwrap()));
    }
}
