//! An orchestrator's parts, checked against the file and put together, before anything runs.
//!
//! Invariant: every mistake is found here, and all of them are told at once.

use std::collections::HashSet;
use std::sync::Arc;

use poolwright_client::{Client, Inject};
use poolwright_core::{Chance, Clock, DeadLetterSink, PoolName, TypeName};
use poolwright_handler::States;
use poolwright_inspector::TaskInspector;
use poolwright_middleware::{Options as StackOptions, Stack};
use poolwright_registry::{Pool, TaskRules, Topology};
use poolwright_worker::{
    Error as WorkerError, Options, PoolConfig, Routes, Rules, Running, Server, Services,
};

use crate::chain::Chain;
use crate::orchestrator::{Orchestrator, unknown};
use crate::sink::Sinks;
use crate::stores::Stores;
use crate::{Error, Problem, plan};

/// Everything that a worker needs.
pub(crate) struct Assembly {
    pub(crate) topology: Topology,
    pub(crate) stores: Stores,
    pub(crate) client: Client,
    pub(crate) inspector: TaskInspector,
    pub(crate) services: Arc<dyn Services>,
    pub(crate) rules: Rules,
    pub(crate) states: Arc<States>,
    pub(crate) sink: Arc<dyn DeadLetterSink>,
    pub(crate) pools: Vec<PoolConfig>,
    pub(crate) options: Options,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) chance: Chance,
}

impl Assembly {
    pub(crate) fn new(
        from: Orchestrator,
        stores: Stores,
        clock: Arc<dyn Clock>,
        chance: Chance,
    ) -> Result<Self, Error> {
        let Orchestrator { topology, mut states, mut router, layers, sinks, tune, mut problems, .. } = from;
        let pools = chosen(&topology, from.pools, &mut problems);
        let mut options = plan::options(&topology);
        tune.into_iter().for_each(|change| change(&mut options));
        let stack = Stack::new(StackOptions { stop_grace: options.stop_grace });
        let stack = layers.into_iter().fold(stack, |stack, add| add(stack));
        for name in stack.pools() {
            problems.extend(topology.require_pool(name).err().map(|why| unknown("layer_for_pool", why)));
        }
        for name in stack.task_types() {
            problems.extend(topology.require_type(name).err().map(|why| unknown("layer_for_type", why)));
        }
        let mut client = Client::new(stores.broker.clone(), topology.clone())
            .with_chance(chance.clone())
            .with_inject(inject());
        if let Some(witness) = from.witness {
            client = client.with_witness(witness);
        }
        let inspector = TaskInspector::new(stores.broker.clone(), topology.clone());
        states.insert(client.clone());
        states.insert(inspector.clone());
        let served = served(&topology, &pools);
        if from.needs_all_handlers {
            router.require(served.iter().map(|rules| rules.name.clone()));
        }
        let rules = plan::rules(&topology);
        let names: Vec<PoolName> = pools.iter().map(|pool| pool.name.clone()).collect();
        let routes = checked(router.build(&names, &rules, &states), problems)?;
        warn_of_silent_types(&served, &routes);

        Ok(Self {
            services: Arc::new(Chain::new(routes, &stack, &names)),
            sink: Arc::new(Sinks { ledger: stores.ledger.clone(), others: sinks }),
            pools: pools.iter().map(|pool| plan::pool(pool)).collect(),
            states: Arc::new(states),
            topology,
            stores,
            client,
            inspector,
            rules,
            options,
            clock,
            chance,
        })
    }

    /// Starts the worker.
    pub(crate) fn serve(self) -> Result<Running, Error> {
        let server = Server::builder(self.stores.broker)
            .pools(self.pools)
            .limits(plan::limits(&self.topology))
            .services(self.services)
            .rules(self.rules)
            .states(self.states)
            .sink(self.sink)
            .clock(self.clock)
            .chance(self.chance)
            .options(self.options);
        Ok(server.start()?)
    }
}

/// How the client writes the trace of the enqueuing code into tasks.
pub(crate) fn inject() -> Inject {
    Arc::new(poolwright_middleware::trace::inject)
}

/// The pools that run here, each once, in the order of the file.
fn chosen(topology: &Topology, names: Option<Vec<String>>, problems: &mut Vec<Problem>) -> Vec<Arc<Pool>> {
    let Some(names) = names else { return topology.pools().to_vec() };
    for name in &names {
        problems.extend(topology.require_pool(name).err().map(|why| unknown("pools", why)));
    }
    let is_named = |pool: &&Arc<Pool>| names.iter().any(|name| pool.name == *name.as_str());
    topology.pools().iter().filter(is_named).cloned().collect()
}

/// The types whose tasks these pools may get.
fn served<'t>(topology: &'t Topology, pools: &[Arc<Pool>]) -> Vec<&'t TaskRules> {
    let queues: HashSet<_> =
        pools.iter().flat_map(|pool| pool.serves()).map(|weighted| &weighted.queue.stored).collect();
    topology.types().iter().map(AsRef::as_ref).filter(|rules| queues.contains(&rules.queue.stored)).collect()
}

/// The routes, if neither they nor anything else is wrong.
fn checked(routes: Result<Routes, WorkerError>, mut problems: Vec<Problem>) -> Result<Routes, Error> {
    match routes {
        Ok(routes) => {
            if routes.names().is_empty() {
                problems.push(Problem::NoHandlers);
            }
            if problems.is_empty() { Ok(routes) } else { Err(Error::Refused { problems }) }
        }
        Err(WorkerError::Refused { problems: more }) => {
            problems.extend(more.into_iter().map(Problem::Worker));
            Err(Error::Refused { problems })
        }
        Err(other) => Err(other.into()),
    }
}

/// Types that another process may run; here their tasks only go back to their queues.
fn warn_of_silent_types(served: &[&TaskRules], routes: &Routes) {
    let known: HashSet<TypeName> = routes.names().into_iter().collect();
    let silent: Vec<&str> =
        served.iter().filter(|rules| !known.contains(&rules.name)).map(|rules| rules.name.as_str()).collect();
    if !silent.is_empty() {
        tracing::warn!(
            types = silent.join(", "),
            "{} task types of the queues served here have no handler: their tasks go back and wait for a process that has one",
            silent.len()
        );
    }
}
