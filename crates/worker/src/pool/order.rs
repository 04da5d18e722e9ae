//! Which queues a pool may take from at this moment.
//!
//! The order among them is drawn anew for every slot by the store (see [`poolwright_broker::Lottery`]); this file only
//! says which take part.

use poolwright_broker::WeightedQueue;
use poolwright_core::PoolName;

use crate::{Borrow, PoolConfig};

/// Own queues always; borrowed ones as the pool's policy says. `home_is_full` answers true where it is not known.
pub(crate) fn open_queues(pool: &PoolConfig, home_is_full: impl Fn(&PoolName) -> bool) -> Vec<WeightedQueue> {
    let lent = pool.borrows.iter().filter(|borrowed| match pool.borrow {
        Borrow::Always => true,
        Borrow::WhenHomeIsFull => home_is_full(&borrowed.home),
    });
    pool.owns.iter().chain(lent.map(|borrowed| &borrowed.queue)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use poolwright_core::QueueName;

    use super::*;
    use crate::Borrowed;

    fn weighted(queue: &str, weight: u32) -> WeightedQueue {
        WeightedQueue { queue: QueueName::new(queue).unwrap(), weight }
    }

    fn elastic(borrow: Borrow) -> PoolConfig {
        let home = |name| PoolName::new(name).unwrap();
        let borrows = vec![
            Borrowed { queue: weighted("default", 3), home: home("core") },
            Borrowed { queue: weighted("summary", 2), home: home("enrichment") },
        ];
        let own = vec![weighted("own", 1)];
        PoolConfig { owns: own, borrows, borrow, ..PoolConfig::new(home("shared"), 6) }
    }

    fn names(pool: &PoolConfig, full: &str) -> Vec<(String, u32)> {
        let queues = open_queues(pool, |home| *home == full);
        queues.into_iter().map(|queue| (queue.queue.to_string(), queue.weight)).collect()
    }

    #[test]
    fn always_takes_from_all() {
        let all = [("own".into(), 1), ("default".into(), 3), ("summary".into(), 2)];
        assert_eq!(names(&elastic(Borrow::Always), "nobody"), all);
    }

    #[test]
    fn when_home_is_full_takes_own_queues_and_those_of_full_homes() {
        let pool = elastic(Borrow::WhenHomeIsFull);
        assert_eq!(names(&pool, "nobody"), [("own".into(), 1)]);
        assert_eq!(names(&pool, "enrichment"), [("own".into(), 1), ("summary".into(), 2)]);
    }
}
