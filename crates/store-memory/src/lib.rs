//! The store in memory: the reference of what every store does, and the store of tests.
//!
//! Nothing outlives the process. Everything sits under one lock, which is held for one call and never while waiting, so
//! each call is one atomic step and its future is ready at the first poll. Claim, settle and enqueue cost a few look-ups
//! in ordered maps for each task, however many there are.
//!
//! | File | Trait |
//! | --- | --- |
//! | `submit` | [`Submit`](poolwright_broker::Submit) |
//! | `dispatch` | [`Dispatch`](poolwright_broker::Dispatch) |
//! | `upkeep` | [`Upkeep`](poolwright_broker::Upkeep) |
//! | `inspect` | [`Inspect`](poolwright_broker::Inspect) |
//! | `signal` | [`Signal`](poolwright_broker::Signal) |
//! | `state` | what they ask: queues as plain structures, no locks and no futures |
//! | `ledger` | [`Ledger`](poolwright_ledger::Ledger), with a lock of its own |

mod dispatch;
mod inspect;
mod ledger;
mod signal;
mod state;
mod submit;
mod upkeep;

use std::sync::{Arc, Mutex};

use poolwright_broker::{Broker, Error, Reply};
use poolwright_core::{Chance, Clock, Timestamp};

pub use ledger::MemoryLedger;
use signal::Bells;
use state::Content;

/// A store in memory.
///
/// ```
/// use std::sync::Arc;
/// use poolwright_core::{Chance, clock::SystemClock};
/// use poolwright_store_memory::MemoryStore;
///
/// let broker: Arc<dyn poolwright_broker::Broker> =
///     MemoryStore::new(Arc::new(SystemClock), Chance::from_entropy());
/// assert_eq!(broker.describe(), "memory");
/// ```
#[derive(Debug)]
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    chance: Chance,
    /// None once the store was closed.
    content: Mutex<Option<Content>>,
    bells: Bells,
}

impl MemoryStore {
    /// An empty store with this clock. `chance` makes the tokens and nothing else.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, chance: Chance) -> Arc<Self> {
        let content = Mutex::new(Some(Content::default()));
        Arc::new(Self { clock, chance, content, bells: Bells::default() })
    }

    /// One atomic step: under the lock, with one reading of the clock. Afterwards the watchers of queues that got
    /// something are woken.
    fn step<'a, T: Send + 'a>(
        &'a self,
        act: impl FnOnce(&mut Content, Timestamp) -> T + Send + 'a,
    ) -> Reply<'a, T> {
        Box::pin(async move {
            let (answer, woken) = {
                let mut content = self.content.lock().expect("no step panics half way");
                let content = content.as_mut().ok_or_else(closed)?;
                (act(content, self.clock.now()), content.take_woken())
            };
            self.bells.ring(&woken);
            Ok(answer)
        })
    }

    /// A step that may refuse.
    fn try_step<'a, T: Send + 'a>(
        &'a self,
        act: impl FnOnce(&mut Content, Timestamp) -> Result<T, Error> + Send + 'a,
    ) -> Reply<'a, T> {
        let step = self.step(act);
        Box::pin(async move { step.await? })
    }
}

fn closed() -> Error {
    Error::Refused { why: "the store in memory was closed".to_owned() }
}

impl Broker for MemoryStore {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn close(&self) -> Reply<'_, ()> {
        Box::pin(async {
            let content = self.content.lock().expect("no step panics half way").take();
            self.bells.close();
            drop(content);
            Ok(())
        })
    }
}
