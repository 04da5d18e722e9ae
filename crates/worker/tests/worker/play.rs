//! The handler of all tests: it does what the payload says, and remembers what was done.
//!
//! | payload | does |
//! | --- | --- |
//! | `ok` | succeeds |
//! | `error` `permanent` `revoked` `snooze` | fails that way |
//! | `operator` | says that a person must act first |
//! | `tells` | reports its progress, stores a result and succeeds |
//! | `panic` | panics |
//! | `wait` | waits until the play is over or it is asked to end, which it obeys |
//! | `gate` | succeeds when it is let go, or the play is over |
//! | `deaf` | waits until the play is over and hears nothing else |
//! | `block` | blocks its thread until the play is over |
//! | `forget` | spawns work that outlives it, and succeeds |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex};

use poolwright_core::{BoxError, Class, TaskError};
use poolwright_handler::{Context, Raw};
use tokio::sync::{Notify, watch};

/// What happened, and the curtain.
pub(crate) struct Play {
    log: Mutex<Log>,
    changed: Notify,
    curtain: watch::Sender<bool>,
    let_go: watch::Sender<BTreeSet<String>>,
    fell: (Mutex<bool>, Condvar),
}

#[derive(Default)]
struct Log {
    starts: Vec<Start>,
    reasons: Vec<(String, Option<Class>)>,
    on_stage: BTreeMap<String, usize>,
    peaks: BTreeMap<String, usize>,
    forgotten: usize,
}

/// One start of a handler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start {
    pub(crate) id: String,
    pub(crate) pool: String,
    pub(crate) queue: String,
}

impl Play {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            log: Mutex::default(),
            changed: Notify::new(),
            curtain: watch::Sender::new(false),
            let_go: watch::Sender::new(BTreeSet::new()),
            fell: Default::default(),
        })
    }

    /// The handler.
    pub(crate) async fn act(self: Arc<Self>, raw: Raw, cx: Context) -> Result<(), BoxError> {
        let _on_stage = self.enter(&cx);
        match raw.bytes.as_ref() {
            b"ok" => Ok(()),
            b"error" => Err("it did not work".into()),
            b"permanent" => Err(TaskError::permanent("it never will").into()),
            b"revoked" => Err(TaskError::revoked("nobody wants it").into()),
            b"snooze" => Err(TaskError::snooze(std::time::Duration::ZERO).into()),
            b"operator" => Err(TaskError::needs_operator("the key has expired").into()),
            b"tells" => {
                cx.progress(0.5, "half way").await;
                cx.store_result(&"so far").await
            }
            b"panic" => panic!("on purpose"),
            b"wait" => self.wait(&cx).await,
            b"gate" => {
                let id = cx.task_id().to_string();
                let mut let_go = self.let_go.subscribe();
                tokio::select! {
                    () = self.curtain_falls() => {}
                    went = let_go.wait_for(|ids| ids.contains(&id)) => drop(went.unwrap()),
                }
                Ok(())
            }
            b"deaf" => {
                self.curtain_falls().await;
                Ok(())
            }
            b"block" => {
                self.block();
                Ok(())
            }
            b"forget" => {
                let play = Arc::clone(&self);
                tokio::spawn(async move {
                    play.curtain_falls().await;
                    play.write(|log| log.forgotten += 1);
                });
                Ok(())
            }
            other => panic!("no such part: {other:?}"),
        }
    }

    async fn wait(&self, cx: &Context) -> Result<(), BoxError> {
        tokio::select! {
            () = self.curtain_falls() => Ok(()),
            () = cx.cancelled() => {
                self.write(|log| log.reasons.push((cx.task_id().to_string(), cx.stop_reason())));
                Ok(cx.checkpoint()?)
            }
        }
    }

    fn block(&self) {
        let (fallen, bell) = &self.fell;
        let fallen = fallen.lock().unwrap();
        drop(bell.wait_while(fallen, |fallen| !*fallen).unwrap());
    }

    async fn curtain_falls(&self) {
        self.curtain.subscribe().wait_for(|fallen| *fallen).await.unwrap();
    }

    /// Lets everything that waits or blocks come to its end.
    pub(crate) fn drop_curtain(&self) {
        self.curtain.send_replace(true);
        *self.fell.0.lock().unwrap() = true;
        self.fell.1.notify_all();
    }

    /// Lets these come to their end.
    pub(crate) fn let_go(&self, ids: &[&str]) {
        self.let_go.send_modify(|gone| gone.extend(ids.iter().map(|id| (*id).to_owned())));
    }

    fn enter(self: &Arc<Self>, cx: &Context) -> OnStage {
        let pool = cx.pool().to_string();
        let start = Start { id: cx.task_id().to_string(), pool: pool.clone(), queue: cx.queue().to_string() };
        self.write(|log| {
            log.starts.push(start);
            let now = log.on_stage.entry(pool.clone()).or_default();
            *now += 1;
            let peak = *now;
            let highest = log.peaks.entry(pool.clone()).or_default();
            *highest = peak.max(*highest);
        });
        OnStage { play: Arc::clone(self), pool }
    }

    fn write(&self, change: impl FnOnce(&mut Log)) {
        change(&mut self.log.lock().unwrap());
        self.changed.notify_waiters();
    }

    /// All starts so far, in order.
    pub(crate) fn starts(&self) -> Vec<Start> {
        self.log.lock().unwrap().starts.clone()
    }

    /// How often this task was started.
    pub(crate) fn starts_of(&self, id: &str) -> usize {
        self.log.lock().unwrap().starts.iter().filter(|start| start.id == id).count()
    }

    /// How many handlers of a pool run.
    pub(crate) fn on_stage(&self, pool: &str) -> usize {
        self.log.lock().unwrap().on_stage.get(pool).copied().unwrap_or(0)
    }

    /// The most handlers of a pool that ever ran at once.
    pub(crate) fn peak(&self, pool: &str) -> usize {
        self.log.lock().unwrap().peaks.get(pool).copied().unwrap_or(0)
    }

    /// Why a waiting handler was asked to end; none until it was.
    pub(crate) fn reason(&self, id: &str) -> Option<Option<Class>> {
        let log = self.log.lock().unwrap();
        log.reasons.iter().find(|(of, _)| of == id).map(|(_, reason)| *reason)
    }

    /// Work that outlived its handler and has ended.
    pub(crate) fn forgotten(&self) -> usize {
        self.log.lock().unwrap().forgotten
    }

    /// Waits until something holds.
    pub(crate) async fn until(&self, holds: impl Fn(&Self) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if holds(self) {
                return;
            }
            changed.await;
        }
    }
}

/// A running handler; dropped with it.
struct OnStage {
    play: Arc<Play>,
    pool: String,
}

impl Drop for OnStage {
    fn drop(&mut self) {
        self.play.write(|log| *log.on_stage.get_mut(&self.pool).unwrap() -= 1);
    }
}
