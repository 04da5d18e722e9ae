//! One random step, and how a story prints it.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use poolwright_broker::{
    ArchiveLimits, Bulk, BulkAction, ClaimId, ClaimRequest, Demand, TakeOver, WeightedQueue,
};
use poolwright_core::{
    Charge, Class, NewTask, OnConflict, PoolName, QueueName, Settlement, State, TaskKey, Timestamp, TypeName,
    UniqueLock, When,
};

use super::dice::{Dice, LOCKS, QUEUES};
use super::side::Side;
use crate::builders::{QUEUE, queues, task};

/// One call. Attempts are named by their place in the list of all that were ever handed out, since tokens differ.
#[derive(Debug)]
pub(super) enum Step {
    Enqueue(Vec<NewTask>),
    Claim(ClaimRequest),
    Extend(Vec<usize>, Duration),
    Settle(Vec<(usize, Settlement)>),
    Exchange(Vec<(usize, Settlement)>, ClaimRequest),
    StoreResult(usize, Bytes),
    Progress(usize, f64, String),
    Elapse(Duration),
    Promote(Vec<QueueName>, u32),
    TakeOver(TakeOver),
    Sweep(Vec<ArchiveLimits>),
    Reconcile,
    /// Of the unrecorded ends that were seen last.
    MarkRecorded(usize),
    /// Of any attempt.
    MarkAttempt(usize),
    Get(TaskKey),
    RequestCancel(Vec<TaskKey>),
    RunNow(TaskKey),
    Archive(TaskKey, String),
    Delete(TaskKey),
    Bulk(Bulk),
    Reschedule(TaskKey, When),
    UpdatePayload(TaskKey, Bytes),
    Pause(QueueName, String),
    Resume(QueueName),
    RemoveQueue(QueueName, bool),
    Beat(&'static str, Duration),
    Retire(&'static str),
}

const SERVERS: [&str; 3] = ["h:1:a", "h:2:b", "h:3:c"];

impl Step {
    /// The next step, chosen by what is there to act upon.
    pub(super) fn roll(dice: &mut Dice, side: &Side<'_>) -> Self {
        let now = side.now();
        match dice.below(100) {
            0..20 => Self::Enqueue((0..=dice.below(4)).map(|_| new_task(dice, now)).collect()),
            20..36 => Self::Claim(claim(dice)),
            36..38 => match side.last_claim() {
                Some(request) => Self::Claim(ClaimRequest { resent: true, ..request.clone() }),
                None => Self::Claim(claim(dice)),
            },
            38..66 => Self::of_an_attempt(dice, side),
            66..74 => Self::Elapse(if dice.percent(3) { Duration::from_secs(86_400) } else { dice.time(25) }),
            74..85 => Self::of_upkeep(dice),
            _ => Self::by_hand(dice, now),
        }
    }

    fn of_an_attempt(dice: &mut Dice, side: &Side<'_>) -> Self {
        let Some(at) = dice.place(side.attempts()) else { return Self::Get(dice.key()) };
        match dice.below(30) {
            0..19 => {
                let mut batch = vec![(at, settlement(dice))];
                while dice.percent(30) {
                    batch.extend(dice.place(side.attempts()).map(|at| (at, settlement(dice))));
                }
                if dice.percent(40) { Self::Exchange(batch, claim(dice)) } else { Self::Settle(batch) }
            }
            19..22 => {
                let more = dice.place(side.attempts());
                Self::Extend([at].into_iter().chain(more).collect(), dice.time(40))
            }
            22..24 => Self::StoreResult(at, Bytes::from(dice.word())),
            24..26 => {
                Self::Progress(at, f64::from(u32::try_from(dice.below(5)).unwrap_or(0)) / 4.0, dice.word())
            }
            _ => Self::MarkAttempt(at),
        }
    }

    fn of_upkeep(dice: &mut Dice) -> Self {
        // Which of several queues comes first is left open, so a limit is for one queue.
        let (queues, limit) = match dice.percent(50) {
            true => (queues(&QUEUES), u32::MAX),
            false => (vec![dice.queue()], u32::try_from(dice.below(4)).unwrap_or(0)),
        };
        match dice.below(11) {
            0..5 => Self::Promote(queues, limit),
            5..8 => {
                let not_after = if dice.percent(80) { Timestamp::MAX } else { Timestamp::EPOCH };
                Self::TakeOver(TakeOver { queues, limit, lease: dice.time(40), not_after })
            }
            8 => Self::Sweep(queues.into_iter().map(|queue| limits(dice, queue)).collect()),
            9 => Self::MarkRecorded(usize::try_from(dice.below(3)).unwrap_or(0)),
            _ if dice.percent(40) => Self::Reconcile,
            _ if dice.percent(70) => Self::Beat(dice.pick(&SERVERS), dice.time(40)),
            _ => Self::Retire(dice.pick(&SERVERS)),
        }
    }

    fn by_hand(dice: &mut Dice, now: Timestamp) -> Self {
        match dice.below(30) {
            0..6 => Self::RequestCancel(dice.keys(3)),
            6..10 => Self::RunNow(dice.key()),
            10..13 => Self::Archive(dice.key(), dice.word()),
            13..16 => Self::Delete(dice.key()),
            16..18 => Self::Bulk(Bulk {
                queue: dice.queue(),
                state: dice.pick(&State::ALL),
                action: dice.pick(&[BulkAction::RunNow, BulkAction::Archive, BulkAction::Delete]),
                limit: u32::try_from(dice.below(4)).unwrap_or(0),
                reason: dice.word(),
            }),
            18..21 => Self::Reschedule(dice.key(), dice.when(now)),
            21..23 => Self::UpdatePayload(dice.key(), Bytes::from(dice.number().to_string())),
            23..25 => Self::Pause(dice.queue(), dice.word()),
            25..29 => Self::Resume(dice.queue()),
            _ => Self::RemoveQueue(dice.queue(), dice.percent(50)),
        }
    }
}

fn new_task(dice: &mut Dice, now: Timestamp) -> NewTask {
    let key = dice.key();
    let lock = dice.percent(40).then(|| UniqueLock::new(dice.pick(&LOCKS), dice.time(90)));
    NewTask {
        task_type: TypeName::new(dice.pick(&["t:one", "t:two"])).expect("is a name"),
        payload: Bytes::from(dice.number().to_string()),
        when: dice.when(now),
        max_retry: u32::try_from(dice.below(30)).unwrap_or(0),
        timeout: dice.time(3_000),
        deadline: dice.percent(20).then(|| now + dice.time(100)),
        retention: dice.time(60),
        unique: lock,
        on_conflict: dice.pick(&[
            OnConflict::Reject,
            OnConflict::ReplaceFinished,
            OnConflict::RunAgain,
            OnConflict::RunAgain,
        ]),
        subjects: dice.subjects(),
        scopes: dice.scopes(),
        key,
        ..task(QUEUE).header("word", &dice.word()).build()
    }
}

fn claim(dice: &mut Dice) -> ClaimRequest {
    let pools = ["core", "shared"];
    let demands = pools.iter().take(if dice.percent(30) { 2 } else { 1 }).map(|pool| {
        let weights = QUEUES.map(|name| (name, u32::try_from(dice.below(5)).unwrap_or(1)));
        let asked = weights.iter().filter(|(_, weight)| *weight > 0);
        Demand {
            pool: PoolName::new(pool).expect("is a name"),
            slots: u32::try_from(dice.below(5)).unwrap_or(1),
            queues: asked
                .map(|(name, weight)| WeightedQueue { queue: crate::builders::queue(name), weight: *weight })
                .collect(),
            seed: dice.number(),
        }
    });
    let demands = demands.collect();
    ClaimRequest { id: ClaimId(dice.number()), resent: false, lease: dice.time(40), demands }
}

fn settlement(dice: &mut Dice) -> Settlement {
    match dice.below(12) {
        0..3 => Settlement::Complete {
            retain_for: if dice.percent(50) { dice.time(60) } else { Duration::ZERO },
            result: dice.percent(50).then(|| Bytes::from(dice.word())),
        },
        3..7 => Settlement::Retry {
            after: if dice.percent(50) { dice.time(40) } else { Duration::ZERO },
            error: dice.word(),
            class: dice.pick(&Class::ALL),
            charge: dice.pick(&[
                Charge::Retry,
                Charge::Retry,
                Charge::Deferral,
                Charge::Crash,
                Charge::Nothing,
            ]),
        },
        7..9 => Settlement::Archive { error: dice.word(), class: dice.pick(&Class::ALL) },
        9 => Settlement::Discard,
        10 => Settlement::Hold { reason: dice.word() },
        _ => Settlement::Release,
    }
}

fn limits(dice: &mut Dice, queue: QueueName) -> ArchiveLimits {
    ArchiveLimits {
        queue,
        tasks_max: dice.below(5),
        age_max: dice.time(120),
        spare_unrecorded: dice.percent(70),
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enqueue(tasks) => tell_enqueue(tasks, f),
            Self::Claim(request) => tell_claim(request, f),
            other => fmt::Debug::fmt(other, f),
        }
    }
}

/// A task has too many fields to read; these decide what becomes of it.
fn tell_enqueue(tasks: &[NewTask], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("Enqueue")?;
    for task in tasks {
        write!(f, " [{} {:?} {:?}", task.key, task.on_conflict, task.when)?;
        if let Some(lock) = &task.unique {
            write!(f, " {lock} for {:?}", lock.lasts)?;
        }
        for subject in &task.subjects {
            write!(f, " {subject}")?;
        }
        f.write_str("]")?;
    }
    Ok(())
}

fn tell_claim(request: &ClaimRequest, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let again = if request.resent { " again" } else { "" };
    write!(f, "Claim{again} {} for {:?}", request.id.0, request.lease)?;
    for demand in &request.demands {
        write!(f, " [{} {} seed {}:", demand.pool, demand.slots, demand.seed)?;
        for queue in &demand.queues {
            write!(f, " {}*{}", queue.queue, queue.weight)?;
        }
        f.write_str("]")?;
    }
    Ok(())
}
