//! Enqueues that come while others are on their way travel together.
//!
//! ```text
//!   first  ── call ──────────► answer          nothing waits while a lane is free
//!   second ── call ──────────► answer
//!   third  ── waits ┐                          whoever ends hands its lane to the first that waits,
//!   fourth ── waits ┴─ one call of the third ► which takes all the others along
//! ```
//!
//! Invariant: a caller that goes away takes nobody's tasks along. Those that had gone with its call send their own again, as sent
//! before: what the lost call has stored is known by its message.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use poolwright_broker::{Enqueued, Error};
use poolwright_core::NewTask;
use tokio::sync::oneshot;

use crate::RedisStore;

/// Calls under way.
const LANES: usize = 2;

/// The most tasks that travel together.
const TOGETHER_MAX: usize = 200;

/// The most bytes of payloads that travel together.
const BYTES_MAX: usize = 256 << 10;

/// What became of tasks, each in its place; or of the call.
type Outcomes = Result<Vec<Result<Enqueued, Error>>, Error>;

/// Who is under way, and who waits.
#[derive(Default)]
pub(crate) struct Gather(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    under_way: usize,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    tasks: Vec<NewTask>,
    tell: oneshot::Sender<Word>,
}

/// What one that waits is told.
enum Word {
    /// Its tasks have travelled with others.
    Done(Outcomes),
    /// Its lane is this, and these go along.
    Lead(Lane, Vec<Waiting>),
    /// A call with its tasks was refused, which another's tasks may be the reason of: now each for itself.
    Alone,
}

impl Gather {
    /// A lane, or a place in the line of those who wait for one.
    fn enter(&self, tasks: &[NewTask]) -> Result<Lane, oneshot::Receiver<Word>> {
        let mut state = lock(&self.0);
        if state.under_way < LANES {
            state.under_way += 1;
            return Ok(Lane(Some(Arc::clone(&self.0))));
        }
        let (tell, told) = oneshot::channel();
        state.waiting.push_back(Waiting { tasks: tasks.to_vec(), tell });
        Err(told)
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// The first that waits, and those that go along with it.
    fn next(&mut self) -> Option<(Waiting, Vec<Waiting>)> {
        let first = self.waiting.pop_front()?;
        let (mut count, mut bytes) = (first.tasks.len(), payloads(&first.tasks));
        let mut along = Vec::new();
        while let Some(next) = self.waiting.front() {
            count += next.tasks.len();
            bytes += payloads(&next.tasks);
            if count > TOGETHER_MAX || bytes > BYTES_MAX {
                break;
            }
            along.extend(self.waiting.pop_front());
        }
        Some((first, along))
    }
}

/// A lane, given on when it is dropped, by whomever.
struct Lane(Option<Arc<Mutex<State>>>);

impl Drop for Lane {
    fn drop(&mut self) {
        let Some(state) = self.0.take() else { return };
        loop {
            let mut inside = lock(&state);
            let Some((first, along)) = inside.next() else {
                inside.under_way -= 1;
                return;
            };
            drop(inside);
            match first.tell.send(Word::Lead(Self(Some(Arc::clone(&state))), along)) {
                Err(Word::Lead(mut lane, along)) => {
                    // It has gone away; the others go on waiting.
                    lane.0 = None;
                    let mut inside = lock(&state);
                    along.into_iter().rev().for_each(|one| inside.waiting.push_front(one));
                }
                _ => return,
            }
        }
    }
}

fn payloads(tasks: &[NewTask]) -> usize {
    tasks.iter().map(|task| task.payload.len()).sum()
}

impl RedisStore {
    /// Enqueues tasks of one caller, which fit into one call, perhaps together with those of others.
    pub(crate) async fn enqueue_together(&self, tasks: Vec<NewTask>) -> Outcomes {
        if payloads(&tasks) > BYTES_MAX || tasks.len() > TOGETHER_MAX {
            return self.enqueue_some(tasks, false).await;
        }
        let (_lane, along) = match self.gather.enter(&tasks) {
            Ok(lane) => (lane, Vec::new()),
            Err(told) => match told.await {
                Ok(Word::Done(outcomes)) => return outcomes,
                Ok(Word::Lead(lane, along)) => (lane, along),
                Ok(Word::Alone) => return self.enqueue_some(tasks, false).await,
                // Whoever took them along has gone away, perhaps in the middle of its call.
                Err(_) => return self.enqueue_some(tasks, true).await,
            },
        };
        self.lead(tasks, along).await
    }

    async fn lead(&self, tasks: Vec<NewTask>, mut along: Vec<Waiting>) -> Outcomes {
        if along.is_empty() {
            return self.enqueue_some(tasks, false).await;
        }
        let mine = tasks.len();
        let mut all = tasks.clone();
        for one in &mut along {
            all.append(&mut one.tasks.clone());
        }
        match self.enqueue_some(all, false).await {
            Ok(mut outcomes) => {
                let mut others = outcomes.split_off(mine);
                for one in along {
                    let rest = others.split_off(one.tasks.len());
                    // Who has gone away does not want to know.
                    drop(one.tell.send(Word::Done(Ok(others))));
                    others = rest;
                }
                Ok(outcomes)
            }
            Err(error) if error.is_retryable() => {
                for one in along {
                    drop(one.tell.send(Word::Done(Err(error.clone()))));
                }
                Err(error)
            }
            Err(_) => {
                along.into_iter().for_each(|one| drop(one.tell.send(Word::Alone)));
                self.enqueue_some(tasks, false).await
            }
        }
    }
}
