//! One write transaction: what its steps share.
//!
//! Steps change rows at once and tell this what they changed; counters, positions and wake-ups are written together
//! when the transaction ends, whatever the number of steps.
//!
//! Invariant: every change of a task's state goes through [`Work::moved`], so counters and rows cannot part.

use std::cell::RefCell;
use std::collections::HashMap;

use poolwright_core::{Chance, QueueName, State, Timestamp};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, params};

/// A queue as every step sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Queue {
    /// Its row.
    pub(crate) seq: i64,
    /// No claims.
    pub(crate) paused: bool,
}

/// Queues by name, as far as they were asked for; also those that do not exist. Good for one generation.
#[derive(Debug, Default)]
pub(crate) struct Known {
    generation: i64,
    queues: HashMap<QueueName, Option<Queue>>,
    /// The one that was asked for last: a batch asks for the same again and again.
    last: Option<(QueueName, Option<Queue>)>,
}

impl Known {
    /// Forgets everything: a transaction was undone.
    pub(crate) fn forget(&mut self) {
        self.clear();
        self.generation = -1;
    }

    fn clear(&mut self) {
        self.queues.clear();
        self.last = None;
    }

    fn insert(&mut self, name: &QueueName, queue: Option<Queue>) {
        self.queues.insert(name.clone(), queue);
        self.last = None;
    }

    fn get(&mut self, name: &QueueName) -> Option<Option<Queue>> {
        if let Some((last, queue)) = &self.last
            && last == name
        {
            return Some(*queue);
        }
        let queue = *self.queues.get(name)?;
        self.last = Some((name.clone(), queue));
        Some(queue)
    }
}

/// What one transaction changed in one queue.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    states: [i64; 6],
    processed: i64,
    failed: i64,
    day: i64,
    got_work: bool,
    used: bool,
    /// Where they are now, if they moved.
    ends: Option<Ends>,
}

/// Where to look for a queue's tasks that wait for a worker or have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    /// No pending task has a place before this one.
    pub(crate) front: i64,
    /// No active task has this place or a later one.
    pub(crate) back: i64,
}

/// A queue that may have work now, and the number that other processes will see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Woken {
    /// The queue's row.
    pub(crate) queue: i64,
    /// Its stored name.
    pub(crate) name: QueueName,
    /// Its `wake` column after the transaction.
    pub(crate) wake: i64,
}

/// Statements that run once for every task of a batch. They are looked up in the connection's cache once for a
/// transaction, because the look-up costs as much as a tenth of the statement.
pub(crate) struct Hot<'w> {
    /// See [`crate::steps::store`].
    pub(crate) insert: Lazy<'w>,
    /// See [`crate::steps::store`].
    pub(crate) insert_many: Lazy<'w>,
    /// See [`crate::steps::settle`].
    pub(crate) complete: Lazy<'w>,
}

impl<'w> Hot<'w> {
    fn new(conn: &'w Connection) -> Self {
        let lazy = || Lazy { conn, statement: RefCell::new(None) };
        Self { insert: lazy(), insert_many: lazy(), complete: lazy() }
    }
}

/// A statement that is looked up when it is run first.
pub(crate) struct Lazy<'w> {
    conn: &'w Connection,
    statement: RefCell<Option<CachedStatement<'w>>>,
}

impl Lazy<'_> {
    /// Runs it; gives the number of rows changed. The text must be the same each time.
    pub(crate) fn execute(&self, sql: &str, values: impl Params) -> rusqlite::Result<usize> {
        let mut slot = self.statement.borrow_mut();
        if let Some(statement) = slot.as_mut() {
            return statement.execute(values);
        }
        let mut statement = self.conn.prepare_cached(sql)?;
        let changed = statement.execute(values);
        *slot = Some(statement);
        changed
    }
}

/// An open transaction.
pub(crate) struct Work<'w> {
    /// Where statements run.
    pub(crate) conn: &'w Connection,
    /// Those that run once for every task.
    pub(crate) hot: Hot<'w>,
    /// Where tokens come from.
    pub(crate) chance: &'w Chance,
    /// The store's time, the same for the whole transaction: it happens at one instant.
    pub(crate) now: Timestamp,
    known: &'w mut Known,
    generation: i64,
    next: i64,
    first: i64,
    tallies: Vec<(i64, Tally)>,
    /// Those that were asked for.
    ends: Vec<(i64, Ends)>,
}

impl<'w> Work<'w> {
    /// Begins the bookkeeping of a transaction that was just begun.
    pub(crate) fn begin(
        conn: &'w Connection,
        chance: &'w Chance,
        known: &'w mut Known,
        now: Timestamp,
    ) -> rusqlite::Result<Self> {
        let mut statement = conn.prepare_cached("SELECT next_pos, generation FROM meta")?;
        let (next, generation) = statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        if known.generation != generation {
            known.clear();
            known.generation = generation;
        }
        let hot = Hot::new(conn);
        Ok(Self {
            conn,
            hot,
            chance,
            now,
            known,
            generation,
            next,
            first: next,
            tallies: Vec::new(),
            ends: Vec::new(),
        })
    }

    /// The queue, if it was ever used or paused.
    pub(crate) fn queue(&mut self, name: &QueueName) -> rusqlite::Result<Option<Queue>> {
        if let Some(known) = self.known.get(name) {
            return Ok(known);
        }
        let mut statement =
            self.conn.prepare_cached("SELECT seq, paused_at IS NOT NULL FROM queues WHERE name = ?1")?;
        let found = statement
            .query_row([name.as_str()], |row| Ok(Queue { seq: row.get(0)?, paused: row.get(1)? }))
            .optional()?;
        self.known.insert(name, found);
        Ok(found)
    }

    /// The queue; made when it is not there.
    pub(crate) fn queue_or_new(&mut self, name: &QueueName) -> rusqlite::Result<Queue> {
        if let Some(queue) = self.queue(name)? {
            return Ok(queue);
        }
        self.conn.prepare_cached("INSERT INTO queues (name) VALUES (?1)")?.execute([name.as_str()])?;
        let queue = Queue { seq: self.conn.last_insert_rowid(), paused: false };
        self.changed_queues();
        self.known.insert(name, Some(queue));
        Ok(queue)
    }

    /// A queue appeared, went, was paused or resumed: what anybody knows of queues is stale.
    pub(crate) fn changed_queues(&mut self) {
        self.generation = self.known.generation + 1;
        self.known.clear();
    }

    /// The next place in a queue, behind everything there is; also the number of a new row. Never given twice.
    pub(crate) fn place(&mut self) -> i64 {
        self.places(1)
    }

    /// So many places in a row; gives the first one.
    pub(crate) fn places(&mut self, count: usize) -> i64 {
        let first = self.next;
        self.next += i64::try_from(count).unwrap_or(0);
        first
    }

    /// A task of this queue went from one state to another; none stands for "not there".
    pub(crate) fn moved(&mut self, queue: i64, from: Option<State>, to: Option<State>) {
        let tally = self.tally(queue);
        if let Some(from) = from {
            tally.states[code(from) as usize] -= 1;
        }
        if let Some(to) = to {
            tally.states[code(to) as usize] += 1;
            tally.used = true;
            tally.got_work |= matches!(to, State::Pending | State::Scheduled | State::Retry);
        }
    }

    /// An attempt ended and counts.
    pub(crate) fn ended(&mut self, queue: i64, failed: bool) {
        let day = self.now.day();
        let tally = self.tally(queue);
        tally.day = day;
        tally.processed += 1;
        tally.failed += i64::from(failed);
    }

    /// Where its pending and active tasks are.
    pub(crate) fn ends(&mut self, queue: i64) -> rusqlite::Result<Ends> {
        if let Some((_, ends)) = self.ends.iter().find(|(seq, _)| *seq == queue) {
            return Ok(*ends);
        }
        let mut statement = self.conn.prepare_cached("SELECT front, back FROM queues WHERE seq = ?1")?;
        let ends = statement.query_row([queue], |row| Ok(Ends { front: row.get(0)?, back: row.get(1)? }))?;
        self.ends.push((queue, ends));
        Ok(ends)
    }

    /// All pending tasks up to this place became active or are gone.
    pub(crate) fn claimed_up_to(&mut self, queue: i64, place: i64) -> rusqlite::Result<()> {
        let Ends { back, .. } = self.ends(queue)?;
        self.move_ends(queue, Ends { front: place + 1, back: back.max(place + 1) });
        Ok(())
    }

    /// A task is pending again at the place it had.
    pub(crate) fn returned(&mut self, queue: i64, place: i64) -> rusqlite::Result<()> {
        let ends = self.ends(queue)?;
        self.move_ends(queue, Ends { front: ends.front.min(place), ..ends });
        Ok(())
    }

    fn move_ends(&mut self, queue: i64, ends: Ends) {
        self.ends.iter_mut().filter(|(seq, _)| *seq == queue).for_each(|(_, known)| *known = ends);
        self.tally(queue).ends = Some(ends);
    }

    /// The queue may have work although no task moved.
    pub(crate) fn stir(&mut self, queue: i64) {
        self.tally(queue).got_work = true;
    }

    /// The queue's row is gone: there is nothing left to count.
    pub(crate) fn forget(&mut self, queue: i64) {
        self.tallies.retain(|(seq, _)| *seq != queue);
    }

    /// How many tasks of each state the queue has now, what this transaction did included.
    pub(crate) fn counts(&self, queue: i64) -> rusqlite::Result<[u64; 6]> {
        let mut statement = self.conn.prepare_cached(
            "SELECT pending, active, scheduled, retry, archived, completed FROM queues WHERE seq = ?1",
        )?;
        let mut counts = [0_u64; 6];
        let row = statement
            .query_row([queue], |row| (0..6).map(|at| row.get(at)).collect::<rusqlite::Result<Vec<i64>>>())?;
        let told =
            self.tallies.iter().find(|(seq, _)| *seq == queue).map_or([0; 6], |(_, tally)| tally.states);
        for ((count, stored), change) in counts.iter_mut().zip(row).zip(told) {
            *count = u64::try_from(stored + change).unwrap_or(0);
        }
        Ok(counts)
    }

    /// The queue got a task once.
    pub(crate) fn is_used(&self, queue: i64) -> rusqlite::Result<bool> {
        if self.tallies.iter().any(|(seq, tally)| *seq == queue && tally.used) {
            return Ok(true);
        }
        self.conn
            .prepare_cached("SELECT used FROM queues WHERE seq = ?1")?
            .query_row([queue], |row| row.get(0))
    }

    fn tally(&mut self, queue: i64) -> &mut Tally {
        // A transaction touches a handful of queues: a search is quicker than a hash.
        let at = self.tallies.iter().position(|(seq, _)| *seq == queue).unwrap_or_else(|| {
            self.tallies.push((queue, Tally::default()));
            self.tallies.len() - 1
        });
        &mut self.tallies[at].1
    }

    /// Writes what the steps told; gives the queues to wake once the transaction is committed.
    pub(crate) fn finish(self) -> rusqlite::Result<Vec<Woken>> {
        let mut woken = Vec::new();
        for (queue, tally) in &self.tallies {
            woken.extend(write_tally(self.conn, *queue, tally)?);
        }
        if self.next != self.first || self.generation != self.known.generation {
            let mut statement = self.conn.prepare_cached("UPDATE meta SET next_pos = ?1, generation = ?2")?;
            statement.execute([self.next, self.generation])?;
            self.known.generation = self.generation;
        }
        Ok(woken)
    }
}

/// Gives the queue as it is to be woken, when it got work.
fn write_tally(conn: &Connection, queue: i64, tally: &Tally) -> rusqlite::Result<Option<Woken>> {
    // Asking back makes a statement half as dear again, and most transactions bring no work.
    const CHANGE: &str = "UPDATE queues SET pending = pending + ?2, active = active + ?3, \
         scheduled = scheduled + ?4, retry = retry + ?5, archived = archived + ?6, completed = completed + ?7, \
         processed = processed + ?8, failed = failed + ?9, front = coalesce(?10, front), \
         back = coalesce(?11, back) WHERE seq = ?1";
    const WAKE: &str = "UPDATE queues SET pending = pending + ?2, active = active + ?3, \
         scheduled = scheduled + ?4, retry = retry + ?5, archived = archived + ?6, completed = completed + ?7, \
         processed = processed + ?8, failed = failed + ?9, front = coalesce(?10, front), \
         back = coalesce(?11, back), wake = wake + 1, used = used OR ?12 \
         WHERE seq = ?1 RETURNING wake, name";
    let [pending, active, scheduled, retry, archived, completed] = tally.states;
    let (processed, failed) = (tally.processed, tally.failed);
    if tally.processed > 0 {
        let mut statement = conn.prepare_cached(
            "INSERT INTO days (queue, day, processed, failed) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT (queue, day) DO UPDATE \
             SET processed = processed + excluded.processed, failed = failed + excluded.failed",
        )?;
        statement.execute([queue, tally.day, processed, failed])?;
    }
    let (front, back) = tally.ends.map(|Ends { front, back }| (front, back)).unzip();
    if !tally.got_work {
        let mut statement = conn.prepare_cached(CHANGE)?;
        statement.execute(params![
            queue, pending, active, scheduled, retry, archived, completed, processed, failed, front, back
        ])?;
        return Ok(None);
    }
    let values = params![
        queue, pending, active, scheduled, retry, archived, completed, processed, failed, front, back,
        tally.used
    ];
    let (wake, name) = conn.prepare_cached(WAKE)?.query_row(values, |row| {
        let name = row.get_ref(1)?.as_str_or_null()?.and_then(|name| QueueName::new(name).ok());
        Ok((row.get(0)?, name))
    })?;
    // A queue whose name is gone was removed in this transaction.
    Ok(name.map(|name| Woken { queue, name, wake }))
}

/// The number that stands for a state in the file.
pub(crate) const fn code(state: State) -> i64 {
    match state {
        State::Pending => 0,
        State::Active => 1,
        State::Scheduled => 2,
        State::Retry => 3,
        State::Archived => 4,
        State::Completed => 5,
    }
}

/// The state that a number of the file stands for.
pub(crate) fn state_of(code: i64) -> Option<State> {
    usize::try_from(code).ok().and_then(|at| State::ALL.get(at).copied())
}
