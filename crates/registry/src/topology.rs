//! The topology: pools, queues and task types, as everybody else reads them.
//!
//! Invariant: a [`Topology`] comes out of a loader or a builder only, so every reference in it holds: each queue has
//! one home pool, each borrowed queue an owner, each type a queue and policies.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use poolwright_core::{PoolName, QueueName, RetryPolicy, TypeName};
use serde::Serialize;

use crate::builder::Builder;
use crate::error::Error;
use crate::problem::Warning;
use crate::report::Row;
use crate::resolve::{Loader, Resolved};
use crate::rules::{TaskRules, Types};
use crate::schedule::Schedule;
use crate::suggest::did_you_mean;
use crate::words::{Borrow, Producers};

/// Pools, queues, task types and their rules. Cloning shares them.
#[derive(Debug, Clone)]
pub struct Topology(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    name: String,
    parts: Parts,
    rows: Vec<Row>,
}

/// What the checks build.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) pools: Vec<Arc<Pool>>,
    pub(crate) queues: Vec<Arc<Queue>>,
    pub(crate) types: Types,
    pub(crate) policies: BTreeMap<Arc<str>, RetryPolicy>,
    pub(crate) runtime: Runtime,
    pub(crate) housekeeping: Housekeeping,
    pub(crate) payload_bytes_max: usize,
}

/// What the file calls a queue, which may differ from its stored [`QueueName`].
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct LogicalName(Arc<str>);

impl LogicalName {
    pub(crate) fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LogicalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for LogicalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl AsRef<str> for LogicalName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for LogicalName {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for LogicalName {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Queue {
    /// Its key in the file.
    pub name: LogicalName,
    /// Its name on the broker; the same as `name` unless the file says otherwise.
    pub stored: QueueName,
    /// Its name for people; `name` when the file has none.
    pub label: Arc<str>,
    /// What goes through it, for people.
    pub description: Option<Arc<str>>,
    /// The pool that owns it.
    pub home: PoolName,
    /// Its weight there.
    pub weight: u32,
    /// The pools that borrow it, in the order of the file.
    pub borrowers: Vec<PoolName>,
    /// Who enqueues into it. Default: anybody.
    pub producers: Producers,
    /// How many archived tasks it keeps. Default 10,000.
    pub archive_max: usize,
    /// How long it keeps an archived task. Default 90 days.
    pub archive_for: Duration,
}

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Pool {
    /// Its key in the file.
    pub name: PoolName,
    /// Its name for people; `name` when the file has none.
    pub label: Arc<str>,
    /// How many tasks it runs at the same time, in each process.
    pub workers: Resolved<usize>,
    /// Threads of its runtime; none: one for each worker, at most 32.
    pub threads: Option<usize>,
    /// The queues it owns.
    pub owns: Vec<Weighted>,
    /// The queues it borrows.
    pub borrows: Vec<Weighted>,
    /// When it borrows. Default: always.
    pub borrow: Borrow,
}

/// A queue as a pool serves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Weighted {
    /// The queue.
    pub queue: Arc<Queue>,
    /// How often it is drawn, relative to the pool's other queues; at least 1.
    pub weight: u32,
}

impl Pool {
    /// Every queue it serves: its own, then those it borrows.
    pub fn serves(&self) -> impl Iterator<Item = &Weighted> {
        self.owns.iter().chain(&self.borrows)
    }

    /// Whether it lives on borrowed queues alone.
    #[must_use]
    pub fn is_elastic(&self) -> bool {
        self.owns.is_empty()
    }
}

/// The times by which workers live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Runtime {
    /// How long a claimed task stays its worker's without a sign of life; extended at a third. Default 10 s.
    pub lease: Duration,
    /// How often a process says that it lives. Default 5 s.
    pub heartbeat: Duration,
    /// At a stop, how long running tasks may go on before they are cancelled and given back. Default 8 s.
    pub grace: Duration,
    /// How long a handler has to return after its cancel or timeout, before it is dropped. Default 5 s.
    pub stop_grace: Duration,
    /// How long a handler that cannot be dropped keeps its slot and its lease. Default 10 min.
    pub max_stall: Duration,
}

/// The sweep that ends what got stuck.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Housekeeping {
    /// Whether it runs. Default: true.
    pub enabled: Resolved<bool>,
    /// When it runs. Default: every five minutes.
    pub schedule: Schedule,
    /// When a subject is stuck; none: never.
    pub stale: Option<Stale>,
}

/// When a subject without a sign of life is stuck.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stale {
    /// The type whose timeout the threshold outlasts.
    pub of: TypeName,
    /// The threshold, made from the timeout in force.
    pub after: Duration,
}

impl Topology {
    pub(crate) fn new(name: &str, parts: Parts, rows: Vec<Row>) -> Self {
        Self(Arc::new(Inner { name: name.to_owned(), parts, rows }))
    }

    /// Reads a file, with the environment of this process over it. For settings as well, see [`Loader`].
    ///
    /// # Errors
    /// [`Error::Read`] when it cannot be read; [`Error::Refused`] with every mistake in it.
    pub fn load(path: impl AsRef<Path>) -> Result<(Self, Vec<Warning>), Error> {
        Loader::from_process().load(path)
    }

    /// Reads the text of a file, with nothing over it; `name` stands for it in messages.
    ///
    /// # Errors
    /// [`Error::Refused`] with every mistake in it.
    pub fn parse(name: &str, text: &str) -> Result<(Self, Vec<Warning>), Error> {
        Loader::new().parse(name, text)
    }

    /// A topology made in code, for tests and small programs. It goes through the same checks.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A builder with one isolated pool for each queue, of the same name.
    ///
    /// ```
    /// use poolwright_registry::Topology;
    /// let topology = Topology::simple([("mail", 4)]).task("mail:send", "mail").build()?;
    /// assert_eq!(topology.task_type("mail:send").unwrap().queue.home, "mail");
    /// # Ok::<(), poolwright_registry::Error>(())
    /// ```
    #[must_use]
    pub fn simple<'a>(queues: impl IntoIterator<Item = (&'a str, usize)>) -> Builder {
        queues
            .into_iter()
            .fold(Self::builder(), |builder, (queue, workers)| builder.pool(queue, workers, [(queue, 1)]))
    }

    /// The name of the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The pools, in the order of the file.
    #[must_use]
    pub fn pools(&self) -> &[Arc<Pool>] {
        &self.0.parts.pools
    }

    /// A pool by name.
    #[must_use]
    pub fn pool(&self, name: impl AsRef<str>) -> Option<&Arc<Pool>> {
        self.pools().iter().find(|pool| pool.name == *name.as_ref())
    }

    /// A pool by name, or an error that says which one was probably meant.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn require_pool(&self, name: impl AsRef<str>) -> Result<&Arc<Pool>, Error> {
        let name = name.as_ref();
        let known = self.pools().iter().map(|pool| pool.name.as_str());
        self.pool(name).ok_or_else(|| unknown("pool", name, known))
    }

    /// The queues, in the order in which their home pools list them.
    #[must_use]
    pub fn queues(&self) -> &[Arc<Queue>] {
        &self.0.parts.queues
    }

    /// A queue by its name in the file or by its stored name; no name means two queues.
    #[must_use]
    pub fn queue(&self, name: impl AsRef<str>) -> Option<&Arc<Queue>> {
        let name = name.as_ref();
        self.queues().iter().find(|queue| queue.name == *name || queue.stored == *name)
    }

    /// A queue by either name, or an error that says which one was probably meant.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn require_queue(&self, name: impl AsRef<str>) -> Result<&Arc<Queue>, Error> {
        let name = name.as_ref();
        let known = self.queues().iter().map(|queue| queue.name.as_str());
        self.queue(name).ok_or_else(|| unknown("queue", name, known))
    }

    /// The rules of a task type.
    #[must_use]
    pub fn task_type(&self, name: impl AsRef<str>) -> Option<&Arc<TaskRules>> {
        self.0.parts.types.get(name.as_ref())
    }

    /// The rules of a task type, or an error that says which one was probably meant.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn require_type(&self, name: impl AsRef<str>) -> Result<&Arc<TaskRules>, Error> {
        let name = name.as_ref();
        let known = self.types().iter().map(|rules| rules.name.as_str());
        self.task_type(name).ok_or_else(|| unknown("task type", name, known))
    }

    /// The task types, in the order of the file.
    #[must_use]
    pub fn types(&self) -> &[Arc<TaskRules>] {
        &self.0.parts.types.list
    }

    /// The retry policies by name, `asynq` among them.
    #[must_use]
    pub fn retry_policies(&self) -> &BTreeMap<Arc<str>, RetryPolicy> {
        &self.0.parts.policies
    }

    /// The times by which workers live.
    #[must_use]
    pub fn runtime(&self) -> &Runtime {
        &self.0.parts.runtime
    }

    /// The sweep that ends what got stuck.
    #[must_use]
    pub fn housekeeping(&self) -> &Housekeeping {
        &self.0.parts.housekeeping
    }

    /// The largest payload in bytes of a type that does not say otherwise. Default 1 MiB.
    #[must_use]
    pub fn payload_bytes_max(&self) -> usize {
        self.0.parts.payload_bytes_max
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.0.rows
    }
}

fn unknown<'a>(what: &'static str, name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    Error::Unknown { what, name: name.to_owned(), hint: did_you_mean(name, known) }
}
