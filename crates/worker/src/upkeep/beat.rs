//! Says that this process lives, what its pools do and what runs.

use std::sync::Arc;

use poolwright_broker::{PoolBeat, RunningTask, ServerBeat};
use tokio::time::sleep;

use crate::pool::Pool;
use crate::site::Site;

/// Beats until the worker has ended. The first beat goes out at the start, another when draining begins.
pub(crate) async fn run(site: Arc<Site>) {
    let mut said_stopping = false;
    loop {
        if let Err(error) = site.call(site.broker.beat(now(&site), site.options.beat_lasts)).await {
            tracing::debug!(%error, "a heartbeat failed");
        }
        let draining = async {
            if said_stopping {
                std::future::pending::<()>().await;
            }
            site.stops.draining.cancelled().await;
        };
        tokio::select! {
            () = site.stops.ending.cancelled() => return,
            () = draining => said_stopping = true,
            () = sleep(site.options.beat_every) => {}
        }
    }
}

/// What is true now.
fn now(site: &Site) -> ServerBeat {
    ServerBeat {
        id: site.identity.id.clone(),
        host: site.identity.host.clone(),
        pid: site.identity.pid,
        started_at: site.identity.started_at,
        beat_at: site.broker.now(),
        stopping: site.stops.draining.is_cancelled(),
        pools: site.pools.iter().map(pool).collect(),
        tasks: site.roster.all().iter().map(|attempt| running(site, attempt)).collect(),
    }
}

fn pool(pool: &Pool) -> PoolBeat {
    PoolBeat {
        pool: pool.config.name.clone(),
        workers: pool.slots.workers(),
        busy: pool.slots.busy(),
        stalled: pool.slots.stalled(),
        queues: pool.config.queues().cloned().collect(),
    }
}

fn running(site: &Site, attempt: &crate::attempt::Attempt) -> RunningTask {
    let task = attempt.cx.task();
    RunningTask {
        key: task.key.clone(),
        task_type: task.task_type.clone(),
        pool: site.pools[attempt.pool].config.name.clone(),
        started_at: task.started_at.unwrap_or(site.identity.started_at),
        stalled: attempt.is_stalled(),
    }
}
