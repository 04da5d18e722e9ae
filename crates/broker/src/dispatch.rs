//! Claims, leases and settlements.

use std::time::Duration;

use bytes::Bytes;
use poolwright_core::{
    Chance, PoolName, QueueName, Settlement, State, TaskKey, TaskRecord, Timestamp, Token,
};
use serde::{Deserialize, Serialize};

use crate::{Error, Reply};

/// A claim's own id, made by the caller, so that asking again after a lost reply returns the same tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClaimId(pub u64);

impl ClaimId {
    /// A fresh one.
    #[must_use]
    pub fn fresh(chance: &Chance) -> Self {
        // 63 bits, so that a SQL store can keep it in a signed column.
        Self(chance.next() >> 1)
    }
}

/// A queue and how often it is drawn relative to the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightedQueue {
    /// The stored name.
    pub queue: QueueName,
    /// At least 1.
    pub weight: u32,
}

/// What one pool asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// Who asks.
    pub pool: PoolName,
    /// How many tasks it has free workers for.
    pub slots: u32,
    /// Where it may take them from. The order of queues is drawn anew for every slot, by weight; an empty queue
    /// never blocks another.
    pub queues: Vec<WeightedQueue>,
    /// Decides the draw, see [`crate::Lottery`].
    pub seed: u64,
}

/// A claim for all pools of a process at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// Its own id.
    pub id: ClaimId,
    /// This request was sent before and its reply was lost: tasks still active under this id are returned,
    /// and new ones are claimed only when there are none.
    pub resent: bool,
    /// How long the leases last.
    pub lease: Duration,
    /// One for each pool with free workers. Served in order, slot by slot: each demand makes one [`crate::Lottery`] of
    /// its seed and weights and draws once for each slot; the slot goes to the first queue in that order that has a task
    /// and is not paused. All stores do exactly this, so that seeded runs agree.
    pub demands: Vec<Demand>,
}

/// A task in the hands of a pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// For whom.
    pub pool: PoolName,
    /// The task: active, with token and lease.
    pub task: TaskRecord,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClaimReply {
    /// At most as many as asked for. A pool that got fewer has found all its queues empty or paused.
    pub claims: Vec<Claim>,
    /// Flagged tasks that were discarded on the way.
    pub discarded: u32,
}

/// What a holder presents.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Held {
    /// Which task.
    pub key: TaskKey,
    /// Which attempt.
    pub token: Token,
}

impl Held {
    /// The proof for this task and token.
    #[must_use]
    pub const fn new(key: TaskKey, token: Token) -> Self {
        Self { key, token }
    }

    /// The proof out of an active record; none when the record has no token.
    #[must_use]
    pub fn of(task: &TaskRecord) -> Option<Self> {
        task.token.map(|token| Self::new(task.key.clone(), token))
    }
}

/// The answer to one lease extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extension {
    /// Ours until then.
    Kept(Timestamp),
    /// Ours until then, and somebody asked for its end.
    Cancelled(Timestamp),
    /// A later attempt owns it, or it is gone.
    Lost,
}

/// The answer to one settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    /// Where the task went; none: gone. For a task with a follow-up (`run_again`) this is the state in which
    /// the settled run ended, although the record already belongs to the follow-up.
    pub state: Option<State>,
    /// The store's time.
    pub at: Timestamp,
}

/// The answer to an exchange.
#[derive(Debug)]
pub struct Exchanged {
    /// One for each settlement, in order.
    pub outcomes: Vec<Result<Settled, Error>>,
    /// The claim's own answer.
    pub claimed: Result<ClaimReply, Error>,
}

/// Hands out tasks and takes them back.
pub trait Dispatch: Send + Sync {
    /// Takes pending tasks: they become active, with a new token and a lease; what an earlier attempt said of its
    /// progress is forgotten, what it stored as a result stays. A flagged task met on the way is discarded (rule 6)
    /// and uses no slot and no draw.
    ///
    /// Resent: the tasks come for their old pools, with the token and lease they have, demand by demand; within a demand queue
    /// by queue as the demand names them, and within a queue in their old order.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Refused`].
    fn claim(&self, request: ClaimRequest) -> Reply<'_, ClaimReply>;

    /// Makes leases last `lease` from now; one answer each, in order.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Refused`].
    fn extend(&self, held: Vec<Held>, lease: Duration) -> Reply<'_, Vec<Extension>>;

    /// Settles attempts; one outcome each, in order. Only the holder of an active task can.
    ///
    /// | | record | counts | lock | flag |
    /// | --- | --- | --- | --- | --- |
    /// | `Complete` | completed until now + `retain_for`; gone when that is zero | processed | freed | cleared |
    /// | `Retry`, `after` is zero | pending, at the end of its queue | with [`Charge::Retry`]: processed, failed | kept | kept, but cleared by class cancelled |
    /// | `Retry`, later | retry, due at now + `after` | the same | kept | the same |
    /// | `Archive` | archived, not yet recorded | processed, failed | freed | cleared |
    /// | `Discard` | gone | processed | freed | |
    /// | `Release`, `Hold` | pending, where it was | nothing | kept | kept |
    ///
    /// `Retry` and `Archive` note the failure. `Complete` without a result leaves what `store_result` stored. `Retry`
    /// charges: [`Charge::Retry`] adds to `retried` and sets `deferrals` to zero, [`Charge::Deferral`] adds to
    /// `deferrals`, [`Charge::Crash`] to `crashes`. `Hold` pauses the queue, too, unless it is paused already (the earlier
    /// reason stays). The token stays in the record as the last one.
    ///
    /// Repeating a settlement that was done is a success where the record still shows it (it is not active, and its last
    /// token is the one presented), [`Error::NotFound`] where it is gone, [`Error::LeaseLost`] otherwise.
    ///
    /// [`Charge::Retry`]: poolwright_core::Charge::Retry
    /// [`Charge::Deferral`]: poolwright_core::Charge::Deferral
    /// [`Charge::Crash`]: poolwright_core::Charge::Crash
    ///
    /// # Errors
    /// Each: [`Error::LeaseLost`], [`Error::NotFound`]. All: [`Error::Unavailable`], [`Error::Refused`].
    fn settle(&self, settlements: Vec<(Held, Settlement)>) -> Reply<'_, Vec<Result<Settled, Error>>>;

    /// Settles, then claims: the same as [`settle`](Self::settle) followed by [`claim`](Self::claim), in one round trip
    /// where the store can. So the workers that the settled attempts leave take the next tasks at once.
    ///
    /// An error answers for both halves, and says of both what it says of one: unavailable, each was done or not, and may
    /// be asked again, together or apart, the claim as resent; refused, neither was done.
    ///
    /// # Errors
    /// Each settlement: as `settle`. The claim: as `claim`. All: [`Error::Unavailable`], [`Error::Refused`].
    fn exchange(&self, settlements: Vec<(Held, Settlement)>, claim: ClaimRequest) -> Reply<'_, Exchanged> {
        Box::pin(async move {
            let outcomes = self.settle(settlements).await?;
            Ok(Exchanged { outcomes, claimed: self.claim(claim).await })
        })
    }

    /// Keeps a result with the running task.
    ///
    /// # Errors
    /// [`Error::LeaseLost`], [`Error::NotFound`], [`Error::Unavailable`], [`Error::Refused`].
    fn store_result(&self, held: Held, result: Bytes) -> Reply<'_, ()>;

    /// Notes how far the running task is: `done` from 0 to 1 (what lies outside is brought inside; no number is 0),
    /// and a word.
    ///
    /// # Errors
    /// [`Error::LeaseLost`], [`Error::NotFound`], [`Error::Unavailable`], [`Error::Refused`].
    fn progress(&self, held: Held, done: f64, note: String) -> Reply<'_, ()>;
}
