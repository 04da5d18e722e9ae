//! The public entry: from a file, a store and handlers to running pools.

use std::any::type_name;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use poolwright_client::Witness;
use poolwright_core::clock::SystemClock;
use poolwright_core::{Chance, Clock, DeadLetterSink, PoolName, SettingsSource, TypeName};
use poolwright_handler::{Handler, States, TaskService};
use poolwright_middleware::stack::{Stack, UserLayer};
use poolwright_registry::{Loader, Topology, Warning};
use poolwright_worker::{Options, Report, Router};

use crate::assembly::Assembly;
use crate::stores::Stores;
use crate::{Error, Problem, Running};

/// Runs the pools of a file: describe it, then [`run`](Self::run) or [`start`](Self::start) it.
///
/// Mistakes of the file are refused by [`load`](Self::load); mistakes of the description (two handlers for one type, a
/// handler of a type that the file does not know, a state that nobody set, a pool that does not exist) are refused at
/// the start, all at once and before anything runs.
///
/// ```no_run
/// use poolwright::prelude::*;
///
/// #[derive(Serialize, Deserialize, TaskType)]
/// #[task("mail:send")]
/// struct SendMail { to: String }
///
/// async fn send_mail(mail: SendMail, State(from): State<String>) -> Result<(), BoxError> {
///     println!("from {from} to {}", mail.to);
///     Ok(())
/// }
///
/// # async fn f() -> Result<(), BoxError> {
/// Orchestrator::load("queues.toml")?
///     .broker("sqlite://tasks.db")
///     .state("post@example.org".to_owned())
///     .handle(send_mail)
///     .run()
///     .await?;
/// # Ok(()) }
/// ```
#[must_use = "an orchestrator does nothing until it is run or started"]
pub struct Orchestrator {
    source: Source,
    pub(crate) topology: Topology,
    warnings: Vec<Warning>,
    stores: StoresAt,
    clock: Arc<dyn Clock>,
    chance: Chance,
    pub(crate) states: States,
    pub(crate) router: Router,
    pub(crate) layers: Vec<AddLayer>,
    pub(crate) pools: Option<Vec<String>>,
    pub(crate) sinks: Vec<Arc<dyn DeadLetterSink>>,
    pub(crate) tune: Vec<Tune>,
    pub(crate) witness: Option<Witness>,
    pub(crate) needs_all_handlers: bool,
    pub(crate) problems: Vec<Problem>,
}

pub(crate) type Tune = Box<dyn FnOnce(&mut Options) + Send>;

/// Adds one layer of the user to a stack, whose own options are known only at the start.
pub(crate) type AddLayer = Box<dyn FnOnce(Stack) -> Stack + Send>;

/// Where the topology came from: it is read again at the start, with the settings of the ledger over it.
enum Source {
    File(PathBuf),
    Made,
}

/// Where tasks and durable records are.
#[derive(Default)]
struct StoresAt {
    broker: Option<String>,
    ledger: Option<String>,
    made: Option<Stores>,
}

impl StoresAt {
    async fn open(self, clock: Arc<dyn Clock>, chance: Chance) -> Result<Stores, Error> {
        match (self.made, self.broker) {
            (Some(stores), _) => Ok(stores),
            (None, Some(broker)) => Stores::open_with(&broker, self.ledger.as_deref(), clock, chance).await,
            (None, None) => Err(Error::Refused { problems: vec![Problem::NoStore] }),
        }
    }
}

impl Orchestrator {
    /// Reads the file of queues.
    ///
    /// At the start it is read once more, with what an operator set in the ledger over it: settings win over
    /// environment variables, and these over the file.
    ///
    /// # Errors
    /// [`Error::File`] with every mistake in it, each with its line and its cure.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let (topology, warnings) = Topology::load(path)?;
        Ok(Self { source: Source::File(path.to_owned()), warnings, ..Self::new(topology) })
    }

    /// Takes a topology that was made in code or parsed before. No settings are asked: it is as it is.
    pub fn new(topology: Topology) -> Self {
        Self {
            source: Source::Made,
            topology,
            warnings: Vec::new(),
            stores: StoresAt::default(),
            clock: Arc::new(SystemClock),
            chance: Chance::from_entropy(),
            states: States::default(),
            router: Router::new(),
            layers: Vec::new(),
            pools: None,
            sinks: Vec::new(),
            tune: Vec::new(),
            witness: None,
            needs_all_handlers: false,
            problems: Vec::new(),
        }
    }

    /// Where tasks are: `sqlite://tasks.db`, or `memory:` for tests. A file, and the directories above it, are made
    /// when they are not there.
    ///
    /// A file takes parameters, as in `sqlite://tasks.db?synchronous=normal`:
    ///
    /// | Parameter | Default | Sets |
    /// | --- | --- | --- |
    /// | `synchronous` | `full` | what is answered survives a power cut. `normal`: a crash of the process only, for several times as many short tasks a second where the disk is slow to sync |
    /// | `busy_wait_ms` | `30000` | how long a call waits while another process writes |
    /// | `wake_interval_ms` | `10` | how often a process that waits looks whether another one has written |
    /// | `file_bytes_max` | none | the file grows no further; then enqueues are refused as on a full disk |
    pub fn broker(mut self, url: impl Into<String>) -> Self {
        self.stores.broker = Some(url.into());
        self
    }

    /// Where dead letters and settings are. Default: beside the tasks, which for SQLite is the same file.
    pub fn ledger(mut self, url: impl Into<String>) -> Self {
        self.stores.ledger = Some(url.into());
        self
    }

    /// Stores that are open already, in place of URLs. They stay open when the orchestrator ends.
    pub fn stores(mut self, stores: Stores) -> Self {
        self.stores.made = Some(stores);
        self
    }

    /// A value for handlers: those that take `State<T>` get a clone of it. One for each type.
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        if self.states.insert(value) {
            self.problems.push(Problem::StateTwice { state: type_name::<T>() });
        }
        self
    }

    /// Runs tasks of the types of this handler's payload: one for a [`TaskType`](crate::handler::TaskType), several
    /// for an enum with `#[derive(Tasks)]`.
    pub fn handle<H: Handler<Args>, Args: 'static>(mut self, handler: H) -> Self {
        self.router.handle(handler);
        self
    }

    /// Runs tasks of one type by name, which a handler of [`Raw`](crate::handler::Raw) payloads needs.
    pub fn handle_as<H: Handler<Args>, Args: 'static>(mut self, task_type: &str, handler: H) -> Self {
        self.router.handle_as(task_type, handler);
        self
    }

    /// Runs tasks of one type by a tower service.
    pub fn route(mut self, task_type: TypeName, service: TaskService) -> Self {
        self.router.route(task_type, service);
        self
    }

    /// A layer around every handler. The first one added is outermost; all stand inside the attempt's span, and outside
    /// the guard that turns timeouts, cancels and panics into errors. [`UserLayer`] says what fits.
    ///
    /// ```
    /// use poolwright::handler::TaskCall;
    /// use poolwright::prelude::*;
    /// use tower::limit::{ConcurrencyLimitLayer, GlobalConcurrencyLimitLayer};
    /// use tower::util::MapRequestLayer;
    ///
    /// # fn f(app: Orchestrator, region: String) -> Orchestrator {
    /// app.layer(MapRequestLayer::new(move |call: TaskCall| {
    ///     call.context().extend(region.clone()); // the handler asks `cx.extension::<String>()`
    ///     call
    /// }))
    /// .layer_for_type("page:fetch", ConcurrencyLimitLayer::new(2)) // two at once in each pool
    /// .layer_for_type("mail:send", GlobalConcurrencyLimitLayer::new(4)) // four at once in all pools of this process
    /// # }
    /// ```
    pub fn layer(mut self, layer: impl UserLayer) -> Self {
        self.layers.push(Box::new(|stack| stack.user_layer(layer)));
        self
    }

    /// A layer around every handler that this pool runs, inside those for all.
    pub fn layer_for_pool(mut self, pool: &str, layer: impl UserLayer) -> Self {
        match PoolName::new(pool) {
            Ok(name) => self.layers.push(Box::new(|stack| stack.pool_layer(name, layer))),
            Err(why) => self.problems.push(unknown("layer_for_pool", why)),
        }
        self
    }

    /// A layer around the handler of this type, inside those for its pool.
    pub fn layer_for_type(mut self, task_type: &str, layer: impl UserLayer) -> Self {
        match TypeName::new(task_type) {
            Ok(name) => self.layers.push(Box::new(|stack| stack.type_layer(name, layer))),
            Err(why) => self.problems.push(unknown("layer_for_type", why)),
        }
        self
    }

    /// Only these pools run in this process. Default: all of the file.
    pub fn pools<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.pools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Also tells this one of every task that failed for good, after the ledger has it. It may be told twice of the
    /// same one. While it fails, letters wait in the archive and are offered again.
    pub fn on_dead_letter(mut self, sink: impl DeadLetterSink + 'static) -> Self {
        self.sinks.push(Arc::new(sink));
        self
    }

    /// Refuses to start when a type of a queue that is served here has no handler. Default: a warning that names them.
    pub const fn require_handlers(mut self) -> Self {
        self.needs_all_handlers = true;
        self
    }

    /// Changes knobs of the worker that the file does not have; called at the start, after the file's `[runtime]`.
    pub fn tune(mut self, change: impl FnOnce(&mut Options) + Send + 'static) -> Self {
        self.tune.push(Box::new(change));
        self
    }

    /// The clock of store and worker; tests give a manual one. Stores that were made before keep their own.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The source of chance: ids, tokens, draws of queues, spread of delays. Tests give a seeded one.
    pub fn chance(mut self, chance: Chance) -> Self {
        self.chance = chance;
        self
    }

    /// Is told of every task that its client enqueues.
    #[cfg(feature = "memory")]
    pub(crate) fn witness(mut self, witness: Witness) -> Self {
        self.witness = Some(witness);
        self
    }

    /// Starts the pools and returns.
    ///
    /// # Errors
    /// [`Error::Refused`] with everything that is wrong, and whatever opening the store may bring.
    pub async fn start(mut self) -> Result<Running, Error> {
        let at = std::mem::take(&mut self.stores);
        let owns_stores = at.made.is_none();
        let stores = at.open(self.clock.clone(), self.chance.clone()).await?;
        match self.launch(stores.clone(), owns_stores).await {
            Ok(running) => Ok(running),
            Err(error) => {
                if owns_stores {
                    // Nothing was written; the reason why it did not start is what the caller needs.
                    let _ = stores.broker.close().await;
                }
                Err(error)
            }
        }
    }

    /// Runs the pools until SIGTERM or Ctrl-C, then stops gracefully; a second signal ends at once.
    ///
    /// # Errors
    /// As [`start`](Self::start); [`Error::Failed`] when the worker ended because of a bug.
    pub async fn run(self) -> Result<Report, Error> {
        self.start().await?.until_signal().await
    }

    async fn launch(self, stores: Stores, owns_stores: bool) -> Result<Running, Error> {
        let assembly = self.assemble(stores).await?;
        let client = assembly.client.clone();
        let inspector = assembly.inspector.clone();
        let stores = assembly.stores.clone();
        let worker = assembly.serve()?;
        Ok(Running::new(worker, client, inspector, stores, owns_stores))
    }

    /// Everything that a worker needs, checked.
    pub(crate) async fn assemble(mut self, stores: Stores) -> Result<Assembly, Error> {
        if let Source::File(path) = &self.source {
            let settings = stores.ledger.snapshot().await?;
            (self.topology, self.warnings) = read(path, &settings)?;
        }
        for warning in &self.warnings {
            tracing::warn!(file = self.topology.name(), "{warning}");
        }
        let (clock, chance) = (self.clock.clone(), self.chance.clone());
        Assembly::new(self, stores, clock, chance)
    }
}

fn read(path: &Path, settings: &dyn SettingsSource) -> Result<(Topology, Vec<Warning>), Error> {
    Ok(Loader::from_process().settings(settings).load(path)?)
}

pub(crate) fn unknown(call: &'static str, why: impl ToString) -> Problem {
    Problem::Unknown { call, why: why.to_string() }
}

impl std::fmt::Debug for Orchestrator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Orchestrator")
            .field("file", &self.topology.name())
            .field("states", &self.states)
            .field("layers", &self.layers.len())
            .field("pools", &self.pools)
            .finish_non_exhaustive()
    }
}
