//! Runs the tasks of a test queue: claim, chain, judge, settle, one at a time.
//!
//! Invariant: the same services, the same judge and the same sink as in a worker; only the order is fixed.

use std::sync::Arc;
use std::time::Duration;

use poolwright_broker::{Broker, Claim, ClaimId, ClaimRequest, Demand, Held};
use poolwright_core::verdict::judge;
use poolwright_core::{Chance, Class, Clock, DeadLetter, DeadLetterSink, End, Settlement};
use poolwright_handler::{Common, Context, Parts, States, TaskCall};
use poolwright_worker::{PoolConfig, Rules, Services};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::report::StoreReport;
use crate::assembly::Assembly;

/// More attempts than this in one drain mean that it would never end.
const ATTEMPTS_MAX: u32 = 100_000;

/// How long a claimed task is held. The clock stands still while it runs.
const LEASE: Duration = Duration::from_secs(60);

/// What a drain came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Drained {
    /// Attempts that succeeded.
    pub succeeded: u32,
    /// Attempts whose task will be tried again: failures, rate limits, snoozes.
    pub retried: u32,
    /// Tasks that failed for good, each with a dead letter.
    pub archived: u32,
    /// Tasks that are gone without one: cancelled or revoked.
    pub discarded: u32,
    /// Tasks that went back and paused their queue for an operator.
    pub held: u32,
    /// What went wrong, in order: `queue/id (type): class: text`.
    pub errors: Vec<String>,
}

impl Drained {
    /// All attempts.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.succeeded + self.retried + self.archived + self.discarded + self.held
    }

    /// Panics with every error unless all attempts succeeded.
    ///
    /// # Panics
    /// When one did not.
    #[track_caller]
    pub fn assert_clean(&self) {
        let failed = self.attempts() - self.succeeded;
        assert!(
            failed == 0,
            "{failed} of {} attempts did not succeed:\n{}",
            self.attempts(),
            self.errors.join("\n")
        );
    }
}

/// What runs tasks.
pub(super) struct Hands {
    broker: Arc<dyn Broker>,
    services: Arc<dyn Services>,
    rules: Rules,
    states: Arc<States>,
    sink: Arc<dyn DeadLetterSink>,
    pools: Vec<PoolConfig>,
    clock: Arc<dyn Clock>,
    chance: Chance,
}

impl Hands {
    pub(super) fn new(from: Assembly) -> Self {
        Self {
            broker: from.stores.broker,
            services: from.services,
            rules: from.rules,
            states: from.states,
            sink: from.sink,
            pools: from.pools,
            clock: from.clock,
            chance: from.chance,
        }
    }

    pub(super) async fn drain(&self) -> Drained {
        let mut drained = Drained::default();
        self.drain_into(&mut drained).await;
        drained
    }

    pub(super) async fn drain_into(&self, drained: &mut Drained) {
        loop {
            let reply = self.broker.claim(self.request()).await.expect("the store in memory is open");
            drained.discarded += reply.discarded;
            if reply.claims.is_empty() && reply.discarded == 0 {
                return;
            }
            for claim in reply.claims {
                assert!(drained.attempts() < ATTEMPTS_MAX, "{ATTEMPTS_MAX} attempts and no end: {drained:?}");
                self.attempt(claim, drained).await;
            }
        }
    }

    /// One task for each pool.
    fn request(&self) -> ClaimRequest {
        let demand = |pool: &PoolConfig| Demand {
            pool: pool.name.clone(),
            slots: 1,
            queues: pool
                .owns
                .iter()
                .chain(pool.borrows.iter().map(|borrowed| &borrowed.queue))
                .cloned()
                .collect(),
            seed: self.chance.next(),
        };
        let demands = self.pools.iter().map(demand).collect();
        ClaimRequest { id: ClaimId::fresh(&self.chance), resent: false, lease: LEASE, demands }
    }

    async fn attempt(&self, claim: Claim, drained: &mut Drained) {
        let held = Held::of(&claim.task).expect("a claimed task has a token");
        let cx = self.context(claim);
        let end = match self.services.find(cx.pool(), cx.task_type()) {
            None => End::Failed {
                class: Class::NoHandler,
                after: None,
                error: format!("no handler for {}", cx.task_type()),
            },
            Some(service) => match service.oneshot(TaskCall::new(cx.clone())).await {
                Ok(output) => End::Done { result: output.result },
                Err(error) => End::failed(&*error),
            },
        };
        if let End::Failed { class, error, .. } = &end {
            drained.errors.push(format!("{} ({}): {class}: {error}", held.key, cx.task_type()));
        }
        let settlement = judge(end, &cx.task().attempt(), cx.policy(), self.clock.now(), cx.roll());
        self.settle(held, settlement, &cx, drained).await;
    }

    fn context(&self, claim: Claim) -> Context {
        let task = claim.task;
        let limit = (!task.timeout.is_zero()).then(|| self.clock.now() + task.timeout);
        Context::new(Parts {
            pool: claim.pool,
            policy: Arc::clone(self.rules.of(&task.task_type)),
            runs_until: [limit, task.deadline].into_iter().flatten().min(),
            roll: self.chance.roll(),
            common: Arc::new(Common {
                states: Arc::clone(&self.states),
                report: Arc::new(StoreReport(Arc::clone(&self.broker))),
                clock: Arc::clone(&self.clock),
                stop: CancellationToken::new(),
            }),
            task,
        })
    }

    async fn settle(&self, held: Held, settlement: Settlement, cx: &Context, drained: &mut Drained) {
        let counter = match &settlement {
            Settlement::Complete { .. } => &mut drained.succeeded,
            Settlement::Retry { .. } | Settlement::Release => &mut drained.retried,
            Settlement::Archive { .. } => &mut drained.archived,
            Settlement::Discard => &mut drained.discarded,
            Settlement::Hold { .. } => &mut drained.held,
        };
        *counter += 1;
        let letter = match &settlement {
            Settlement::Archive { error, class } => {
                let made = || DeadLetter::of(cx.task(), *class, error, self.clock.now());
                Some(cx.take_dead_letter().unwrap_or_else(made))
            }
            _ => None,
        };
        let outcomes = self.broker.settle(vec![(held.clone(), settlement)]).await;
        let settled =
            outcomes.expect("the store in memory is open").pop().expect("one settlement has one outcome");
        let Some(letter) = letter.filter(|_| settled.is_ok()) else { return };
        match self.sink.record(&[letter]).await {
            Ok(()) => self.broker.mark_recorded(vec![held]).await.expect("the store in memory is open"),
            Err(why) => drained.errors.push(format!("{}: its dead letter was not recorded: {why}", held.key)),
        }
    }
}
