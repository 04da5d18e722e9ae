//! Pools: their workers, and the queues they serve.

use std::sync::Arc;

use poolwright_core::PoolName;

use crate::file::node::{Entry, Node, Span};
use crate::file::{Got, View};
use crate::problem::Fault;
use crate::resolve::{resolve, sources};
use crate::suggest::{nearest, quote};
use crate::topology::{Pool, Queue, Weighted};
use crate::words::Borrow;

/// What the variables of pools begin and end with.
const VARIABLE_START: &str = "POOLWRIGHT_POOL_";
const VARIABLE_END: &str = "_WORKERS";

/// A pool as the file has it.
pub(super) struct Plan<'v> {
    pub(super) name: PoolName,
    pub(super) view: View<'v>,
    name_span: Span,
    pub(super) owns: Vec<Claim<'v>>,
    pub(super) borrows: Vec<Claim<'v>>,
}

/// A pool's line about a queue.
#[derive(Debug)]
pub(super) struct Claim<'v> {
    pub(super) queue: &'v str,
    pub(super) span: Span,
    pub(super) weight: u32,
}

/// Every pool that can be read.
pub(super) fn plans<'v>(root: &View<'v>) -> Vec<Plan<'v>> {
    if let Some(pools) =
        root.own("pools").filter(|pools| matches!(&pools.node, Node::Table(t) if t.is_empty()))
    {
        let help =
            "a topology needs a pool: `[pools.core]` with `workers = 8` and `queues = { default = 1 }`";
        root.fault(Fault::new(&pools.name_span, "there is no pool").help(help));
    }
    let plan = |(entry, view): (&'v Entry, View<'v>)| Plan {
        name: PoolName::new(&*entry.name).expect("the walk keeps only names that are pool names"),
        name_span: entry.name_span.clone(),
        owns: claims(view.entries("queues")),
        borrows: claims(view.entries("borrows")),
        view,
    };
    root.children("pools").into_iter().map(plan).collect()
}

/// Whether every pool and what it owns could be read; if not, nobody knows what no pool owns.
pub(super) fn all_known(root: &View<'_>) -> bool {
    let known = |entry: &Entry| match &entry.node {
        Node::Table(pool) => !pool.iter().any(|key| &*key.name == "queues" && matches!(key.node, Node::Bad)),
        _ => false,
    };
    root.own("pools").is_none_or(|pools| !matches!(pools.node, Node::Bad))
        && root.entries("pools").iter().all(known)
}

fn claims(entries: &[Entry]) -> Vec<Claim<'_>> {
    let claim = |entry: &'_ Entry| match entry.node {
        Node::Integer(weight) => u32::try_from(weight).unwrap_or(1),
        // A weight that was refused; its queue is owned all the same.
        _ => 1,
    };
    entries
        .iter()
        .map(|entry| Claim { queue: &entry.name, span: entry.name_span.clone(), weight: claim(entry) })
        .collect()
}

pub(super) fn read(root: &View<'_>, plans: &[Plan<'_>], queues: &[Arc<Queue>]) -> Vec<Arc<Pool>> {
    variables_differ(root, plans);
    variables_reach_a_pool(root, plans);
    plans.iter().filter_map(|plan| pool(plan, queues)).map(Arc::new).collect()
}

fn pool(plan: &Plan<'_>, queues: &[Arc<Queue>]) -> Option<Pool> {
    let view = &plan.view;
    let label: Option<Got<Arc<str>>> = view.option("label");
    let setting: Option<Got<Arc<str>>> = view.option("setting");
    let variable: Option<Got<Arc<str>>> = view.option("env");
    let variables = std::iter::once(variable_of(&plan.name)).chain(variable.map(|got| got.value.to_string()));
    let sources = sources(setting.as_ref().map(|got| &*got.value), variables);
    let workers = view.option("workers").map(|workers| resolve(view.session, workers, sources));
    let threads: Option<Got<usize>> = view.option("threads");
    let borrow: Got<Borrow> = view.value("borrow");
    for name in ["queues", "borrows"] {
        if let Some(entry) = view.own(name) {
            view.row(name, entry.node.to_string(), Some(&entry.span));
        }
    }
    if view.own("queues").is_none_or(is_empty) && view.own("borrows").is_none_or(is_empty) {
        let message = format!("pool `{}` has no queues", plan.name);
        let help =
            "give it some of its own, `queues = { NAME = WEIGHT }`, or let it borrow some: `borrows = ...`";
        view.fault(Fault::new(&view.span, message).help(help));
    }
    if let Some(entry) = view.own("borrow").filter(|_| view.own("borrows").is_none_or(is_empty)) {
        let message = format!("`borrow` says when pool `{}` borrows, but it borrows nothing", plan.name);
        view.fault(
            Fault::new(&entry.name_span, message)
                .help("add `borrows = { NAME = WEIGHT }`, or remove `borrow`"),
        );
    }
    Some(Pool {
        name: plan.name.clone(),
        label: label.map_or_else(|| plan.name.as_str().into(), |got| got.value),
        workers: workers?,
        threads: threads.map(|got| got.value),
        owns: weighted(&plan.owns, queues),
        borrows: weighted(&plan.borrows, queues),
        borrow: borrow.value,
    })
}

fn is_empty(entry: &Entry) -> bool {
    matches!(&entry.node, Node::Table(entries) if entries.is_empty())
}

fn weighted(claims: &[Claim<'_>], queues: &[Arc<Queue>]) -> Vec<Weighted> {
    let found = claims.iter().filter_map(|claim| {
        let queue = queues.iter().find(|queue| queue.name == *claim.queue)?;
        Some(Weighted { queue: queue.clone(), weight: claim.weight })
    });
    found.collect()
}

/// `POOLWRIGHT_POOL_<NAME>_WORKERS`: upper case, `_` for everything that is neither letter nor digit.
pub(super) fn variable_of(pool: &PoolName) -> String {
    variable_named(&part_of(pool))
}

fn variable_named(part: &str) -> String {
    format!("{VARIABLE_START}{part}{VARIABLE_END}")
}

fn part_of(pool: &PoolName) -> String {
    let part = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    pool.as_str().chars().map(part).collect()
}

/// Warns of a variable that has the form of a pool's and is no pool's: who set it believes that it works.
fn variables_reach_a_pool(root: &View<'_>, plans: &[Plan<'_>]) {
    let parts: Vec<String> = plans.iter().map(|plan| part_of(&plan.name)).collect();
    let declares = |plan: &Plan<'_>, name: &str| {
        plan.view.own("env").is_some_and(|env| matches!(&env.node, Node::Text(said) if **said == *name))
    };
    for variable in root.session.loader.set_variables() {
        let part = variable.strip_prefix(VARIABLE_START).and_then(|rest| rest.strip_suffix(VARIABLE_END));
        let Some(part) = part else { continue };
        if parts.iter().any(|pool| pool == part) || plans.iter().any(|plan| declares(plan, &variable)) {
            continue;
        }
        let near = nearest(part, parts.iter().map(String::as_str)).map(variable_named);
        let hint = near.map_or_else(String::new, |near| format!(", did you mean {}?", quote(&near)));
        root.session.warn(format!("variable {} is set, and no pool obeys it{hint}", quote(&variable)));
    }
}

fn variables_differ(root: &View<'_>, plans: &[Plan<'_>]) {
    for (index, plan) in plans.iter().enumerate() {
        let variable = variable_of(&plan.name);
        if let Some(first) = plans[..index].iter().find(|first| variable_of(&first.name) == variable) {
            let message = format!("pools `{}` and `{}` would both obey `{variable}`", first.name, plan.name);
            let fault = Fault::new(&plan.name_span, message).related(&first.name_span, "the first of them");
            root.fault(fault.help("rename one of them"));
        }
    }
}
