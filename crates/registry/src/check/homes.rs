//! Who owns which queue: every queue has exactly one home, and only what is owned is borrowed.

use std::collections::HashMap;

use super::pools::{Claim, Plan, all_known};
use crate::file::View;
use crate::file::node::{Entry, Node, Span};
use crate::problem::Fault;
use crate::suggest::{did_you_mean, nearest, quote};

/// A queue and the claim of its home pool.
#[derive(Debug)]
pub(super) struct Home<'p> {
    pub(super) plan: usize,
    pub(super) claim: &'p Claim<'p>,
}

/// Every queue that has a home, in the order in which the pools list them.
pub(super) fn check<'p>(root: &View<'_>, plans: &'p [Plan<'p>]) -> Vec<Home<'p>> {
    let mut homes: Vec<Home<'p>> = Vec::new();
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for (index, plan) in plans.iter().enumerate() {
        for claim in &plan.owns {
            match by_name.get(claim.queue) {
                Some(first) => {
                    let first = &homes[*first];
                    two_homes(root, claim, plan, &plans[first.plan], &first.claim.span);
                }
                None => {
                    by_name.insert(claim.queue, homes.len());
                    homes.push(Home { plan: index, claim });
                }
            }
        }
    }
    let owned: Vec<&str> = homes.iter().map(|home| home.claim.queue).collect();
    for plan in plans {
        borrowed(root, plan, &owned);
    }
    if all_known(root) {
        homeless(root, plans, &owned);
    }
    homes
}

fn two_homes(root: &View<'_>, claim: &Claim<'_>, second: &Plan<'_>, first: &Plan<'_>, owned_at: &Span) {
    let message =
        format!("queue {} has two home pools, `{}` and `{}`", quote(claim.queue), first.name, second.name);
    let help = format!(
        "keep it in one of them; the other may list it under `borrows`, as `{}` = weight",
        claim.queue
    );
    root.fault(Fault::new(&claim.span, message).related(owned_at, "owned here already").help(help));
}

fn borrowed(root: &View<'_>, plan: &Plan<'_>, owned: &[&str]) {
    for claim in &plan.borrows {
        if let Some(own) = plan.owns.iter().find(|own| own.queue == claim.queue) {
            let message = format!("pool `{}` both owns and borrows queue {}", plan.name, quote(claim.queue));
            let help = "remove it from `borrows`; to serve it more often, raise its weight under `queues`";
            root.fault(Fault::new(&claim.span, message).related(&own.span, "owned here").help(help));
        } else if all_known(root) && !owned.contains(&claim.queue) && !declared(root, claim.queue) {
            let near = did_you_mean(claim.queue, owned.iter().copied());
            let message = format!(
                "pool `{}` borrows queue {}, which no pool owns{near}",
                plan.name,
                quote(claim.queue)
            );
            let help = "a borrowed queue needs a home: list it under the `queues` of another pool";
            root.fault(Fault::new(&claim.span, message).help(help));
        }
    }
}

/// What stands under `[queues]`, without what was refused.
fn described<'v>(root: &View<'v>) -> impl Iterator<Item = &'v Entry> {
    root.entries("queues").iter().filter(|entry| !matches!(entry.node, Node::Bad))
}

pub(super) fn declared(root: &View<'_>, queue: &str) -> bool {
    described(root).any(|entry| &*entry.name == queue)
}

/// Queues that the file describes but no pool owns.
fn homeless(root: &View<'_>, plans: &[Plan<'_>], owned: &[&str]) {
    for entry in described(root).filter(|entry| !owned.contains(&&*entry.name)) {
        let undescribed = owned.iter().copied().filter(|name| !declared(root, name));
        let help = if let Some(near) = nearest(&entry.name, undescribed) {
            format!("a pool owns {}; is that the same queue?", quote(near))
        } else if let Some(plan) =
            plans.iter().find(|plan| plan.borrows.iter().any(|claim| *claim.queue == *entry.name))
        {
            format!("pool `{}` only borrows it; list it under the `queues` of another pool", plan.name)
        } else {
            "list it in a pool: `queues = { NAME = WEIGHT }`".to_owned()
        };
        let message = format!("queue {} has no home pool", quote(&entry.name));
        root.fault(Fault::new(&entry.name_span, message).help(help));
    }
}
