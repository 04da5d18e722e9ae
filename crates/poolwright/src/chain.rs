//! The handlers of each pool in their layers.
//!
//! ```text
//!   worker ─► dead letter ─► background ─► trace ─► your layers ─► guard ─► ByType ─► handler
//!             └──────────────── one stack for each pool ───────────────┘
//! ```
//!
//! Invariant: layers are applied once for each pool, so that one which counts (a concurrency limit) counts for its pool
//! and not for each task type apart.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::task::{self, Poll};

use futures_util::future::Either;
use poolwright_core::{BoxError, Class, PoolName, TaskError, TypeName};
use poolwright_handler::{Output, TaskCall, TaskService};
use poolwright_middleware::Stack;
use poolwright_worker::{Routes, Services};
use tower::util::Oneshot;
use tower::{Service, ServiceExt};

/// What the worker asks for the service of a task.
pub(crate) struct Chain {
    names: HashSet<TypeName>,
    pools: HashMap<PoolName, TaskService>,
}

impl Chain {
    pub(crate) fn new(routes: Routes, stack: &Stack, pools: &[PoolName]) -> Self {
        let names = routes.names().into_iter().collect();
        let routes = Arc::new(routes);
        let of_pool = |pool: &PoolName| {
            let handlers = ByType { routes: routes.clone(), pool: pool.clone() };
            (pool.clone(), stack.service(pool, TaskService::new(handlers)))
        };
        let pools = pools.iter().map(of_pool).collect();
        Self { names, pools }
    }
}

impl Services for Chain {
    fn find(&self, pool: &PoolName, task_type: &TypeName) -> Option<TaskService> {
        if self.names.contains(task_type) { self.pools.get(pool).cloned() } else { None }
    }

    fn names(&self) -> Vec<TypeName> {
        let mut names: Vec<TypeName> = self.names.iter().cloned().collect();
        names.sort();
        names
    }
}

/// Gives a call to the handler of its type.
#[derive(Clone)]
struct ByType {
    routes: Arc<Routes>,
    pool: PoolName,
}

impl Service<TaskCall> for ByType {
    type Response = Output;
    type Error = BoxError;
    type Future = Either<Oneshot<TaskService, TaskCall>, std::future::Ready<Result<Output, BoxError>>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: TaskCall) -> Self::Future {
        let task_type = call.context().task_type();
        match self.routes.find(&self.pool, task_type) {
            Some(handler) => Either::Left(handler.oneshot(call)),
            None => {
                let error = TaskError::new(Class::NoHandler, format!("no handler for {task_type} here"));
                Either::Right(std::future::ready(Err(error.into())))
            }
        }
    }
}
