//! The public entry: finds queues and tasks, and says what they are.

use std::fmt;
use std::sync::Arc;

use poolwright_broker::{Broker, Cursor, Find, PageRequest};
use poolwright_core::{State, TaskId, TaskKey, TaskRecord, TypeName};
use poolwright_ledger::Ledger;
use poolwright_registry::Topology;
use serde::Serialize;

use crate::view::{self, Workers};
use crate::{Error, Letters, TaskView, Which, queues};

/// How many tasks a page has when nobody says.
pub const PAGE_SIZE: u32 = 20;

/// How many tasks a page has at most.
pub const PAGE_SIZE_MAX: u32 = 1_000;

/// Sees and changes the queues of a store. Cloning is cheap and shares everything.
///
/// ```no_run
/// # use poolwright_core::State;
/// # async fn f(inspector: poolwright_inspector::TaskInspector) -> Result<(), poolwright_inspector::Error> {
/// for queue in inspector.queues().await? {
///     println!("{}: {} waiting, {} running", queue.name, queue.pending, queue.active);
/// }
/// for task in inspector.tasks("maintenance", State::Archived, 0, None).await?.tasks {
///     inspector.run_now((task.queue.as_str(), task.id.as_str())).await?;
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct TaskInspector {
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) topology: Topology,
}

/// A page of tasks.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TaskPage {
    /// The tasks.
    pub tasks: Vec<TaskView>,
    /// How many it could hold.
    pub page_size: u32,
    /// There is another page.
    pub has_more: bool,
    /// Where it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<Cursor>,
}

/// Tasks of one subject or scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FoundTasks {
    /// The tasks, in any order.
    pub tasks: Vec<FoundTask>,
    /// Nothing else matches. False when the limit was reached or a part of the store could not be looked at.
    pub complete: bool,
}

/// A task that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FoundTask {
    /// Its key, for acts on it.
    #[serde(serialize_with = "id_of")]
    #[serde(rename = "id")]
    pub key: TaskKey,
    /// Its queue, as the file calls it.
    pub queue: String,
    /// What it is.
    #[serde(rename = "type")]
    pub task_type: TypeName,
    /// Its state.
    pub state: State,
}

fn id_of<S: serde::Serializer>(key: &TaskKey, out: S) -> Result<S::Ok, S::Error> {
    key.id.serialize(out)
}

impl TaskInspector {
    /// An inspector of this store, which knows the queues and types of this topology.
    #[must_use]
    pub fn new(broker: Arc<dyn Broker>, topology: Topology) -> Self {
        Self { broker, topology }
    }

    /// The queues and types it knows.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The store it looks at.
    #[must_use]
    pub const fn broker(&self) -> &Arc<dyn Broker> {
        &self.broker
    }

    /// The dead letters of this ledger.
    #[must_use]
    pub fn dead_letters(&self, ledger: Arc<dyn Ledger>) -> Letters {
        Letters::new(self.clone(), ledger)
    }

    /// A page of one queue and state. A `page_size` of 0 means [`PAGE_SIZE`], one above [`PAGE_SIZE_MAX`] means that.
    /// Pending and active tasks come newest first, scheduled and retry by due time, archived by last failure and
    /// completed by expiry, latest first.
    ///
    /// # Errors
    /// [`Error::UnknownQueue`]; [`Error::Store`], with `BadCursor` when the cursor is of another list.
    pub async fn tasks(
        &self,
        queue: &str,
        state: State,
        page_size: u32,
        after: Option<Cursor>,
    ) -> Result<TaskPage, Error> {
        let queue = self.stored(queue).await?;
        let limit = if page_size == 0 { PAGE_SIZE } else { page_size.min(PAGE_SIZE_MAX) };
        let page = self.broker.page(PageRequest { queue, state, after, limit }).await?;
        let workers = self.workers(state == State::Active && !page.tasks.is_empty()).await?;
        let now = self.broker.now();
        let tasks = page.tasks.iter().map(|task| view::task(&self.topology, task, &workers, now)).collect();
        Ok(TaskPage { tasks, page_size: limit, has_more: page.next.is_some(), next_cursor: page.next })
    }

    /// One task.
    ///
    /// # Errors
    /// [`Error::UnknownQueue`], [`Error::Nowhere`], [`Error::Ambiguous`], [`Error::Name`], [`Error::Store`].
    pub async fn task(&self, which: impl Into<Which>) -> Result<TaskView, Error> {
        let task = self.raw(which).await?;
        let workers = self.workers(task.state == State::Active).await?;
        Ok(view::task(&self.topology, &task, &workers, self.broker.now()))
    }

    /// One task with everything, payload and result included: for programs, not for screens.
    ///
    /// # Errors
    /// As [`TaskInspector::task`].
    pub async fn raw(&self, which: impl Into<Which>) -> Result<TaskRecord, Error> {
        let key = match which.into() {
            Which::Id(id) => return self.search(TaskId::new(id)?).await,
            other => self.key(other).await?,
        };
        let found = self.broker.get(key.clone()).await?;
        found.ok_or_else(|| poolwright_broker::Error::NotFound { key }.into())
    }

    /// Tasks of a subject or scope in all queues and states, at most `limit`; says whether that was all.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn find(&self, what: Find, limit: u32) -> Result<FoundTasks, Error> {
        let found = self.broker.find(what, limit).await?;
        let tasks = found.tasks.into_iter().map(|(key, state, task_type)| FoundTask {
            queue: queues::shown_name(&self.topology, &key.queue),
            key,
            task_type,
            state,
        });
        Ok(FoundTasks { tasks: tasks.collect(), complete: found.complete })
    }

    /// The key of a task. Its queue exists; whether the task does is checked only for an id without a queue.
    pub(crate) async fn key(&self, which: Which) -> Result<TaskKey, Error> {
        match which {
            Which::Key(key) => Ok(key),
            Which::In { queue, id } => Ok(TaskKey::new(self.stored(&queue).await?, TaskId::new(id)?)),
            Which::Id(id) => Ok(self.search(TaskId::new(id)?).await?.key),
        }
    }

    /// The only task with this id, wherever it is.
    async fn search(&self, id: TaskId) -> Result<TaskRecord, Error> {
        let mut found = Vec::new();
        for queue in self.all_queues().await? {
            found.extend(self.broker.get(TaskKey::new(queue, id.clone())).await?);
        }
        match found.len() {
            0 => Err(Error::Nowhere { id }),
            1 => Ok(found.remove(0)),
            _ => Err(Error::Ambiguous { id, queues: found.into_iter().map(|task| task.key.queue).collect() }),
        }
    }

    async fn workers(&self, wanted: bool) -> Result<Workers, Error> {
        match wanted {
            true => Ok(Workers::of(&self.broker.servers().await?)),
            false => Ok(Workers::none()),
        }
    }
}

impl fmt::Debug for TaskInspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskInspector").field("store", &self.broker.describe()).finish_non_exhaustive()
    }
}
