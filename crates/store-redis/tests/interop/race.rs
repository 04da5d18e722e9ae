//! Both sides take from one queue while workers of both are killed: each task ends once, and none is run again but for a holder
//! that was killed.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use poolwright_broker::{Dispatch, Error, Held, Inspect, PageRequest, TakeOver, Upkeep};
use poolwright_core::{Chance, Charge, Class, NewTask, Settlement, State, TaskRecord, Timestamp};
use serde_json::json;
use tokio::sync::{Mutex, watch};

use crate::both::{self, Both, queue, task};
use crate::go::{Heard, Process};

const TASKS: usize = 20_000;

/// Our leases are short; Go's last 30 s, and are ours after another 30.
const LEASE: Duration = Duration::from_secs(2);

const KEPT: Duration = Duration::from_secs(3_600);

/// Workers of Go that are killed.
const KILLS: usize = 8;

/// Claims of ours, of which one in so many dies with what it holds.
const DEATHS: f64 = 0.02;

const GO: [&str; 10] = [
    "--queues",
    "q",
    "--concurrency",
    "10",
    "--task-check-interval",
    "20ms",
    "--delayed-check-interval",
    "100ms",
    "--retry-delay",
    "1s",
];

/// What our claimers saw: who began what, who was killed, what they ended.
#[derive(Default)]
struct Book {
    starts: Vec<(String, String)>,
    killed: HashSet<String>,
    ended: Vec<String>,
    lost: Vec<String>,
}

struct Race {
    both: Both,
    heard: Heard,
    book: Mutex<Book>,
    holders: AtomicUsize,
    over: watch::Sender<bool>,
    chance: Chance,
}

fn payload(at: usize) -> String {
    format!(r#"{{"ms":{}}}"#, at % 4)
}

fn ours(at: usize) -> NewTask {
    NewTask { retention: KEPT, ..task(&format!("ours{at}"), &payload(at)) }
}

impl Race {
    async fn fill(&self) {
        let theirs = (0..TASKS / 2).map(|at| {
            let id = format!("go{at}");
            json!({"type": "t", "queue": "q", "id": id, "payload": payload(at), "retention_ms": 3_600_000})
        });
        let theirs: Vec<_> = theirs.collect();
        let ours: Vec<_> = (0..TASKS / 2).map(ours).collect();
        tokio::join!(self.both.go.enqueue(&theirs), self.both.send(ours));
    }

    /// Claims and ends tasks as a process does; now and then it dies with what it holds, and another begins.
    async fn claimer(&self) {
        let mut over = self.over.subscribe();
        let mut said = self.heard.subscribe();
        while !*over.borrow() {
            let store = self.both.another().await;
            let holder = format!("ours/{}", self.holders.fetch_add(1, Ordering::Relaxed));
            loop {
                // Not faster than Go, so that both have their share.
                let turn = tokio::select! {
                    _ = over.wait_for(|over| *over) => false,
                    changed = said.changed() => changed.is_ok(),
                };
                if !turn || self.claim(&*store, &holder).await.is_none() {
                    break;
                }
            }
        }
    }

    /// One claim and what becomes of it; none when its holder died.
    async fn claim(&self, store: &dyn Dispatch, holder: &str) -> Option<()> {
        let claimed = both::claim(store, "q", 4, LEASE).await;
        let starts = claimed.iter().map(|task| (task.key.id.to_string(), holder.to_owned()));
        self.book.lock().await.starts.extend(starts);
        let dies = !claimed.is_empty() && self.chance.roll() < DEATHS;
        let ended = if dies { claimed.len() / 2 } else { claimed.len() };
        for task in &claimed[..ended] {
            let settlement = Settlement::Complete { retain_for: task.retention, result: None };
            let outcome = store.settle(vec![(Held::of(task).unwrap(), settlement)]).await.unwrap().remove(0);
            let mut book = self.book.lock().await;
            match outcome {
                Ok(_) => book.ended.push(task.key.id.to_string()),
                Err(Error::LeaseLost { .. } | Error::NotFound { .. }) => {
                    book.lost.push(task.key.id.to_string())
                }
                Err(error) => panic!("{error}"),
            }
        }
        if dies {
            self.book.lock().await.killed.insert(holder.to_owned());
        }
        (!dies).then_some(())
    }

    /// What every worker of ours does beside, until all tasks have ended.
    async fn upkeep(&self) {
        let store = &self.both.store;
        both::until("the end of all tasks", async || {
            let request =
                TakeOver { queues: vec![queue("q")], limit: 100, lease: LEASE, not_after: Timestamp::MAX };
            for task in store.take_over(request).await.unwrap() {
                let error = "its worker is gone".to_owned();
                let again = Settlement::Retry {
                    after: Duration::ZERO,
                    error,
                    class: Class::Crashed,
                    charge: Charge::Crash,
                };
                // Go's recoverer may have been quicker.
                store.settle(vec![(Held::of(&task).unwrap(), again)]).await.unwrap().remove(0).ok();
            }
            store.promote_due(vec![queue("q")], 1_000).await.unwrap();
            (self.both.stats("q").await.completed == TASKS as u64).then_some(())
        })
        .await;
        self.over.send_replace(true);
    }

    /// Kills a worker of Go each time when they have said so much more, and starts another.
    async fn killer(&self, mut workers: Vec<Process>) {
        let mut over = self.over.subscribe();
        let mut said = self.heard.subscribe();
        for _ in 0..KILLS {
            let more = said.borrow().len() + 500 + (self.chance.next() % 1_000) as usize;
            tokio::select! {
                _ = over.wait_for(|over| *over) => break,
                enough = said.wait_for(|lines| lines.len() >= more) => drop(enough.unwrap()),
            }
            let dead = workers.remove(0);
            self.book.lock().await.killed.insert(format!("go/{}", dead.pid));
            dead.kill().await;
            workers.push(self.both.go.worker_into(&self.heard, &GO).await);
        }
        over.wait_for(|over| *over).await.unwrap();
        for worker in workers {
            worker.stop().await;
        }
    }

    /// All that completed, as the store shows it.
    async fn completed(&self) -> Vec<TaskRecord> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let request = PageRequest { queue: queue("q"), state: State::Completed, after, limit: 1_000 };
            let page = self.both.store.page(request).await.unwrap();
            all.extend(page.tasks);
            after = page.next;
            if after.is_none() {
                return all;
            }
        }
    }

    /// Who began each task and who ended it, both sides together.
    async fn runs(&self) -> BTreeMap<String, Runs> {
        let book = self.book.lock().await;
        let mut runs = BTreeMap::<String, Runs>::new();
        for (id, holder) in &book.starts {
            let runs = runs.entry(id.clone()).or_default();
            let killed = book.killed.contains(holder);
            *(if killed { &mut runs.by_killed } else { &mut runs.by_living }) += 1;
        }
        for id in &book.ended {
            runs.entry(id.clone()).or_default().ended += 1;
        }
        for id in &book.lost {
            runs.entry(id.clone()).or_default().lost += 1;
        }
        self.heard.look(|lines| {
            for line in lines.iter().filter(|line| line["id"].is_string()) {
                let killed = book.killed.contains(&format!("go/{}", line["pid"]));
                let runs = runs.entry(line["id"].as_str().unwrap().to_owned()).or_default();
                match line["event"].as_str().unwrap() {
                    "start" if killed => runs.by_killed += 1,
                    "start" => runs.by_living += 1,
                    "end" if !killed => runs.ended += 1,
                    _ => {}
                }
            }
        });
        runs
    }
}

#[derive(Debug, Default)]
struct Runs {
    by_killed: usize,
    by_living: usize,
    ended: usize,
    lost: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_take_from_one_queue_under_kills_and_each_task_ends_once() {
    let Some(both) = Both::start().await else { return };
    let race = Arc::new(Race {
        both,
        heard: Heard::default(),
        book: Mutex::default(),
        holders: AtomicUsize::new(0),
        over: watch::Sender::new(false),
        chance: Chance::from_entropy(),
    });
    race.fill().await;
    let workers = vec![
        race.both.go.worker_into(&race.heard, &GO).await,
        race.both.go.worker_into(&race.heard, &GO).await,
    ];
    let claimers = async { tokio::join!(race.claimer(), race.claimer(), race.claimer()) };
    tokio::join!(race.upkeep(), race.killer(workers), claimers);

    let stats = race.both.stats("q").await;
    assert_eq!((stats.size(), stats.completed, stats.quarantined), (0, TASKS as u64, 0), "{stats:?}");
    let completed = race.completed().await;
    let (mut retried, mut crashes) = (0, 0);
    for task in &completed {
        retried += u64::from(task.retried);
        crashes += task.crashes;
    }
    assert_eq!((stats.failed, stats.processed), (retried, TASKS as u64 + retried));
    let runs = race.runs().await;
    assert_eq!((runs.len(), completed.len()), (TASKS, TASKS));
    let sum = |of: fn(&Runs) -> usize| runs.values().map(of).sum::<usize>();
    eprintln!(
        "figures: {TASKS} tasks, {} starts ({} of Go), {} by holders that were killed ({} holders), {retried} rescued by Go, \
         {crashes} by us, {} settlements too late",
        sum(|runs| runs.by_killed + runs.by_living),
        race.heard.look(|lines| lines.iter().filter(|line| line["event"] == "start").count()),
        sum(|runs| runs.by_killed),
        race.book.lock().await.killed.len(),
        sum(|runs| runs.lost),
    );
    for task in &completed {
        let runs = &runs[task.key.id.as_str()];
        let paid = (task.crashes + task.retried) as usize;
        assert!(runs.by_killed + runs.by_living <= 1 + paid, "{} ran again for nothing: {runs:?}", task.key);
    }
    for (id, runs) in &runs {
        assert!(runs.by_living <= 1 + runs.lost, "{id} ran again beside a holder that lived: {runs:?}");
        assert!(runs.ended <= 1, "{id} ended twice: {runs:?}");
    }
    let killed = race.both.redis(&["EXISTS", "asynq:{q}:active", "asynq:{q}:lease", "asynq:{q}:retry"]).await;
    assert_eq!(killed, 0);
}
