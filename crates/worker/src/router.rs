//! From a task's type to the service that runs it.
//!
//! Everything that is wrong with the handlers is found before the start, all at once: two for one type, one for a type that
//! is not declared, one without a name, a state that nobody set, a type that must have one and has none.

use std::any::type_name;
use std::collections::{BTreeMap, BTreeSet};
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task;

use futures_util::future::Either;
use poolwright_core::{BoxError, Class, PoolName, TaskError, TypeName};
use poolwright_handler::{Handler, Need, Output, States, TaskCall, TaskService, service};
use tower::util::Oneshot;
use tower::{Service, ServiceExt};

use crate::{Error, Problem, Rules};

/// Gives the service of a type in a pool.
pub trait Services: Send + Sync {
    /// The handler of this type in its layers, as this pool runs it; none when nobody here knows the type. Asked for
    /// every attempt, on the threads of the pool.
    fn find(&self, pool: &PoolName, task_type: &TypeName) -> Option<TaskService>;

    /// All types that have a handler, in order.
    fn names(&self) -> Vec<TypeName>;
}

type Wrap = Box<dyn Fn(&PoolName, TaskService) -> TaskService + Send + Sync>;

/// Collects handlers and layers.
#[derive(Default)]
pub struct Router {
    routes: BTreeMap<TypeName, Route>,
    wraps: Vec<Wrap>,
    required: BTreeSet<TypeName>,
    problems: Vec<Problem>,
}

struct Route {
    /// The type of the handler, for messages.
    handler: &'static str,
    service: TaskService,
    needs: Vec<Need>,
}

impl Router {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a handler for every task type of its payload.
    pub fn handle<H: Handler<Args>, Args: 'static>(&mut self, handler: H) -> &mut Self {
        let names = H::names();
        if names.is_empty() {
            self.problems.push(Problem::NoName { handler: type_name::<H>() });
        }
        for name in names {
            self.handle_as(name, handler.clone());
        }
        self
    }

    /// Registers a handler for one task type by name: how handlers of [`poolwright_handler::Raw`] get theirs.
    pub fn handle_as<H: Handler<Args>, Args: 'static>(&mut self, name: &str, handler: H) -> &mut Self {
        let route = Route { handler: type_name::<H>(), needs: H::needs(), service: service(handler) };
        match TypeName::new(name) {
            Ok(task_type) => self.add(task_type, route),
            Err(why) => {
                self.problems.push(Problem::BadName { handler: route.handler, name: name.to_owned(), why });
            }
        }
        self
    }

    /// Registers a tower service for one task type.
    pub fn route(&mut self, task_type: TypeName, service: TaskService) -> &mut Self {
        self.add(task_type, Route { handler: "a service", needs: Vec::new(), service });
        self
    }

    /// Puts layers around the handlers, once for each pool: the service they get finds the handler of a call by its type.
    /// What is added later goes outside.
    pub fn wrap(
        &mut self,
        layers: impl Fn(&PoolName, TaskService) -> TaskService + Send + Sync + 'static,
    ) -> &mut Self {
        self.wraps.push(Box::new(layers));
        self
    }

    /// These types must have a handler.
    pub fn require(&mut self, types: impl IntoIterator<Item = TypeName>) -> &mut Self {
        self.required.extend(types);
        self
    }

    /// Checks everything and builds the services of these pools.
    ///
    /// # Errors
    /// [`Error::Refused`] with everything that is wrong.
    pub fn build<'a>(
        self,
        pools: impl IntoIterator<Item = &'a PoolName>,
        rules: &Rules,
        states: &States,
    ) -> Result<Routes, Error> {
        let problems = self.all_problems(rules, states);
        if !problems.is_empty() {
            return Err(Error::Refused { problems });
        }
        let handlers = self.routes.into_iter().map(|(name, route)| (name, route.service)).collect();
        let handlers = Handlers(Arc::new(handlers));
        let layered = |pool: &PoolName| {
            let inner = TaskService::new(handlers.clone());
            (pool.clone(), self.wraps.iter().fold(inner, |inner, wrap| wrap(pool, inner)))
        };
        let pools = pools.into_iter().map(layered).collect();
        Ok(Routes { handlers, pools })
    }

    fn add(&mut self, task_type: TypeName, route: Route) {
        if let Some(first) = self.routes.get(&task_type) {
            let problem = Problem::HandlerTwice { task_type, first: first.handler, second: route.handler };
            self.problems.push(problem);
        } else {
            self.routes.insert(task_type, route);
        }
    }

    fn all_problems(&self, rules: &Rules, states: &States) -> Vec<Problem> {
        let unknown =
            self.routes.iter().filter(|(name, _)| !rules.knows(name)).map(|(name, route)| {
                Problem::UnknownType { handler: route.handler, task_type: name.clone() }
            });
        let missing = self.routes.values().flat_map(|route| {
            let unmet = route.needs.iter().filter(|need| !states.has(need.id));
            unmet.map(|need| Problem::MissingState { handler: route.handler, state: need.name })
        });
        let silent = self.required.iter().filter(|name| !self.routes.contains_key(*name));
        let silent = silent.map(|name| Problem::MissingHandler { task_type: name.clone() });
        let mut problems = self.problems.clone();
        for problem in unknown.chain(missing).chain(silent) {
            // A handler of several types needs its states once.
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        problems
    }
}

/// The services of all pools of a process, checked.
pub struct Routes {
    handlers: Handlers,
    /// A few, looked through for every attempt: cheaper than to hash a name.
    pools: Vec<(PoolName, TaskService)>,
}

impl Services for Routes {
    fn find(&self, pool: &PoolName, task_type: &TypeName) -> Option<TaskService> {
        let (_, service) = self.pools.iter().find(|(name, _)| name == pool)?;
        self.handlers.0.contains_key(task_type).then(|| service.clone())
    }

    fn names(&self) -> Vec<TypeName> {
        self.handlers.0.keys().cloned().collect()
    }
}

/// All handlers behind one service, inside of a pool's layers.
#[derive(Clone)]
struct Handlers(Arc<BTreeMap<TypeName, TaskService>>);

impl Service<TaskCall> for Handlers {
    type Response = Output;
    type Error = BoxError;
    type Future = Either<Oneshot<TaskService, TaskCall>, Ready<Result<Output, BoxError>>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> task::Poll<Result<(), BoxError>> {
        // Which handler is asked for is known with the call; it is waited for there.
        task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: TaskCall) -> Self::Future {
        match self.0.get(call.context().task_type()) {
            Some(handler) => Either::Left(handler.clone().oneshot(call)),
            None => {
                let text = format!("no handler for the type {}", call.context().task_type());
                Either::Right(ready(Err(TaskError::new(Class::NoHandler, text).into())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use poolwright_handler::{Raw, State, TaskType};
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Resize;
    impl TaskType for Resize {
        const NAME: &'static str = "image:resize";
    }

    async fn resize(_: Resize, State(_): State<u32>) -> Result<(), BoxError> {
        Ok(())
    }

    async fn raw(_: Raw) -> Result<(), BoxError> {
        Ok(())
    }

    fn name(text: &str) -> TypeName {
        TypeName::new(text).unwrap()
    }

    fn pool() -> PoolName {
        PoolName::new("core").unwrap()
    }

    fn said(router: Router, rules: &Rules, states: &States) -> Vec<String> {
        match router.build([&pool()], rules, states) {
            Err(Error::Refused { problems }) => problems.iter().map(ToString::to_string).collect(),
            Err(other) => panic!("{other}"),
            Ok(_) => Vec::new(),
        }
    }

    #[test]
    fn a_sound_router_finds_its_services_by_pool_and_type() {
        let mut router = Router::new();
        router.handle(resize).handle_as("any:thing", raw);
        let mut states = States::default();
        states.insert(7_u32);
        let routes = router.build([&pool()], &Rules::default(), &states).unwrap();
        assert_eq!(routes.names(), [name("any:thing"), name("image:resize")]);
        assert!(routes.find(&pool(), &name("image:resize")).is_some());
        assert!(routes.find(&pool(), &name("other")).is_none());
        assert!(routes.find(&PoolName::new("elsewhere").unwrap(), &name("image:resize")).is_none());
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        let mut router = Router::new();
        router.handle(resize).handle(resize).handle(raw).handle_as(" ", raw).handle_as("typo", raw);
        router.require([name("image:resize"), name("chunk:extract")]);
        let rules = Rules::default().with(name("image:resize"), poolwright_core::Policy::default());
        let said = said(router, &rules, &States::default());
        let ends = [
            "has two handlers: ",
            "takes any payload: say for which task type, with `handle_as`",
            "which is no task type: a task type must not be empty",
            "is for task type typo, which is not declared",
            "takes `State<u32>`, but no state of that type was set",
            "task type chunk:extract has no handler",
        ];
        assert_eq!(said.len(), ends.len(), "{said:#?}");
        for (said, end) in said.iter().zip(ends) {
            assert!(said.contains(end), "{said}");
        }
    }

    #[test]
    fn layers_are_put_around_the_handlers_of_each_pool_once() {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut router = Router::new();
        router.handle_as("a", raw).handle_as("b", raw);
        for layer in ["inner", "outer"] {
            let note = Arc::clone(&seen);
            router.wrap(move |pool, service| {
                note.lock().unwrap().push(format!("{layer} of {pool}"));
                service
            });
        }
        router.build([&pool()], &Rules::default(), &States::default()).unwrap();
        assert_eq!(*seen.lock().unwrap(), ["inner of core", "outer of core"]);
    }
}
