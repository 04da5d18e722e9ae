//! Whether home pools that do not run in this process are full, by the heartbeats of those that run them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use poolwright_broker::ServerBeat;
use poolwright_core::{PoolName, Timestamp};
use tokio::time::sleep;

use crate::site::Site;
use crate::{Borrow, PoolConfig};

/// What is known of pools that run elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Homes {
    /// Those that anybody here asks about.
    wanted: BTreeSet<PoolName>,
    full: Mutex<BTreeMap<PoolName, bool>>,
}

impl Homes {
    /// The homes that these pools borrow from under a condition and that do not run here.
    pub(crate) fn of(pools: &[PoolConfig]) -> Self {
        let conditional = pools.iter().filter(|pool| pool.borrow == Borrow::WhenHomeIsFull);
        let homes = conditional.flat_map(|pool| &pool.borrows).map(|borrowed| &borrowed.home);
        let elsewhere = homes.filter(|home| pools.iter().all(|pool| pool.name != **home));
        Self { wanted: elsewhere.cloned().collect(), full: Mutex::default() }
    }

    /// Nobody asks.
    pub(crate) fn is_idle(&self) -> bool {
        self.wanted.is_empty()
    }

    /// No worker of it is free anywhere, or nothing is known: an idle worker is worse than one too many.
    pub(crate) fn is_full(&self, home: &PoolName) -> bool {
        let full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        full.get(home).copied().unwrap_or(true)
    }

    /// Learns from heartbeats; true when an answer changed.
    fn learn(&self, servers: &[ServerBeat], now: Timestamp, fresh: Duration) -> bool {
        let known = self
            .wanted
            .iter()
            .filter_map(|home| fullness(home, servers, now, fresh).map(|is_full| (home.clone(), is_full)));
        let known: BTreeMap<_, _> = known.collect();
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = *full != known;
        *full = known;
        changed
    }
}

/// Whether all workers of a pool are busy, over all servers that run it; none when nobody said so lately.
fn fullness(home: &PoolName, servers: &[ServerBeat], now: Timestamp, fresh: Duration) -> Option<bool> {
    let lively = servers.iter().filter(|server| !server.stopping && now.since(server.beat_at) <= fresh);
    let mut pools = lively.flat_map(|server| &server.pools).filter(|pool| pool.pool == *home).peekable();
    pools.peek()?;
    Some(pools.all(|pool| pool.busy >= pool.workers))
}

/// Asks once in a heartbeat.
pub(crate) async fn run(site: Arc<Site>) {
    loop {
        let servers = site.look_up(site.broker.servers()).await.unwrap_or_default();
        if site.homes.learn(&servers, site.broker.now(), site.options.beat_lasts) {
            site.look.notify_one();
        }
        tokio::select! {
            () = site.stops.ending.cancelled() => return,
            () = sleep(site.options.beat_every) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use poolwright_broker::{PoolBeat, ServerId};

    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_000);
    const FRESH: Duration = Duration::from_secs(10);

    fn home() -> PoolName {
        PoolName::new("core").unwrap()
    }

    fn server(age_secs: i64, busy: u32, workers: u32) -> ServerBeat {
        let beat = PoolBeat { pool: home(), workers, busy, stalled: 0, queues: Vec::new() };
        ServerBeat {
            id: ServerId("h:1:a".into()),
            host: "h".into(),
            pid: 1,
            started_at: Timestamp::EPOCH,
            beat_at: Timestamp::from_secs(1_000 - age_secs),
            stopping: false,
            pools: vec![beat],
            tasks: Vec::new(),
        }
    }

    #[test]
    fn a_home_is_full_when_no_live_server_has_a_free_worker() {
        let says = |servers: &[ServerBeat]| fullness(&home(), servers, NOW, FRESH);
        assert_eq!(says(&[server(1, 8, 8), server(9, 4, 4)]), Some(true));
        assert_eq!(says(&[server(1, 8, 8), server(2, 3, 4)]), Some(false));
    }

    #[test]
    fn old_and_stopping_servers_say_nothing() {
        let stopping = ServerBeat { stopping: true, ..server(1, 0, 8) };
        assert_eq!(fullness(&home(), &[server(11, 0, 8), stopping.clone()], NOW, FRESH), None);
        assert_eq!(fullness(&home(), &[server(1, 8, 8), stopping], NOW, FRESH), Some(true));
        assert_eq!(fullness(&home(), &[], NOW, FRESH), None);
    }

    #[test]
    fn what_is_unknown_counts_as_full() {
        let mut pool = PoolConfig::new(PoolName::new("shared").unwrap(), 1);
        pool.borrow = Borrow::WhenHomeIsFull;
        let queue = poolwright_core::QueueName::new("default").unwrap();
        let queue = poolwright_broker::WeightedQueue { queue, weight: 1 };
        pool.borrows.push(crate::Borrowed { queue, home: home() });
        let homes = Homes::of(&[pool]);
        assert!(homes.is_full(&home()) && !homes.is_idle());
        assert!(homes.learn(&[server(1, 0, 8)], NOW, FRESH));
        assert!(!homes.is_full(&home()));
        assert!(!homes.learn(&[server(1, 1, 8)], NOW, FRESH), "nothing changed");
    }
}
