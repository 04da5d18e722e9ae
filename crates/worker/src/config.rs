//! What a worker is told about its pools and task types: plain data, from a topology or made by hand.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use poolwright_broker::WeightedQueue;
use poolwright_core::{Policy, PoolName, QueueName, TypeName};

use crate::Problem;

/// A pool: a name, workers, weighted queues. An elastic pool is one that borrows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolConfig {
    /// Its name.
    pub name: PoolName,
    /// How many tasks it runs at once, at least 1.
    pub workers: u32,
    /// How many threads its handlers share; none: one for each worker, up to [`crate::Options::threads_max`].
    pub threads: Option<u32>,
    /// The queues it is home to.
    pub owns: Vec<WeightedQueue>,
    /// Queues of other pools that it takes from as well.
    pub borrows: Vec<Borrowed>,
    /// When it takes from the queues that it borrows.
    pub borrow: Borrow,
}

impl PoolConfig {
    /// A pool without queues, threads by default, which borrows always.
    #[must_use]
    pub const fn new(name: PoolName, workers: u32) -> Self {
        Self { name, workers, threads: None, owns: Vec::new(), borrows: Vec::new(), borrow: Borrow::Always }
    }

    /// All queues it may ever take from, own ones first.
    pub(crate) fn queues(&self) -> impl Iterator<Item = &WeightedQueue> {
        self.owns.iter().chain(self.borrows.iter().map(|borrowed| &borrowed.queue))
    }

    fn problems(&self) -> Vec<Problem> {
        let pool = || self.name.clone();
        let mut problems = Vec::new();
        for (count, what) in [(Some(self.workers), "workers"), (self.threads, "threads")] {
            if count == Some(0) {
                problems.push(Problem::Zero { pool: pool(), what });
            }
        }
        if self.queues().next().is_none() {
            problems.push(Problem::NoQueues { pool: pool() });
        }
        let mut seen = BTreeSet::new();
        let twice = self.queues().filter(|queue| !seen.insert(&queue.queue));
        problems.extend(twice.map(|queue| Problem::QueueTwice { pool: pool(), queue: queue.queue.clone() }));
        problems
    }
}

/// What is wrong with these pools, all at once.
pub(crate) fn problems(pools: &[PoolConfig]) -> Vec<Problem> {
    if pools.is_empty() {
        return vec![Problem::NoPools];
    }
    let mut seen = BTreeSet::new();
    let twice = pools.iter().filter(|pool| !seen.insert(&pool.name));
    let twice: Vec<_> = twice.map(|pool| Problem::PoolTwice { pool: pool.name.clone() }).collect();
    twice.into_iter().chain(pools.iter().flat_map(PoolConfig::problems)).collect()
}

/// A queue that a pool borrows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Borrowed {
    /// The queue, and how often this pool draws it.
    pub queue: WeightedQueue,
    /// The pool that owns it.
    pub home: PoolName,
}

/// When a pool takes from the queues it borrows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Borrow {
    /// Whenever it has a free worker.
    #[default]
    Always,
    /// Only while no worker of the queue's home pool is free, in this process or, where the pool does not run here,
    /// in all others by their heartbeats. When that is unknown, as well.
    WhenHomeIsFull,
}

/// The rules of the task types.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    types: HashMap<TypeName, Arc<Policy>>,
    others: Arc<Policy>,
}

impl Rules {
    /// Rules that declare no type: any name may have a handler, and all follow this policy.
    #[must_use]
    pub fn new(others: Policy) -> Self {
        Self { types: HashMap::new(), others: Arc::new(others) }
    }

    /// Declares a type. From the first one on, handlers of types that were not declared are refused; tasks of such
    /// types may still come from the store, and follow the policy of [`Rules::new`].
    #[must_use]
    pub fn with(mut self, task_type: TypeName, policy: impl Into<Arc<Policy>>) -> Self {
        self.types.insert(task_type, policy.into());
        self
    }

    /// The policy of a type.
    #[must_use]
    pub fn of(&self, task_type: &TypeName) -> &Arc<Policy> {
        self.types.get(task_type).unwrap_or(&self.others)
    }

    /// A handler may be for this type.
    #[must_use]
    pub fn knows(&self, task_type: &TypeName) -> bool {
        self.types.is_empty() || self.types.contains_key(task_type)
    }
}

/// Every queue of these pools, once, in order of name.
pub(crate) fn queues_of(pools: &[PoolConfig]) -> BTreeSet<QueueName> {
    pools.iter().flat_map(PoolConfig::queues).map(|queue| queue.queue.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(name: &str, workers: u32, queues: &[&str]) -> PoolConfig {
        let weighted = |name: &&str| WeightedQueue { queue: QueueName::new(name).unwrap(), weight: 1 };
        let mut pool = PoolConfig::new(PoolName::new(name).unwrap(), workers);
        pool.owns = queues.iter().map(weighted).collect();
        pool
    }

    #[test]
    fn every_mistake_of_every_pool_is_named() {
        let pools = [pool("a", 0, &["q", "q"]), pool("b", 1, &[]), pool("a", 1, &["r"])];
        let said: Vec<_> = problems(&pools).iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "pool a was given twice",
                "pool a has no workers, expected at least 1",
                "pool a names queue q twice",
                "pool b neither owns nor borrows a queue",
            ]
        );
        assert_eq!(problems(&[]), [Problem::NoPools]);
        assert!(problems(&[pool("a", 1, &["q"])]).is_empty());
    }

    #[test]
    fn rules_without_types_know_all_and_rules_with_types_know_theirs() {
        let (a, b) = (TypeName::new("a").unwrap(), TypeName::new("b").unwrap());
        assert!(Rules::default().knows(&a));
        let special = Policy { max_crashes: 9, ..Policy::default() };
        let rules = Rules::default().with(a.clone(), special);
        assert!(rules.knows(&a) && !rules.knows(&b));
        assert_eq!((rules.of(&a).max_crashes, rules.of(&b).max_crashes), (9, 3));
    }
}
