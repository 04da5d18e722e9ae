//! Hands out pending tasks: queue by queue as the lottery draws, each active from then on with a token and a lease.

use std::collections::VecDeque;
use std::time::Duration;

use poolwright_broker::{Claim, ClaimId, ClaimReply, ClaimRequest, Demand, LEASE_AHEAD_MAX, Lottery};
use poolwright_core::{QueueName, State, TaskRecord, Timestamp};
use rusqlite::params;

use crate::rows::{self, Brief, Charges, Memo, Stored, claimable_columns, record_columns};
use crate::steps::{exit, quarantine};
use crate::token::{Parts, secret, token};
use crate::work::{Ends, Work};

/// Room that is made for the tasks of a demand at once; a pool with more workers makes more when it gets more.
const SLOTS_LIKELY_MAX: u32 = 64;

/// Serves all demands of a process.
pub(crate) fn claim(work: &mut Work<'_>, request: &ClaimRequest) -> rusqlite::Result<ClaimReply> {
    let mut reply = ClaimReply::default();
    if request.resent {
        reply.claims = still_held(work, request)?;
        if !reply.claims.is_empty() {
            return Ok(reply);
        }
    }
    let call = Call { secret: secret(work.chance), until: work.now + request.lease, id: request.id };
    let mut lines = Lines::default();
    for (nth, demand) in request.demands.iter().enumerate() {
        serve(work, demand, &call, &mut lines, &mut reply)?;
        lines.mark(work, &call, nth)?;
    }
    Ok(reply)
}

/// What all tasks of one claim have in common.
struct Call {
    secret: i64,
    until: Timestamp,
    id: ClaimId,
}

/// The front of one queue, read ahead.
struct Line {
    ready: VecDeque<Stored>,
    /// From this place on nothing was read.
    from: i64,
    /// Nothing is behind what was read.
    ends: bool,
    memo: Memo,
    /// The first and the last place that were taken for the present demand, and how many.
    taken: Option<(i64, i64, usize)>,
}

/// The fronts of all queues that a request may take from: a handful, so a search is quicker than a hash.
#[derive(Default)]
struct Lines(Vec<(i64, Line)>);

impl Lines {
    fn of(&mut self, work: &mut Work<'_>, queue: i64) -> rusqlite::Result<&mut Line> {
        let at = match self.0.iter().position(|(seq, _)| *seq == queue) {
            Some(at) => at,
            None => {
                let from = work.ends(queue)?.front;
                let (ready, memo) = (VecDeque::new(), Memo::default());
                self.0.push((queue, Line { ready, from, ends: false, memo, taken: None }));
                self.0.len() - 1
            }
        };
        Ok(&mut self.0[at].1)
    }

    /// Makes active what was taken for a demand: whatever is pending between the first and the last place of a queue, since
    /// tasks are taken in order. One statement a queue.
    fn mark(&mut self, work: &mut Work<'_>, call: &Call, demand: usize) -> rusqlite::Result<()> {
        for (queue, line) in &mut self.0 {
            let Some((first, last, count)) = line.taken.take() else { continue };
            let mut statement = work.conn.prepare_cached(
                "UPDATE tasks SET state = 1, lease = ?4, token = ?5, started_at = ?6, claim = ?7, demand = ?8, \
                 progress = NULL WHERE queue = ?1 AND at IS NULL AND pos BETWEEN ?2 AND ?3 AND state = 0",
            )?;
            let changed = statement.execute(params![
                *queue,
                first,
                last,
                call.until.as_micros(),
                call.secret,
                work.now.as_micros(),
                call.id.0.cast_signed(),
                i64::try_from(demand).unwrap_or(i64::MAX),
            ])?;
            if changed != count {
                // Undone as a whole: what is handed out and what is marked must be the same.
                return Err(rusqlite::Error::StatementChangedRows(changed));
            }
            work.claimed_up_to(*queue, last)?;
            for _ in 0..count {
                work.moved(*queue, Some(State::Pending), Some(State::Active));
            }
        }
        Ok(())
    }
}

fn serve(
    work: &mut Work<'_>,
    demand: &Demand,
    call: &Call,
    lines: &mut Lines,
    reply: &mut ClaimReply,
) -> rusqlite::Result<()> {
    let total: u64 = demand.queues.iter().map(|q| u64::from(q.weight.max(1))).sum();
    let mut lottery = Lottery::new(demand.seed, demand.queues.iter().map(|q| q.weight));
    reply.claims.reserve(demand.slots.min(SLOTS_LIKELY_MAX) as usize);
    for served in 0..demand.slots {
        let left = u64::from(demand.slots - served);
        let mut found = None;
        for &at in lottery.draw() {
            let drawn = &demand.queues[at];
            let share = (left * u64::from(drawn.weight.max(1))).div_ceil(total);
            found = next(work, &drawn.queue, share, lines, &mut reply.discarded)?;
            if found.is_some() {
                break;
            }
        }
        // No queue had one: the remaining slots would find the same.
        let Some(Stored { seq, mut task, .. }) = found else { break };
        task.state = State::Active;
        task.token = Some(token(Parts { seq, secret: call.secret }));
        (task.lease_until, task.started_at, task.pending_since) = (Some(call.until), Some(work.now), None);
        reply.claims.push(Claim { pool: demand.pool.clone(), task });
    }
    Ok(())
}

/// The next task of the queue that is to be run; flagged ones on the way are discarded.
fn next(
    work: &mut Work<'_>,
    name: &QueueName,
    share: u64,
    lines: &mut Lines,
    discarded: &mut u32,
) -> rusqlite::Result<Option<Stored>> {
    let Some(queue) = work.queue(name)?.filter(|queue| !queue.paused) else { return Ok(None) };
    let line = lines.of(work, queue.seq)?;
    loop {
        match line.ready.pop_front() {
            Some(stored) if stored.task.cancel_requested => {
                exit::give_way(work, &brief_of(queue.seq, &stored))?;
                *discarded += 1;
                // Its follow-up may stand at the end of the line now.
                line.ends = false;
            }
            Some(stored) => {
                let (first, _, count) = line.taken.unwrap_or((stored.pos, stored.pos, 0));
                line.taken = Some((first, stored.pos, count + 1));
                return Ok(Some(stored));
            }
            None if line.ends => return Ok(None),
            None => read_ahead(work, name, queue.seq, share, line)?,
        }
    }
}

/// Reads about as many as the queue is likely to be asked for; sets aside what does not decode.
fn read_ahead(
    work: &mut Work<'_>,
    name: &QueueName,
    queue: i64,
    share: u64,
    line: &mut Line,
) -> rusqlite::Result<()> {
    let sql = concat!(
        "SELECT ",
        claimable_columns!(),
        " FROM tasks WHERE queue = ?1 AND at IS NULL AND pos >= ?2 AND state = 0 ORDER BY pos LIMIT ?3"
    );
    let mut poisons = Vec::new();
    line.ready.reserve(share.min(u64::from(SLOTS_LIKELY_MAX)) as usize);
    {
        let mut statement = work.conn.prepare_cached(sql)?;
        let mut read =
            statement.query(params![queue, line.from, i64::try_from(share).unwrap_or(i64::MAX)])?;
        let mut count = 0;
        while let Some(row) = read.next()? {
            count += 1;
            match rows::claimable(work.conn, row, name, &mut line.memo) {
                Ok(stored) => {
                    line.from = stored.pos + 1;
                    line.ready.push_back(stored);
                }
                Err(poison) => poisons.push(poison),
            }
        }
        line.ends = count < share;
    }
    for poison in &poisons {
        quarantine::set_aside(work, poison)?;
    }
    Ok(())
}

fn brief_of(queue: i64, stored: &Stored) -> Brief {
    Brief {
        seq: stored.seq,
        queue,
        state: stored.task.state,
        pos: stored.pos,
        flags: stored.flags,
        secret: None,
        charges: Charges {
            retried: stored.task.retried,
            deferrals: stored.task.deferrals,
            crashes: stored.task.crashes,
        },
    }
}

/// What this very request got before its reply was lost: demand by demand, in the order of its queues, for the old pools.
fn still_held(work: &mut Work<'_>, request: &ClaimRequest) -> rusqlite::Result<Vec<Claim>> {
    let mut names: Vec<&QueueName> =
        request.demands.iter().flat_map(|d| &d.queues).map(|q| &q.queue).collect();
    names.sort_unstable();
    names.dedup();
    let mut held = Vec::new();
    for name in names {
        let Some(queue) = work.queue(name)? else { continue };
        let Ends { back, .. } = work.ends(queue.seq)?;
        let sql = concat!(
            "SELECT ",
            record_columns!(),
            ", demand FROM tasks WHERE queue = ?1 AND at IS NULL AND pos < ?2 AND state = 1 AND claim = ?3"
        );
        let mut statement = work.conn.prepare_cached(sql)?;
        let mut read = statement.query(params![queue.seq, back, request.id.0.cast_signed()])?;
        while let Some(row) = read.next()? {
            // The same request has the same demands. One that was damaged meanwhile is set aside by who takes it over.
            let nth = usize::try_from(row.get::<_, i64>("demand")?).unwrap_or(usize::MAX);
            let demand = request.demands.get(nth).or(request.demands.last());
            if let (Ok(stored), Some(demand)) = (rows::record(work.conn, row, name), demand) {
                let nth_queue = demand.queues.iter().position(|drawn| drawn.queue == *name);
                let claim = Claim { pool: demand.pool.clone(), task: stored.task };
                held.push(((nth, nth_queue, stored.pos), claim));
            }
        }
    }
    held.sort_by_key(|(place, _)| *place);
    Ok(held.into_iter().map(|(_, claim)| claim).collect())
}

/// Takes over active tasks whose lease has expired, or ends so far ahead that no right clock can have written it: a new
/// token and lease, everything else stays.
pub(crate) fn take_over(
    work: &mut Work<'_>,
    queue: i64,
    name: &QueueName,
    limit: u32,
    lease: Duration,
) -> rusqlite::Result<Vec<TaskRecord>> {
    let sql = concat!(
        "SELECT ",
        record_columns!(),
        " FROM tasks WHERE queue = ?1 AND at IS NULL AND pos < ?2 AND state = 1 AND (lease <= ?3 OR lease > ?4) \
         ORDER BY lease, id LIMIT ?5"
    );
    let (mut expired, mut poisons) = (Vec::new(), Vec::new());
    let too_far = (work.now + LEASE_AHEAD_MAX).as_micros();
    let Ends { back, .. } = work.ends(queue)?;
    {
        let mut statement = work.conn.prepare_cached(sql)?;
        let mut read = statement.query(params![queue, back, work.now.as_micros(), too_far, limit])?;
        while let Some(row) = read.next()? {
            match rows::record(work.conn, row, name) {
                Ok(stored) => expired.push(stored),
                Err(poison) => poisons.push(poison),
            }
        }
    }
    for poison in &poisons {
        quarantine::set_aside(work, poison)?;
    }
    let (until, secret) = (work.now + lease, secret(work.chance));
    let mut taken = Vec::new();
    for Stored { seq, task, .. } in expired {
        let mut statement = work
            .conn
            .prepare_cached("UPDATE tasks SET lease = ?2, token = ?3, claim = NULL WHERE seq = ?1")?;
        statement.execute(params![seq, until.as_micros(), secret])?;
        let token = token(Parts { seq, secret });
        taken.push(TaskRecord { token: Some(token), lease_until: Some(until), ..task });
    }
    Ok(taken)
}
