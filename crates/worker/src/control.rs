//! The life of a worker on its control thread: all loops start, and all loops end, in an order that loses nothing.
//!
//! ```text
//!   running ── stop ──► draining ── grace ──► stopping ── stop_grace ──► giving back ── flush ──► ended
//!                       no claims,            tokens fire,               what is left is          loops end, results
//!                       what runs may end     futures are dropped        released                 are stored, server retired
//! ```
//!
//! A second signal cuts every wait of this picture short.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use poolwright_core::{DeadLetter, DeadLetterSink};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::sleep;

use crate::attempt::bounds;
use crate::attempt::end::Outcome;
use crate::attempt::stage::Stop;
use crate::pool::{homes, wake};
use crate::site::Site;
use crate::status::Report;
use crate::upkeep::{beat, letters, promote, reclaim, sweep};
use crate::{cancel, desk, keeper};

/// Where the dead letters go.
pub(crate) struct Mail {
    pub(crate) sink: Arc<dyn DeadLetterSink>,
    pub(crate) waiting: mpsc::Receiver<DeadLetter>,
    pub(crate) thread: Handle,
}

/// Runs a worker from its start to its end.
pub(crate) async fn run(site: Arc<Site>, mail: Option<Mail>) -> Report {
    tracing::info!(server = %site.identity.id, store = site.broker.describe(), "the worker starts");
    let mut loops = Loops::default();
    start(&site, &mut loops, mail);
    let failed = tokio::select! {
        () = site.stops.draining.cancelled() => None,
        failed = loops.first_failure() => Some(failed),
    };
    if let Some(failed) = &failed {
        tracing::error!(failed, "a loop of the worker failed, so the worker stops");
        site.stops.draining.cancel();
    }
    site.changed.notify_waiters();
    wind_down(&site).await;
    let unsettled = site.roster.len();
    site.stops.ending.cancel();
    let ended = loops.all_ended();
    patiently(&site, site.options.flush, ended).await;
    let retired = site.call_within(site.options.hurry, site.broker.retire(site.identity.id.clone())).await;
    if let Err(error) = retired {
        tracing::debug!(%error, "the server's record was not removed and will expire");
    }
    site.changed.notify_waiters();
    let status = site.status();
    tracing::info!(server = %site.identity.id, unsettled, "the worker has ended");
    Report { unsettled, stuck: status.busy(), status, failed: failed.or(loops.failed) }
}

fn start(site: &Arc<Site>, loops: &mut Loops, mail: Option<Mail>) {
    // All watches are made before the first claim and the first promotion, so that nothing slips through in between.
    for (index, pool) in site.pools.iter().enumerate() {
        let watch = site.broker.watch(pool.config.queues().map(|queue| queue.queue.clone()).collect());
        loops.spawn("wake", wake::run(Arc::clone(site), index, watch));
    }
    let watch = site.broker.watch(site.queues.clone());
    loops.spawn("promote", promote::run(Arc::clone(site), watch));
    loops.spawn("keeper", keeper::run(Arc::clone(site)));
    loops.spawn("bounds", bounds::run(Arc::clone(site)));
    loops.spawn("cancel", cancel::run(Arc::clone(site)));
    loops.spawn("reclaim", reclaim::run(Arc::clone(site)));
    loops.spawn("sweep", sweep::run(Arc::clone(site)));
    loops.spawn("beat", beat::run(Arc::clone(site)));
    if !site.homes.is_idle() {
        loops.spawn("homes", homes::run(Arc::clone(site)));
    }
    if let Some(Mail { sink, waiting, thread }) = mail {
        loops.spawn_on("letters", letters::run(Arc::clone(site), sink, waiting), &thread);
    }
    loops.spawn("desk", desk::run(Arc::clone(site)));
}

/// From no more claims to nothing left to settle.
async fn wind_down(site: &Arc<Site>) {
    let options = &site.options;
    tracing::info!(running = site.roster.len(), "the worker takes no more tasks");
    if !site.stops.now.is_cancelled() {
        tokio::select! {
            () = site.until(Site::is_idle) => {}
            () = sleep(options.grace) => {}
            () = site.stops.now.cancelled() => {}
        }
    }
    // Each attempt learns why before its token fires: what ends because of this is given back, not failed.
    for attempt in site.roster.all() {
        attempt.ask(site, Stop::Stopping);
        if site.stops.now.is_cancelled() {
            attempt.drop_future(site);
        }
    }
    site.stops.firing.cancel();
    site.changed.notify_waiters();
    patiently(site, options.stop_grace + options.slack * 2, site.until(Site::is_idle)).await;
    let left = site.roster.all();
    for attempt in left.iter().filter(|attempt| !attempt.is_over()) {
        attempt.drop_future(site);
        attempt.abandon(site, Outcome::Dropped);
    }
    patiently(site, options.flush, site.until(Site::is_idle)).await;
}

/// Waits for something, but not longer than the limit, and hardly at all once the worker shall end at once.
async fn patiently(site: &Site, limit: Duration, something: impl Future<Output = ()>) {
    let hurried = async {
        site.stops.now.cancelled().await;
        sleep(site.options.hurry.min(limit)).await;
    };
    tokio::select! {
        () = something => {}
        () = hurried => {}
        () = sleep(limit) => {}
    }
}

/// The loops of a worker, by name.
#[derive(Default)]
struct Loops {
    running: JoinSet<()>,
    names: HashMap<Id, &'static str>,
    failed: Option<String>,
}

impl Loops {
    fn spawn(&mut self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        self.names.insert(self.running.spawn(work).id(), name);
    }

    fn spawn_on(&mut self, name: &'static str, work: impl Future<Output = ()> + Send + 'static, on: &Handle) {
        self.names.insert(self.running.spawn_on(work, on).id(), name);
    }

    /// Waits until a loop panics; for ever, if none does.
    async fn first_failure(&mut self) -> String {
        while let Some(ended) = self.running.join_next().await {
            if let Err(error) = ended {
                return self.describe(error);
            }
        }
        std::future::pending().await
    }

    async fn all_ended(&mut self) {
        while let Some(ended) = self.running.join_next().await {
            if let Err(error) = ended {
                let failed = self.describe(error);
                self.failed.get_or_insert(failed);
            }
        }
    }

    fn describe(&self, error: JoinError) -> String {
        let name = self.names.get(&error.id()).copied().unwrap_or("unknown");
        format!("loop {name} failed: {error}")
    }
}
