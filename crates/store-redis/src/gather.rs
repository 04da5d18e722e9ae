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
use std::sync::{Mutex, MutexGuard, PoisonError};

use poolwright_broker::{Enqueued, Error};
use poolwright_core::NewTask;
use tokio::sync::oneshot;

use crate::RedisStore;

/// Calls under way.
const LANES: usize = 2;

/// The most tasks that travel together.
const TOGETHER_MAX: usize = 200;

/// The most bytes of payloads that travel with others.
const BYTES_MAX: usize = 64 << 10;

/// What became of tasks, each in its place; or of the call.
type Outcomes = Result<Vec<Result<Enqueued, Error>>, Error>;

/// Who is under way, and who waits.
#[derive(Default)]
pub(crate) struct Gather(Mutex<State>);

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
    /// It is its turn, with these.
    Lead(Vec<Waiting>),
}

impl Gather {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lane; or, when none is free, the tasks wait.
    fn enter(&self, tasks: &[NewTask]) -> Option<oneshot::Receiver<Word>> {
        let mut state = self.lock();
        if state.under_way < LANES {
            state.under_way += 1;
            return None;
        }
        let (tell, told) = oneshot::channel();
        state.waiting.push_back(Waiting { tasks: tasks.to_vec(), tell });
        Some(told)
    }
}

/// A lane, given on when it is dropped.
struct Lane<'g>(&'g Gather);

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        while let Some(first) = state.waiting.pop_front() {
            let mut count = first.tasks.len();
            let mut along = Vec::new();
            while let Some(next) = state.waiting.front() {
                count += next.tasks.len();
                if count > TOGETHER_MAX {
                    break;
                }
                along.extend(state.waiting.pop_front().filter(|next| !next.tell.is_closed()));
            }
            match first.tell.send(Word::Lead(along)) {
                Ok(()) => return,
                // It has gone away; the others go on waiting.
                Err(Word::Lead(along)) => {
                    along.into_iter().rev().for_each(|one| state.waiting.push_front(one))
                }
                Err(Word::Done(_)) => {}
            }
        }
        state.under_way -= 1;
    }
}

impl RedisStore {
    /// Enqueues tasks of one caller, which fit into one call, perhaps together with those of others.
    pub(crate) async fn enqueue_together(&self, tasks: Vec<NewTask>) -> Outcomes {
        if tasks.iter().map(|task| task.payload.len()).sum::<usize>() > BYTES_MAX
            || tasks.len() > TOGETHER_MAX
        {
            return self.enqueue_some(tasks, false).await;
        }
        let along = match self.gather.enter(&tasks) {
            None => Vec::new(),
            Some(told) => match told.await {
                Ok(Word::Done(outcomes)) => return outcomes,
                Ok(Word::Lead(along)) => along,
                Err(_) => return self.enqueue_some(tasks, true).await,
            },
        };
        let _lane = Lane(&self.gather);
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
            // One of them was refused, which must not hit the others: now each for itself.
            Err(_) => {
                drop(along);
                self.enqueue_some(tasks, true).await
            }
        }
    }
}
