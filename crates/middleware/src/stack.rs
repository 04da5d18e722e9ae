//! Puts the layers around a handler, in the one order that makes sense.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::task::{self, Poll};
use std::time::Duration;

use poolwright_core::{BoxError, PoolName, TypeName};
use poolwright_handler::{Output, TaskCall, TaskService};
use tower::util::Oneshot;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use crate::{BackgroundLayer, DeadLetterLayer, GuardLayer, TraceLayer, guard};

/// What the layers can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How long a handler that was asked to stop has to return, before its future is dropped. Default: 5 s.
    pub stop_grace: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { stop_grace: guard::STOP_GRACE }
    }
}

/// The layers around handlers: dead letter → background → trace → the user's layers → guard → handler.
///
/// The user's layers stand inside the attempt's span and see timeouts, cancels and panics as errors. Those for all come
/// first, then those of the pool, then those of the task type; among equals the first that was added is outermost.
///
/// Layers are applied once for each pool: a `ConcurrencyLimitLayer` bounds each pool on its own, whether it was added
/// for all, for that pool or for a type. `GlobalConcurrencyLimitLayer` shares its bound between them.
///
/// A layer that is not ready is waited for inside the attempt: within its span and dead letter, with its worker's slot
/// taken.
///
/// ```
/// use poolwright_core::{BoxError, PoolName};
/// use poolwright_handler::{Raw, service};
/// use poolwright_middleware::{Options, Stack};
/// use tower::util::MapRequestLayer;
///
/// async fn handler(_: Raw) -> Result<(), BoxError> {
///     Ok(())
/// }
///
/// let stack = Stack::new(Options::default())
///     .user_layer(MapRequestLayer::new(|call: poolwright_handler::TaskCall| {
///         call.context().extend("found by the handler in its context");
///         call
///     }));
/// let core = stack.service(&PoolName::new("core")?, service(handler));
/// # let _ = core;
/// # Ok::<(), BoxError>(())
/// ```
#[derive(Clone)]
pub struct Stack {
    options: Options,
    for_all: Vec<Wrap>,
    by_pool: BTreeMap<PoolName, Vec<Wrap>>,
    by_type: BTreeMap<TypeName, Vec<Wrap>>,
}

/// A layer with its type forgotten.
type Wrap = Arc<dyn Fn(TaskService) -> TaskService + Send + Sync>;

/// A layer of the user: any `tower::Layer` that can stand between two services of task calls.
///
/// Its service takes a [`TaskCall`], answers with an [`Output`], fails with what can become a [`BoxError`], and is
/// `Clone + Send + Sync`, for each attempt has its own. One that is not `Clone`, such as that of `RateLimitLayer`, goes
/// behind a buffer, which is: `ServiceBuilder::new().buffer(64).rate_limit(5, second)`, with tower's feature `buffer`.
pub trait UserLayer: Send + Sync + 'static {
    /// Puts it around a service.
    fn wrap(&self, inner: TaskService) -> TaskService;
}

impl<L> UserLayer for L
where
    L: Layer<TaskService> + Send + Sync + 'static,
    L::Service: Service<TaskCall, Response = Output> + Clone + Send + Sync + 'static,
    <L::Service as Service<TaskCall>>::Error: Into<BoxError>,
    <L::Service as Service<TaskCall>>::Future: Send + 'static,
{
    fn wrap(&self, inner: TaskService) -> TaskService {
        TaskService::new(self.layer(inner).map_err(Into::into))
    }
}

impl Stack {
    /// The layers of this crate alone.
    #[must_use]
    pub const fn new(options: Options) -> Self {
        Self { options, for_all: Vec::new(), by_pool: BTreeMap::new(), by_type: BTreeMap::new() }
    }

    /// Adds a layer for every task.
    #[must_use]
    pub fn user_layer(mut self, layer: impl UserLayer) -> Self {
        self.for_all.push(Arc::new(move |inner| layer.wrap(inner)));
        self
    }

    /// Adds a layer for the tasks that this pool runs.
    #[must_use]
    pub fn pool_layer(mut self, pool: PoolName, layer: impl UserLayer) -> Self {
        self.by_pool.entry(pool).or_default().push(Arc::new(move |inner| layer.wrap(inner)));
        self
    }

    /// Adds a layer for the tasks of this type.
    #[must_use]
    pub fn type_layer(mut self, task_type: TypeName, layer: impl UserLayer) -> Self {
        self.by_type.entry(task_type).or_default().push(Arc::new(move |inner| layer.wrap(inner)));
        self
    }

    /// The pools that have layers of their own: one that does not exist is a mistake of whoever set up the stack.
    pub fn pools(&self) -> impl Iterator<Item = &PoolName> {
        self.by_pool.keys()
    }

    /// The task types that have layers of their own, to be checked likewise.
    pub fn task_types(&self) -> impl Iterator<Item = &TypeName> {
        self.by_type.keys()
    }

    /// The layers around `handlers` (one handler, or a service that finds the handler of a call), for one pool.
    #[must_use]
    pub fn service(&self, pool: &PoolName, handlers: TaskService) -> TaskService {
        let guarded = GuardLayer::new(self.options.stop_grace).layer(handlers);
        let of_pool = self.by_pool.get(pool).map(Vec::as_slice).unwrap_or_default();
        if self.by_type.is_empty() && of_pool.is_empty() && self.for_all.is_empty() {
            return ours(guarded);
        }
        let usual = TaskService::new(guarded);
        let by_type = self.by_type.iter();
        let special: HashMap<_, _> =
            by_type.map(|(name, layers)| (name.clone(), around(usual.clone(), layers))).collect();
        let typed = match special.is_empty() {
            true => usual,
            false => TaskService::new(ByType { special: Arc::new(special), usual }),
        };
        ours(around(around(typed, of_pool), &self.for_all))
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack")
            .field("options", &self.options)
            .field("layers_for_all", &self.for_all.len())
            .field("pools", &self.by_pool.keys())
            .field("task_types", &self.by_type.keys())
            .finish()
    }
}

/// The first layer outermost.
fn around(inner: TaskService, layers: &[Wrap]) -> TaskService {
    layers.iter().rfold(inner, |inner, wrap| wrap(inner))
}

/// The layers outside of the user's.
fn ours<S>(inner: S) -> TaskService
where
    S: Service<TaskCall, Response = Output, Error = BoxError> + Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    let layers = ServiceBuilder::new().layer(DeadLetterLayer).layer(BackgroundLayer).layer(TraceLayer);
    TaskService::new(layers.service(ReadyWithin { inner: Arc::new(inner) }))
}

/// Waits for the inner service to be ready within the call, so that the waiting and its errors belong to the attempt.
///
/// Shares it, for the layers outside of it are cloned for each attempt as well, and so it is cloned once and not twice.
struct ReadyWithin<S> {
    inner: Arc<S>,
}

impl<S> Clone for ReadyWithin<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<S> Service<TaskCall> for ReadyWithin<S>
where
    S: Service<TaskCall, Response = Output, Error = BoxError> + Clone,
{
    type Response = Output;
    type Error = BoxError;
    type Future = Oneshot<S, TaskCall>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: TaskCall) -> Self::Future {
        S::clone(&self.inner).oneshot(call)
    }
}

/// Sends a call through the layers of its type. Only the call tells the type, so readiness has to wait for it.
#[derive(Clone)]
struct ByType {
    special: Arc<HashMap<TypeName, TaskService>>,
    usual: TaskService,
}

impl Service<TaskCall> for ByType {
    type Response = Output;
    type Error = BoxError;
    type Future = Oneshot<TaskService, TaskCall>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: TaskCall) -> Self::Future {
        let service = self.special.get(call.context().task_type()).unwrap_or(&self.usual);
        service.clone().oneshot(call)
    }
}
