//! What happened on the stages of a story, in this process and in others, and waiting for it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use poolwright::core::Class;
use poolwright::handler::Context;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::plan::{Line, Told};

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A handler began.
    Start,
    /// A handler is gone: it returned, panicked or was dropped.
    End,
    /// A waiting handler was asked to end, for this reason if one was given.
    Asked(Option<Class>),
    /// Work that a handler left behind has ended.
    Forgotten,
}

/// Something that happened to one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// What.
    pub what: What,
    /// The task's id.
    pub id: String,
    /// Its type.
    pub task_type: String,
    /// Its queue.
    pub queue: String,
    /// The pool that runs it.
    pub pool: String,
    /// The token of the attempt.
    pub token: String,
    /// Retries used before it.
    pub retried: u32,
    /// Deferrals before it.
    pub deferrals: u32,
    /// Crashes before it.
    pub crashes: u32,
    /// The process.
    pub pid: u32,
}

impl Event {
    /// This happened to the attempt of this context.
    #[must_use]
    pub fn of(what: What, cx: &Context) -> Self {
        let task = cx.task();
        Self {
            what,
            id: task.key.id.to_string(),
            task_type: task.task_type.to_string(),
            queue: task.key.queue.to_string(),
            pool: cx.pool().to_string(),
            token: task.token.map(|token| token.to_string()).unwrap_or_default(),
            retried: task.retried,
            deferrals: task.deferrals,
            crashes: task.crashes,
            pid: std::process::id(),
        }
    }

    /// Its attempt is not the first by what the task had to pay before: a retry or a deferral.
    #[must_use]
    pub const fn was_charged(&self) -> bool {
        self.retried > 0 || self.deferrals > 0
    }
}

/// Everything that was told so far.
#[derive(Debug, Default)]
pub struct Log {
    /// Only what the sums need is kept: for stories of many hours.
    lean: bool,
    events: Vec<Event>,
    starts: usize,
    starts_by_id: HashMap<String, usize>,
    starts_by_pid: HashMap<u32, usize>,
    tokens: HashSet<u128>,
    twin_tokens: usize,
    on_stage: HashMap<(u32, String), usize>,
    peaks: BTreeMap<String, usize>,
    servers: HashMap<u32, String>,
    told: HashMap<u32, Told>,
    sent: HashMap<u32, u64>,
    gone: HashSet<u32>,
}

impl Log {
    /// All that happened, in order. Empty for a lean journal.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// All starts of handlers, in order.
    pub fn starts(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(|event| event.what == What::Start)
    }

    /// How often handlers were started.
    #[must_use]
    pub const fn start_count(&self) -> usize {
        self.starts
    }

    /// How often this task was started.
    #[must_use]
    pub fn starts_of(&self, id: &str) -> usize {
        self.starts_by_id.get(id).copied().unwrap_or(0)
    }

    /// How many handlers this process started.
    #[must_use]
    pub fn starts_by(&self, pid: u32) -> usize {
        self.starts_by_pid.get(&pid).copied().unwrap_or(0)
    }

    /// How many different tasks were started.
    #[must_use]
    pub fn started_tasks(&self) -> usize {
        self.starts_by_id.len()
    }

    /// How many tasks were started more than once.
    #[must_use]
    pub fn restarted_tasks(&self) -> usize {
        self.starts_by_id.values().filter(|starts| **starts > 1).count()
    }

    /// Starts whose token another attempt had before.
    #[must_use]
    pub const fn twin_tokens(&self) -> usize {
        self.twin_tokens
    }

    /// How many handlers of a pool run, in processes that live.
    #[must_use]
    pub fn on_stage(&self, pool: &str) -> usize {
        self.on_stage.iter().filter(|((_, of), _)| of == pool).map(|(_, count)| count).sum()
    }

    /// The most handlers of a pool that ever ran at once in one process.
    #[must_use]
    pub fn peak(&self, pool: &str) -> usize {
        self.peaks.get(pool).copied().unwrap_or(0)
    }

    /// Tasks of a queue that are on a stage of this pool, in the order of their starts.
    #[must_use]
    pub fn playing(&self, pool: &str, queue: &str) -> Vec<String> {
        let here = self.events.iter().filter(|event| event.pool == pool && event.queue == queue);
        let mut playing: Vec<&Event> = Vec::new();
        for event in here {
            match event.what {
                What::Start => playing.push(event),
                What::End => playing.retain(|other| other.token != event.token),
                What::Asked(_) | What::Forgotten => {}
            }
        }
        playing.into_iter().map(|event| event.id.clone()).collect()
    }

    /// How often this happened.
    #[must_use]
    pub fn count(&self, what: What) -> usize {
        self.events.iter().filter(|event| event.what == what).count()
    }

    /// A process is up: the id of its worker.
    #[must_use]
    pub fn server(&self, pid: u32) -> Option<&str> {
        self.servers.get(&pid).map(String::as_str)
    }

    /// What a worker process said of itself last.
    #[must_use]
    pub fn told(&self, pid: u32) -> Told {
        self.told.get(&pid).cloned().unwrap_or_default()
    }

    /// How many tasks a producer process said that it sent.
    #[must_use]
    pub fn sent(&self, pid: u32) -> u64 {
        self.sent.get(&pid).copied().unwrap_or(0)
    }

    /// A process has ended, and all that it said was heard.
    #[must_use]
    pub fn is_gone(&self, pid: u32) -> bool {
        self.gone.contains(&pid)
    }

    fn note(&mut self, event: Event) {
        let stage = (event.pid, event.pool.clone());
        match event.what {
            What::Start => {
                self.starts += 1;
                *self.starts_by_id.entry(event.id.clone()).or_default() += 1;
                *self.starts_by_pid.entry(event.pid).or_default() += 1;
                let token = u128::from_str_radix(&event.token, 16).expect("an attempt has a token");
                self.twin_tokens += usize::from(!self.tokens.insert(token));
                let here = self.on_stage.entry(stage).or_default();
                *here += 1;
                let peak = self.peaks.entry(event.pool.clone()).or_default();
                *peak = (*peak).max(*here);
            }
            What::End => *self.on_stage.get_mut(&stage).expect("what ends has begun") -= 1,
            What::Asked(_) | What::Forgotten => {}
        }
        if !self.lean {
            self.events.push(event);
        }
    }
}

/// A log that everybody can write and wait for. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub struct Journal(Arc<watch::Sender<Log>>);

impl Journal {
    /// A journal that keeps no single event.
    #[must_use]
    pub fn lean() -> Self {
        Self(Arc::new(watch::Sender::new(Log { lean: true, ..Log::default() })))
    }

    /// Writes an event of this process.
    pub fn note(&self, event: Event) {
        self.0.send_modify(|log| log.note(event));
    }

    /// Writes what a process said.
    pub fn hear(&self, pid: u32, line: Line) {
        self.0.send_modify(|log| match line {
            Line::Up { server } => drop(log.servers.insert(pid, server)),
            Line::Played(event) => log.note(event),
            Line::Told(told) => drop(log.told.insert(pid, told)),
            Line::Sent(tasks) => drop(log.sent.insert(pid, tasks)),
        });
    }

    /// Writes that a process has ended: none of its handlers runs any more.
    pub fn gone(&self, pid: u32) {
        self.0.send_modify(|log| {
            log.on_stage.retain(|(of, _), _| *of != pid);
            log.gone.insert(pid);
        });
    }

    /// Lets everybody who waits look again, for conditions that are not about the log alone.
    pub fn nudge(&self) {
        self.0.send_modify(|_| {});
    }

    /// Looks at the log as it is now.
    pub fn look<T>(&self, look: impl FnOnce(&Log) -> T) -> T {
        look(&self.0.borrow())
    }

    /// Waits until the log is like that.
    pub async fn until(&self, holds: impl FnMut(&Log) -> bool) {
        self.0.subscribe().wait_for(holds).await.expect("the journal lives");
    }

    /// Asks now and after everything that is told, until the answer is yes. For questions to a store on which other
    /// processes work: each of them tells of every change that it made.
    pub async fn until_asked(&self, mut holds: impl AsyncFnMut() -> bool) {
        let mut news = self.0.subscribe();
        loop {
            news.mark_unchanged();
            if holds().await {
                return;
            }
            news.changed().await.expect("the journal lives");
        }
    }
}
