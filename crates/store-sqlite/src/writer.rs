//! The one writer: a thread that takes calls as they come and commits them in groups.
//!
//! ```text
//!  callers ──► inbox ──► gather what waits ──► BEGIN IMMEDIATE · each call in turn · counters · COMMIT ──► answers
//!                                                                                   └► checkpoint, when due
//! ```
//!
//! A lone call is committed at once, and calls that arrive during a commit share the next one. After a group of several
//! the writer lets their callers come back for a moment: otherwise the first of them would get a transaction of its own
//! and all others wait for it.
//!
//! Invariant: a call is answered after its transaction is committed or undone, never before; a group that fails is
//! undone and tried again in halves, so that only the guilty call answers with the failure.

mod submission;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use poolwright_broker::Error;
use poolwright_core::{Chance, Clock, NewTask};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::anchor::Anchor;
use crate::bells::Bells;
use crate::checkpoint::Checkpoints;
use crate::error::{Fault, meaning};
use crate::thread::Thread;
use crate::work::{Known, Woken, Work};
use submission::{Outcomes, Submission};

/// Calls that may wait for the writer. When it is full, callers wait in their `send`: that is the back pressure.
const INBOX_CALLS_MAX: usize = 1_024;

/// A transaction takes calls until it has about so many tasks. A longer one would keep other processes waiting.
const GROUP_TASKS_MAX: usize = 1_000;

/// A group after which the writer expects its callers back: they were answered together and call again together.
const CROWD_CALLS_MIN: usize = 4;

/// How often the writer lets others run while the callers of the last group come back, without one coming. On an idle
/// processor that is less than a tenth of a millisecond; on a busy one it is the callers who run meanwhile.
const YIELDS_MAX: u32 = 256;

/// A call on its way through the writer.
enum Call {
    /// It enqueues, and nothing else.
    Submission(Submission),
    Other(Box<dyn Job>),
}

impl Call {
    fn weight(&self) -> usize {
        match self {
            Self::Submission(submission) => submission.weight,
            Self::Other(job) => job.weight(),
        }
    }

    fn is_wanted(&self) -> bool {
        match self {
            Self::Submission(submission) => submission.is_wanted(),
            Self::Other(job) => job.is_wanted(),
        }
    }

    fn answer(&mut self, failure: Option<&Error>) {
        match self {
            Self::Submission(submission) => submission.answer(failure),
            Self::Other(job) => job.answer(failure),
        }
    }

    const fn is_submission(&self) -> bool {
        matches!(self, Self::Submission(_))
    }

    const fn as_submission(&mut self) -> Option<&mut Submission> {
        match self {
            Self::Submission(submission) => Some(submission),
            Self::Other(_) => None,
        }
    }
}

/// Any other call.
trait Job: Send {
    /// About how many tasks it touches.
    fn weight(&self) -> usize;
    /// Its caller has not gone away.
    fn is_wanted(&self) -> bool;
    /// Does its work in the open transaction. May be done again after the transaction was undone.
    fn run(&mut self, work: &mut Work<'_>) -> rusqlite::Result<()>;
    /// Answers its caller: with what it did, or with this failure.
    fn answer(&mut self, failure: Option<&Error>);
}

/// A job made of a closure.
struct Step<T, F> {
    weight: usize,
    step: F,
    outcome: Option<Result<T, Error>>,
    reply: Option<oneshot::Sender<Result<T, Error>>>,
}

impl<T, F> Job for Step<T, F>
where
    T: Send,
    F: FnMut(&mut Work<'_>) -> Result<T, Fault> + Send,
{
    fn weight(&self) -> usize {
        self.weight
    }

    fn is_wanted(&self) -> bool {
        self.reply.as_ref().is_some_and(|reply| !reply.is_closed())
    }

    fn run(&mut self, work: &mut Work<'_>) -> rusqlite::Result<()> {
        match (self.step)(work) {
            Ok(value) => self.outcome = Some(Ok(value)),
            Err(Fault::Said(error)) => self.outcome = Some(Err(error)),
            Err(Fault::Sql(error)) => return Err(error),
        }
        Ok(())
    }

    fn answer(&mut self, failure: Option<&Error>) {
        let Some(reply) = self.reply.take() else { return };
        let outcome = match failure {
            Some(error) => Err(error.clone()),
            None => self.outcome.take().unwrap_or_else(|| Err(closed())),
        };
        // A caller that went away meanwhile does not want it.
        let _ = reply.send(outcome);
    }
}

enum Message {
    Call(Call),
    Close,
}

/// The way to the writer.
#[derive(Debug)]
pub(crate) struct Writer {
    inbox: mpsc::Sender<Message>,
    thread: Thread,
}

impl Writer {
    /// Starts the thread at this desk.
    pub(crate) fn start(desk: Desk) -> std::io::Result<Self> {
        let (inbox, calls) = mpsc::channel(INBOX_CALLS_MAX);
        let thread = Thread::spawn("sqlite-write", move || desk.serve(calls))?;
        Ok(Self { inbox, thread })
    }

    /// Runs the step in a transaction, together with whatever else waits, and answers once that is committed.
    ///
    /// The step may run more than once; only the last run counts. `weight` is about how many tasks it touches.
    pub(crate) async fn write<T, F>(&self, weight: usize, step: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnMut(&mut Work<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = Step { weight, step, outcome: None, reply: Some(reply) };
        self.send(Call::Other(Box::new(job))).await?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// Enqueues tasks in a transaction, together with whatever else waits. Refused while the file is not where it was.
    pub(crate) async fn submit(
        &self,
        tasks: Vec<NewTask>,
        weight: usize,
        anchor: Arc<Anchor>,
    ) -> Result<Outcomes, Error> {
        let (reply, answer) = oneshot::channel();
        self.send(Call::Submission(Submission { tasks, weight, anchor, outcome: None, reply: Some(reply) }))
            .await?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    async fn send(&self, call: Call) -> Result<(), Error> {
        self.inbox.send(Message::Call(call)).await.map_err(|_| closed())
    }

    /// Ends the thread after all calls that were sent before. Safe to call twice.
    pub(crate) async fn close(&self) {
        // An error says that it has ended already.
        let _ = self.inbox.send(Message::Close).await;
        self.thread.unpark();
        self.thread.join().await;
    }
}

/// What a closed store says.
pub(crate) fn closed() -> Error {
    Error::Refused { why: "the store is closed".to_owned() }
}

/// What the thread works with.
#[derive(Debug)]
pub(crate) struct Desk {
    /// The writing connection.
    pub(crate) conn: Connection,
    /// The file, for messages.
    pub(crate) file: String,
    /// The store's clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// Where tokens come from.
    pub(crate) chance: Chance,
    /// Rung after a commit.
    pub(crate) bells: Arc<Bells>,
    /// Watches the log.
    pub(crate) checkpoints: Checkpoints,
    /// Queues by name.
    pub(crate) known: Known,
}

/// Why a group came to nothing.
struct Failure {
    error: Error,
    /// Trying its calls apart may let the innocent pass.
    divisible: bool,
}

impl Desk {
    fn serve(mut self, mut calls: mpsc::Receiver<Message>) {
        let mut expected = 0;
        while let Some(message) = calls.blocking_recv() {
            let mut group = Vec::new();
            let open = gather(message, &mut calls, &mut group, expected);
            expected = if group.len() >= CROWD_CALLS_MIN { group.len() } else { 0 };
            self.commit(&mut group);
            self.checkpoints.run_if_due(&self.conn, &self.file);
            if !open {
                // What was sent before the end is still served; what comes later is refused by the channel.
                calls.close();
            }
        }
        self.end();
    }

    /// Commits the group, or the part of it that can be, and answers every call.
    fn commit(&mut self, group: &mut [Call]) {
        if group.is_empty() {
            return;
        }
        match self.attempt(group) {
            Ok(woken) => {
                self.bells.ring(&woken);
                group.iter_mut().for_each(|call| call.answer(None));
            }
            Err(failure) if failure.divisible && group.len() > 1 => {
                let (first, second) = group.split_at_mut(group.len() / 2);
                self.commit(first);
                self.commit(second);
            }
            Err(failure) => {
                // Its callers are told, and know whether it matters.
                tracing::debug!(error = %failure.error, file = %self.file, calls = group.len(), "write failed");
                group.iter_mut().for_each(|call| call.answer(Some(&failure.error)));
            }
        }
    }

    /// One transaction. Undone when anything in it fails.
    fn attempt(&mut self, group: &mut [Call]) -> Result<Vec<Woken>, Failure> {
        if let Err(error) = self.run("BEGIN IMMEDIATE") {
            return Err(Failure { error: meaning(&error, &self.file), divisible: false });
        }
        // A bug in a step must not end the thread on which everybody depends.
        let done = catch_unwind(AssertUnwindSafe(|| self.transact(group)));
        let error = match done {
            Ok(Ok(woken)) => return Ok(woken),
            Ok(Err(error)) => meaning(&error, &self.file),
            Err(_) => {
                tracing::error!(file = %self.file, "a step panicked");
                Error::Refused { why: format!("a bug in the store {}: a step panicked", self.file) }
            }
        };
        // Some failures have ended the transaction already.
        if !self.conn.is_autocommit()
            && let Err(error) = self.run("ROLLBACK")
        {
            tracing::error!(%error, file = %self.file, "a failed transaction could not be undone");
        }
        self.known.forget();
        Err(Failure { error, divisible: true })
    }

    fn transact(&mut self, group: &mut [Call]) -> rusqlite::Result<Vec<Woken>> {
        let mut work = Work::begin(&self.conn, &self.chance, &mut self.known, self.clock.now())?;
        for calls in group.chunk_by_mut(|a, b| a.is_submission() && b.is_submission()) {
            match calls {
                [Call::Other(job)] => job.run(&mut work)?,
                submissions => submission::run(submissions, &mut work)?,
            }
        }
        let woken = work.finish()?;
        self.run("COMMIT")?;
        Ok(woken)
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(drop)
    }

    fn end(self) {
        // Its connection goes first, so that this one is the last of the process that writes.
        drop(self.checkpoints);
        // Best effort: what cannot be moved now is in the log and found at the next opening.
        let _ = self.conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        if let Err((_, error)) = self.conn.close() {
            tracing::warn!(%error, file = %self.file, "the file could not be closed properly");
        }
    }
}

/// Takes what waits, and what comes at once as long as fewer than `expected` calls are here. False when the end was among
/// it.
fn gather(
    first: Message,
    calls: &mut mpsc::Receiver<Message>,
    group: &mut Vec<Call>,
    expected: usize,
) -> bool {
    let mut weight = 0;
    let mut yields = 0;
    let mut message = Some(first);
    loop {
        match message {
            Some(Message::Close) => return false,
            Some(Message::Call(call)) => {
                weight += call.weight().max(1);
                yields = 0;
                if call.is_wanted() {
                    group.push(call);
                }
            }
            None if group.len() >= expected || yields >= YIELDS_MAX => break,
            None => {
                yields += 1;
                std::thread::yield_now();
            }
        }
        // Full: what waits stays in the inbox.
        if weight >= GROUP_TASKS_MAX {
            break;
        }
        message = calls.try_recv().ok();
    }
    true
}

#[cfg(test)]
mod tests;
