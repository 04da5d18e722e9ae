//! The handler of most stories: it does what the payload says, and tells of it.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex};

use poolwright::prelude::*;
use tokio::sync::watch;

use crate::journal::{Event, Journal, What};

/// The payload of a task: what its handler does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Succeeds.
    Ok,
    /// Fails, and may work next time.
    Fail,
    /// Fails for good.
    Permanent,
    /// Panics.
    Panic,
    /// Waits until its gate opens or it is asked to end, which it obeys.
    Wait,
    /// Waits until its gate opens, and hears nothing else.
    Deaf,
    /// Blocks its thread until its gate opens.
    Block,
    /// Spawns work that waits for the gate, and succeeds without waiting for it.
    Forget,
    /// Lasts until so many other handlers have started on this stage, or its gate opens.
    Long(u64),
}

impl TaskType for Part {
    const NAME: &'static str = "story:part";
}

impl Part {
    /// As payload.
    #[must_use]
    pub fn bytes(self) -> Vec<u8> {
        serde_json::to_vec(&self).expect("a part is always JSON")
    }
}

/// Where handlers of one process play.
pub struct Stage {
    tell: Box<dyn Fn(Event) + Send + Sync>,
    gates: Mutex<Gates>,
    opened: Condvar,
    moved: watch::Sender<()>,
    starts: watch::Sender<u64>,
}

#[derive(Default)]
struct Gates {
    all: bool,
    ids: HashSet<String>,
}

/// The handler.
///
/// # Errors
/// What the part says.
pub async fn act(part: Part, cx: Context, State(stage): State<Arc<Stage>>) -> Result<(), BoxError> {
    stage.play(part, &cx).await
}

impl Stage {
    /// A stage that tells of everything.
    pub fn new(tell: impl Fn(Event) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            tell: Box::new(tell),
            gates: Mutex::default(),
            opened: Condvar::new(),
            moved: watch::Sender::new(()),
            starts: watch::Sender::new(0),
        })
    }

    /// Plays a part.
    ///
    /// # Errors
    /// What the part says.
    pub async fn play(self: &Arc<Self>, part: Part, cx: &Context) -> Result<(), BoxError> {
        let id = cx.task_id().as_str();
        let _on_stage = self.enter(cx);
        match part {
            Part::Ok => Ok(()),
            Part::Fail => Err("it did not work".into()),
            Part::Permanent => Err(TaskError::permanent("it never will").into()),
            Part::Panic => panic!("on purpose"),
            Part::Wait => self.obediently(cx, self.opens(id)).await,
            Part::Deaf => {
                self.opens(id).await;
                Ok(())
            }
            Part::Block => {
                self.block(id);
                Ok(())
            }
            Part::Forget => {
                let (stage, cx) = (Arc::clone(self), cx.clone());
                tokio::spawn(async move {
                    stage.opens(cx.task_id().as_str()).await;
                    (stage.tell)(Event::of(What::Forgotten, &cx));
                });
                Ok(())
            }
            Part::Long(starts) => {
                let mut seen = self.starts.subscribe();
                let enough = *seen.borrow() + starts;
                let others =
                    async { seen.wait_for(|now| *now >= enough).await.map(drop).unwrap_or_default() };
                let work = async {
                    tokio::select! {
                        () = others => {}
                        () = self.opens(id) => {}
                    }
                };
                self.obediently(cx, work).await
            }
        }
    }

    async fn obediently(&self, cx: &Context, work: impl Future<Output = ()>) -> Result<(), BoxError> {
        tokio::select! {
            () = work => Ok(()),
            () = cx.cancelled() => {
                (self.tell)(Event::of(What::Asked(cx.given_reason()), cx));
                Ok(cx.checkpoint()?)
            }
        }
    }

    fn enter(self: &Arc<Self>, cx: &Context) -> OnStage {
        (self.tell)(Event::of(What::Start, cx));
        self.starts.send_modify(|starts| *starts += 1);
        OnStage { stage: Arc::clone(self), cx: cx.clone() }
    }

    async fn opens(&self, id: &str) {
        let mut moved = self.moved.subscribe();
        while !self.is_open(id) {
            moved.changed().await.expect("the stage lives");
        }
    }

    fn block(&self, id: &str) {
        let gates = self.gates.lock().unwrap();
        drop(self.opened.wait_while(gates, |gates| !gates.lets(id)).unwrap());
    }

    fn is_open(&self, id: &str) -> bool {
        self.gates.lock().unwrap().lets(id)
    }

    /// Opens the gate of one task.
    pub fn open(&self, id: &str) {
        self.change(|gates| {
            gates.ids.insert(id.to_owned());
        });
    }

    /// Opens all gates, for tasks that come later as well.
    pub fn open_all(&self) {
        self.change(|gates| gates.all = true);
    }

    fn change(&self, change: impl FnOnce(&mut Gates)) {
        change(&mut self.gates.lock().unwrap());
        self.opened.notify_all();
        self.moved.send_replace(());
    }
}

impl Gates {
    fn lets(&self, id: &str) -> bool {
        self.all || self.ids.contains(id)
    }
}

/// A running handler; dropped with it.
struct OnStage {
    stage: Arc<Stage>,
    cx: Context,
}

impl Drop for OnStage {
    fn drop(&mut self) {
        (self.stage.tell)(Event::of(What::End, &self.cx));
    }
}

/// A stage of this process with its journal. When it goes, everything that still waits on the stage comes to its end,
/// so that a failed story leaves no blocked thread behind.
pub struct Play {
    /// Where it is played.
    pub stage: Arc<Stage>,
    /// What was told.
    pub journal: Journal,
}

impl Play {
    /// An empty stage.
    #[must_use]
    pub fn new() -> Self {
        let journal = Journal::default();
        let told = journal.clone();
        Self { stage: Stage::new(move |event| told.note(event)), journal }
    }
}

impl Default for Play {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Play {
    fn drop(&mut self) {
        self.stage.open_all();
    }
}
