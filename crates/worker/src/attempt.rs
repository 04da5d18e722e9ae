//! One attempt: a claimed task, its permit, and the future of its handler on the threads of its pool.
//!
//! The future reports its own end: [`Ending`] sits in it and is dropped last, after everything of the handler, whether it
//! returned, panicked, was dropped or lost its runtime. The guard of the middleware bounds the handler; the bounds here
//! are the second ones, around the whole chain.
//!
//! Invariant: an attempt stays on the roster, and so keeps its lease, until its settlement is stored.

pub(crate) mod bounds;
pub(crate) mod end;
pub(crate) mod stage;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use poolwright_broker::Held;
use poolwright_core::{TaskRecord, Timestamp, Token};
use poolwright_handler::{Context, Parts, TaskCall};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tower::ServiceExt;

use crate::pool::Taken;
use crate::pool::permit::Permit;
use crate::settle::Item;
use crate::site::Site;
use end::Outcome;
use stage::{Patience, Stage, Step, Stop};

/// A claimed task and where it stands.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) token: Token,
    /// Index of its pool.
    pub(crate) pool: usize,
    pub(crate) cx: Context,
    live: Mutex<Live>,
}

/// What changes while it runs.
#[derive(Debug)]
struct Live {
    stage: Stage,
    /// Drops its future; let go with the future, so that its memory returns to the threads it came from.
    abort: Option<AbortHandle>,
    /// Its permit, while its handler is gone, but what somebody else decided for it is not settled.
    permit: Option<Permit>,
    /// That is settled.
    is_settled: bool,
}

/// What an attempt that was claimed at `now` can ask and tell.
#[inline]
pub(crate) fn context(site: &Site, pool: usize, task: TaskRecord, now: Timestamp) -> Context {
    let limit = (!task.timeout.is_zero()).then(|| now + task.timeout);
    let runs_until = match (limit, task.deadline.map(|deadline| on_clock(now, site.broker.now(), deadline))) {
        (Some(limit), Some(deadline)) => Some(limit.min(deadline)),
        (limit, deadline) => limit.or(deadline),
    };
    Context::new(Parts {
        pool: site.pools[pool].config.name.clone(),
        policy: Arc::clone(site.rules.of(&task.task_type)),
        runs_until,
        roll: site.chance.roll(),
        common: Arc::clone(&site.common),
        task,
    })
}

/// A difference of clocks that is no more than the way to the store and back.
const SAME_TIME: Duration = Duration::from_secs(1);

/// A time of the store's clock on ours, which shows `ours` while that one shows `theirs`: a deadline has passed when the store says
/// so, whatever a host's clock shows.
fn on_clock(ours: Timestamp, theirs: Timestamp, at: Timestamp) -> Timestamp {
    let (ahead, behind) = (ours.since(theirs), theirs.since(ours));
    if ahead > SAME_TIME {
        at + ahead
    } else if behind > SAME_TIME {
        at - behind
    } else {
        at
    }
}

impl Attempt {
    /// Puts a claimed task on the roster.
    pub(crate) fn new(site: &Site, taken: Taken) -> (Arc<Self>, Permit) {
        let Taken { pool, permit, token, cx } = taken;
        let stage = Stage::new(cx.runs_until());
        let live = Mutex::new(Live { stage, abort: None, permit: None, is_settled: false });
        let attempt = Arc::new(Self { token, pool, cx, live });
        site.roster.insert(&attempt);
        (attempt, permit.begin())
    }

    /// Makes it ready for its pool's threads; none when its time was over before it could start.
    pub(crate) fn prepare(
        self: Arc<Self>,
        site: &Arc<Site>,
        permit: Permit,
        now: Timestamp,
    ) -> Option<Ending> {
        tell!(debug, self.cx.task(), pool = %self.cx.pool(), "claimed");
        if let Some(until) = self.cx.runs_until() {
            if until <= now {
                self.conclude(site, Outcome::Late, Some(permit));
                return None;
            }
            site.alarm.set(until);
        }
        Some(Ending { attempt: self, site: Arc::clone(site), permit: Some(permit) })
    }

    /// What proves to the store that it is ours.
    pub(crate) fn held(&self) -> Held {
        Held::new(self.cx.task().key.clone(), self.token)
    }

    /// It runs, and can be dropped by this from now on.
    fn started(&self, future: AbortHandle) {
        let mut live = self.live();
        // Who wanted to drop it before it had started has left only the mark.
        if live.stage.is_dropped() {
            drop(live);
            return future.abort();
        }
        live.abort = Some(future);
    }

    /// Asks it to end.
    pub(crate) fn ask(&self, site: &Site, stop: Stop) {
        let now = site.clock.now();
        if !self.live().stage.ask(stop, now) {
            return;
        }
        match stop.class() {
            Some(class) => self.cx.stop(class),
            None => self.cx.cancel_token().cancel(),
        }
        site.alarm.set(now);
    }

    /// Drops its future as soon as its thread lets go of it.
    pub(crate) fn drop_future(&self, site: &Site) {
        let now = site.clock.now();
        let future = {
            let mut live = self.live();
            live.stage.hurry(now);
            live.abort.clone()
        };
        if let Some(future) = future {
            future.abort();
        }
    }

    /// Settles it without its handler, which may go on for a while. Nothing happens if it is over.
    pub(crate) fn abandon(self: &Arc<Self>, site: &Site, outcome: Outcome) {
        self.conclude(site, outcome, None);
    }

    /// Gets it over: to be settled, or forgotten when its lease is lost. The first one who comes decides. The permit comes
    /// from its future, and goes with what the future decided; or it waits here for what somebody else did.
    pub(crate) fn conclude(self: &Arc<Self>, site: &Site, outcome: Outcome, permit: Option<Permit>) {
        let stop = {
            let mut live = self.live();
            if !live.stage.end() {
                let mut free = permit;
                if free.is_some() && !live.is_settled {
                    live.permit = free.take();
                }
                drop(live);
                // Whoever watches the status looks once, and must see that the worker is free.
                drop(free);
                return site.changed.notify_waiters();
            }
            live.stage.stop()
        };
        if let Some(end) = end::of(outcome, stop, self.cx.task()) {
            return site.hand_in(Item { attempt: Arc::clone(self), end, permit });
        }
        tell!(warn, self.cx.task(), pool = %self.cx.pool(), "the lease was lost to a later attempt: what this one \
            did is dropped");
        site.roster.remove(self);
        site.counters.lease_lost.add(1);
        self.settled(permit);
        site.changed.notify_waiters();
    }

    /// What was decided is stored, or does not matter any more: its worker is free as soon as its handler is gone.
    pub(crate) fn settled(&self, permit: Option<Permit>) {
        if permit.is_none() {
            let mut live = self.live();
            live.is_settled = true;
            live.permit = None;
        }
    }

    /// Takes the steps that are due and says when to look again.
    fn look(self: &Arc<Self>, site: &Site, now: Timestamp, patience: Patience) -> Option<Timestamp> {
        loop {
            let step = {
                let mut live = self.live();
                let step = live.stage.step(now, patience);
                if step == Step::Stall {
                    // Counted before the lock is free, because the handler may come back at once.
                    site.pools[self.pool].slots.stall();
                }
                step
            };
            match step {
                Step::Wait(until) => return until,
                Step::TimeOut => self.ask(site, Stop::TimedOut),
                Step::Drop => self.drop_future(site),
                Step::Stall => {
                    site.counters.stalled.add(1);
                    tell!(warn, self.cx.task(), pool = %self.cx.pool(), "stalled: the handler was asked to end, but \
                        blocks its thread and cannot be dropped");
                }
                Step::GiveUp => {
                    tell!(error, self.cx.task(), pool = %self.cx.pool(), "a handler blocks its thread for too long: \
                        its task is settled without it, its worker is lost until the thread returns");
                    self.abandon(site, Outcome::GivenUp);
                    return None;
                }
            }
        }
    }

    /// Its handler is gone.
    fn come_back(&self, permit: &Permit) {
        let (future, was_stalled) = {
            let mut live = self.live();
            (live.abort.take(), live.stage.come_back())
        };
        drop(future);
        if was_stalled {
            permit.slots().unstall();
        }
    }

    pub(crate) fn is_stalled(&self) -> bool {
        self.live().stage.is_stalled()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.live().stage.is_over()
    }

    /// A later attempt owns its task.
    pub(crate) fn is_lost(&self) -> bool {
        self.live().stage.stop() == Some(Stop::Lost)
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts attempts of one claim on their pool's threads. They are spread by the threads themselves, so that a claim of many
/// costs one wake-up.
pub(crate) fn start(threads: &Handle, mut ready: Vec<Ending>) {
    // What is spawned last runs first, on the thread that spawns: so the eldest runs first.
    let Some(last) = (!ready.is_empty()).then(|| ready.remove(0)) else { return };
    if ready.is_empty() {
        let attempt = Arc::clone(&last.attempt);
        return attempt.started(threads.spawn(run(last)).abort_handle());
    }
    ready.push(last);
    threads.spawn(async move {
        for ending in ready {
            let attempt = Arc::clone(&ending.attempt);
            attempt.started(tokio::spawn(run(ending)).abort_handle());
        }
    });
}

/// Reports the end of an attempt's future, however it ends.
pub(crate) struct Ending {
    attempt: Arc<Attempt>,
    site: Arc<Site>,
    permit: Option<Permit>,
}

impl Ending {
    fn report(&mut self, outcome: Outcome) {
        if let Some(permit) = self.permit.take() {
            self.attempt.come_back(&permit);
            self.attempt.conclude(&self.site, outcome, Some(permit));
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.report(Outcome::Dropped);
    }
}

/// The whole future of an attempt: the service of its type, found, called and watched for panics.
async fn run(mut ending: Ending) {
    let chain = async {
        let cx = &ending.attempt.cx;
        // Looked up here and not on the control plane, because cloning a service runs code of the application.
        match ending.site.services.find(cx.pool(), cx.task_type()) {
            Some(service) => Outcome::Returned(service.oneshot(TaskCall::new(cx.clone())).await),
            None => Outcome::NoHandler,
        }
    };
    let outcome = AssertUnwindSafe(chain).catch_unwind().await;
    ending.report(outcome.unwrap_or_else(|panic| Outcome::panicked(&*panic)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_the_stores_whatever_the_hosts_clock_shows() {
        let at = Timestamp::from_secs;
        assert_eq!(on_clock(at(1_060), at(1_000), at(1_030)), at(1_090), "a host that is a minute ahead");
        assert_eq!(on_clock(at(940), at(1_000), at(1_030)), at(970), "a minute behind");
        assert_eq!(on_clock(at(1_000), at(1_001), at(1_030)), at(1_030), "the same time");
    }
}
