//! Removes what was kept long enough, and mends what other programs left behind.

use std::sync::Arc;

use poolwright_broker::Error;
use tokio::time::sleep;

use crate::site::Site;

/// Sweeps until the worker has ended.
pub(crate) async fn run(site: Arc<Site>) {
    tokio::select! {
        () = site.stops.ending.cancelled() => {}
        () = async { tokio::join!(sweeps(&site), reconciliations(&site)); } => {}
    }
}

async fn sweeps(site: &Site) {
    loop {
        if let Err(error) = sweep(site).await {
            tracing::debug!(%error, "a sweep failed");
        }
        sleep(site.options.sweep_every).await;
    }
}

async fn sweep(site: &Site) -> Result<(), Error> {
    loop {
        let swept = site.call(site.broker.sweep(site.limits.clone())).await?;
        if swept.trimmed > 0 {
            tracing::warn!(
                tasks = swept.trimmed,
                "archived tasks beyond the limits of their queues were removed"
            );
        }
        if swept.expired > 0 {
            tracing::debug!(tasks = swept.expired, "completed tasks were removed after their retention");
        }
        if !swept.more {
            return Ok(());
        }
        // The steps are bounded so that claims and settlements go in between.
        tokio::task::yield_now().await;
    }
}

async fn reconciliations(site: &Site) {
    loop {
        // Without a limit: it takes as long as there are tasks, in steps that have limits of their own.
        match site.broker.reconcile(site.queues.clone()).await {
            Ok(mended) if mended == poolwright_broker::Reconciled::default() => {}
            Ok(mended) => tracing::warn!(
                index_entries = mended.index_entries,
                leaseless = mended.leaseless,
                locks = mended.locks,
                "mended what another program or an earlier fault left behind"
            ),
            Err(error) => tracing::debug!(%error, "a reconciliation failed"),
        }
        sleep(site.options.reconcile_every).await;
    }
}
