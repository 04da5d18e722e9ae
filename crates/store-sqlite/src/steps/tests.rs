//! What a step costs must not grow with the table.
//!
//! Counted in instructions of SQLite's machine, which are the same on every run of every machine.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use poolwright_broker::{
    ArchiveLimits, Bulk, BulkAction, ClaimId, ClaimRequest, Demand, Find, Held, PageRequest, WeightedQueue,
};
use poolwright_core::{
    Chance, Charge, Class, NewTask, PoolName, QueueName, Settlement, State, Subject, TaskId, TaskRecord,
    Timestamp, TypeName, When,
};
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::{claim, enqueue, lease, operate, promote, queue, reconcile, settle, sweep};
use crate::look;
use crate::migrate;
use crate::work::{Known, Work};

const NOW: Timestamp = Timestamp::from_secs(1_900_000_000);

/// A table in memory, and a count of what SQLite's machine does on it.
struct Table {
    conn: Connection,
    known: Known,
    chance: Chance,
    count: Arc<AtomicU64>,
    next: usize,
}

fn name() -> QueueName {
    QueueName::new("default").unwrap()
}

impl Table {
    /// With `size` tasks in each state that can grow, and a handful that run.
    fn new(size: usize) -> Self {
        let mut conn = Connection::open_in_memory().unwrap();
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).unwrap();
        migrate::up(&mut conn, Path::new("memory")).unwrap().unwrap();
        let count = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&count);
        conn.progress_handler(
            1,
            Some(move || {
                counted.fetch_add(1, Ordering::Relaxed);
                false
            }),
        )
        .unwrap();
        let mut table = Self { conn, known: Known::default(), chance: Chance::seeded(1), count, next: 0 };
        for (when, settlement) in [
            (When::Now, Some(Settlement::Complete { retain_for: Duration::from_secs(60), result: None })),
            (When::Now, Some(Settlement::Archive { error: "e".to_owned(), class: Class::Permanent })),
            (When::Now, Some(table.retry())),
            (When::At(NOW + Duration::from_secs(9)), None),
            (When::Now, None),
        ] {
            for _ in 0..size {
                let task = table.task(when);
                table.work(|work| enqueue::enqueue(work, &[&task]).unwrap());
                if let Some(settlement) = &settlement {
                    let running = table.claim(1).remove(0);
                    table.settle(&running, settlement.clone());
                }
            }
        }
        table
    }

    fn retry(&self) -> Settlement {
        let after = Duration::from_secs(9);
        Settlement::Retry { after, error: "e".to_owned(), class: Class::Transient, charge: Charge::Retry }
    }

    fn task(&mut self, when: When) -> NewTask {
        self.next += 1;
        let id = TaskId::new(format!("t{:09}", self.next)).unwrap();
        let mut task = NewTask::new(name(), id, TypeName::new("x:y").unwrap(), &b"{}"[..]);
        task.when = when;
        task.subjects = vec![Subject::new("knowledge", format!("kn_{}", self.next))];
        task
    }

    fn work<T>(&mut self, step: impl FnOnce(&mut Work<'_>) -> T) -> T {
        self.conn.execute_batch("BEGIN").unwrap();
        let mut work = Work::begin(&self.conn, &self.chance, &mut self.known, NOW).unwrap();
        let done = step(&mut work);
        work.finish().unwrap();
        self.conn.execute_batch("COMMIT").unwrap();
        done
    }

    fn claim(&mut self, slots: u32) -> Vec<TaskRecord> {
        let queues = vec![WeightedQueue { queue: name(), weight: 1 }];
        let demand = Demand { pool: PoolName::new("core").unwrap(), slots, queues, seed: 1 };
        let id = ClaimId::fresh(&self.chance);
        let request =
            ClaimRequest { id, resent: false, lease: Duration::from_secs(10), demands: vec![demand] };
        let claims = self.work(|work| claim::claim(work, &request).unwrap().claims);
        claims.into_iter().map(|claim| claim.task).collect()
    }

    fn settle(&mut self, task: &TaskRecord, settlement: Settlement) {
        let held = Held::of(task).unwrap();
        self.work(|work| settle::settle(work, &held, &settlement).unwrap().unwrap());
    }

    /// What this costs, when everything it needs has been prepared once.
    fn cost(&mut self, mut act: impl FnMut(&mut Self)) -> u64 {
        act(self);
        let before = self.count.load(Ordering::Relaxed);
        act(self);
        self.count.load(Ordering::Relaxed) - before
    }
}

type Costs = Vec<(&'static str, u64)>;

/// What a worker asks for, by name, with its cost on this table.
fn costs_of_work(table: &mut Table) -> Costs {
    let enqueue = table.cost(|t| {
        let task = t.task(When::Now);
        t.work(|work| enqueue::enqueue(work, &[&task]).unwrap());
    });
    let complete = table.cost(|t| {
        let task = t.claim(1).remove(0);
        t.settle(&task, Settlement::Complete { retain_for: Duration::ZERO, result: None });
    });
    let retry = table.cost(|t| {
        let task = t.claim(1).remove(0);
        let retry = t.retry();
        t.settle(&task, retry);
    });
    let release = table.cost(|t| {
        let task = t.claim(1).remove(0);
        let held = Held::of(&task).unwrap();
        t.work(|work| lease::extend(work, &held, Duration::from_secs(10)).unwrap());
        t.settle(&task, Settlement::Release);
    });
    vec![("enqueue", enqueue), ("complete", complete), ("retry", retry), ("extend and release", release)]
}

/// What the loops ask for.
fn costs_of_upkeep(table: &mut Table) -> Costs {
    let take_over = table.cost(|t| {
        t.work(|work| {
            let queue = work.queue(&name()).unwrap().unwrap();
            claim::take_over(work, queue.seq, &name(), 10, Duration::from_secs(10)).unwrap()
        });
    });
    let promote = table.cost(|t| {
        t.work(|work| promote::promote_due(work, &[name()], 10).unwrap());
    });
    let sweep = table.cost(|t| {
        let (tasks_max, age_max) = (1_000_000, Duration::from_secs(86_400));
        let limits = [ArchiveLimits { queue: name(), tasks_max, age_max, spare_unrecorded: true }];
        t.work(|work| sweep::sweep(work, &limits).unwrap());
    });
    let unrecorded = table.cost(|t| drop(look::unrecorded(&t.conn, &[name()], 5).unwrap()));
    vec![("take over", take_over), ("promote", promote), ("sweep", sweep), ("unrecorded", unrecorded)]
}

/// What people ask for.
fn costs_of_inspection(table: &mut Table) -> Costs {
    let mut costs = Vec::new();
    for state in [State::Pending, State::Scheduled, State::Retry, State::Archived, State::Completed] {
        let delete_and_page = table.cost(|t| {
            let (action, reason) = (BulkAction::Delete, String::new());
            let bulk = Bulk { queue: name(), state, action, limit: 3, reason };
            t.work(|work| operate::bulk(work, &bulk).unwrap());
            let request = PageRequest { queue: name(), state, after: None, limit: 5 };
            let first = look::page(&t.conn, &request).unwrap().value;
            assert_eq!(first.tasks.len(), 5);
            look::page(&t.conn, &PageRequest { after: first.next, ..request }).unwrap();
        });
        costs.push((state.as_str(), delete_and_page));
    }
    costs.push(("numbers", table.cost(|t| drop(look::stats(&t.conn, name(), NOW.day()).unwrap()))));
    let find = table.cost(|t| {
        let what = Find::Subject(Subject::new("knowledge", "kn_7"));
        drop(look::find(&t.conn, &what, 10).unwrap());
    });
    costs.push(("find", find));
    let clear =
        table.cost(|t| assert!(!t.work(|work| queue::clear_removed(work).unwrap()), "nothing was removed"));
    costs.push(("clear", clear));
    costs
}

fn costs(size: usize) -> Costs {
    let mut table = Table::new(size);
    let mut costs = costs_of_work(&mut table);
    costs.extend(costs_of_upkeep(&mut table));
    costs.extend(costs_of_inspection(&mut table));
    costs
}

#[test]
fn no_step_costs_more_in_a_larger_table() {
    for ((what, few), (_, many)) in costs(40).into_iter().zip(costs(1_200)) {
        // A little more may fall to a page that is split; a walk would cost thirty times as much.
        assert!(
            many <= few + few / 5 + 20,
            "{what}: {few} instructions in a small table, {many} in a large one"
        );
        assert!(few > 0, "{what} was counted");
    }
}

#[test]
fn a_reconciliation_mends_what_a_foreign_hand_broke() {
    let mut table = Table::new(3);
    let running = table.claim(1).remove(0);
    table
        .conn
        .execute_batch(
            "INSERT INTO subjects (role, kind, id, task) VALUES (0, 'knowledge', 'gone', 999999);
             INSERT INTO locks (queue, key, task, until) VALUES (1, 'gone', 999999, 9000000000000000);
             UPDATE tasks SET token = NULL WHERE state = 1;",
        )
        .unwrap();
    let mended = table.work(|work| reconcile::reconcile(work, &[name()]).unwrap());
    assert_eq!((mended.index_entries, mended.locks, mended.leaseless), (1, 1, 1));
    let taken = table.work(|work| {
        let queue = work.queue(&name()).unwrap().unwrap();
        claim::take_over(work, queue.seq, &name(), 10, Duration::from_secs(10)).unwrap()
    });
    assert_eq!(taken.iter().map(|task| task.key.clone()).collect::<Vec<_>>(), [running.key]);
    let again = table.work(|work| reconcile::reconcile(work, &[name()]).unwrap());
    assert_eq!((again.index_entries, again.locks, again.leaseless), (0, 0, 0));
}

#[test]
fn a_claim_costs_the_same_however_many_tasks_run() {
    let [few, many] = [10, 1_000].map(|running| {
        let mut table = Table::new(0);
        for _ in 0..running + 20 {
            let task = table.task(When::Now);
            table.work(|work| enqueue::enqueue(work, &[&task]).unwrap());
        }
        assert_eq!(table.claim(running).len(), running as usize);
        table.cost(|t| {
            let task = t.claim(1).remove(0);
            t.settle(&task, Settlement::Complete { retain_for: Duration::ZERO, result: None });
        })
    });
    assert!(many <= few + few / 5, "{few} instructions beside 10 running tasks, {many} beside 1,000");
}

#[test]
fn a_released_task_is_found_again_before_those_that_came_later() {
    let mut table = Table::new(5);
    let running = table.claim(3);
    table.settle(&running[1], Settlement::Release);
    let again = table.claim(2);
    assert_eq!(again[0].key, running[1].key);
    assert!(again[1].key.id > running[2].key.id, "and then the next that waits");
}

#[test]
fn a_front_that_is_too_far_is_moved_back_by_a_reconciliation() {
    let mut table = Table::new(3);
    table.conn.execute_batch("UPDATE queues SET front = 1000000").unwrap();
    assert!(table.claim(1).is_empty());
    table.work(|work| reconcile::reconcile(work, &[name()]).unwrap());
    assert_eq!(table.claim(1).len(), 1);
}
