//! Queues: their names on the broker and their rules.

use std::collections::HashMap;
use std::sync::Arc;

use poolwright_core::QueueName;

use super::homes::Home;
use super::pools::Plan;
use crate::file::node::Span;
use crate::file::{Got, View};
use crate::problem::Fault;
use crate::suggest::quote;
use crate::topology::{LogicalName, Queue};
use crate::words::Producers;

/// Every queue that has a home.
pub(super) fn read(root: &View<'_>, plans: &[Plan<'_>], homes: &[Home<'_>]) -> Vec<Arc<Queue>> {
    let defaults = root.table("queue_defaults");
    let described: HashMap<&str, View<'_>> =
        root.children("queues").into_iter().map(|(entry, view)| (&*entry.name, view)).collect();
    let mut named: Vec<Named> = Vec::new();
    let mut queues = Vec::new();
    for home in homes {
        let name = home.claim.queue;
        let view = described.get(name).cloned().unwrap_or_else(|| root.absent_child("queues", name));
        let view = view.over(&defaults);
        let queue = queue(&view, plans, home);
        let explicit = view.own("stored");
        let at = explicit.map_or(&home.claim.span, |entry| &entry.span).clone();
        let (stored, explicit) = (queue.stored.clone(), explicit.is_some());
        named.push(Named { logical: name.to_owned(), stored, at, explicit });
        queues.push(Arc::new(queue));
    }
    stored_names_differ(root, &named);
    queues
}

fn queue(view: &View<'_>, plans: &[Plan<'_>], home: &Home<'_>) -> Queue {
    let name = home.claim.queue;
    let label: Option<Got<Arc<str>>> = view.option("label");
    let description: Option<Got<Arc<str>>> = view.option("description");
    let stored: Option<Got<Arc<str>>> = view.option("stored");
    let borrowers = plans.iter().filter(|plan| plan.borrows.iter().any(|claim| claim.queue == name));
    let stored = stored.map_or_else(|| name.into(), |got| got.value);
    Queue {
        name: LogicalName::new(name),
        stored: QueueName::new(stored).expect("the walk keeps only names that are queue names"),
        label: label.map_or_else(|| name.into(), |got| got.value),
        description: description.map(|got| got.value),
        home: plans[home.plan].name.clone(),
        weight: home.claim.weight,
        borrowers: borrowers.map(|plan| plan.name.clone()).collect(),
        producers: view.value::<Producers>("producers").value,
        archive_max: view.value("archive_max").value,
        archive_for: view.value("archive_for").value,
    }
}

struct Named {
    logical: String,
    stored: QueueName,
    at: Span,
    /// Whether the file says how it is stored.
    explicit: bool,
}

/// No stored name stands for two queues, and none is another queue's own name: every command takes either.
fn stored_names_differ(root: &View<'_>, named: &[Named]) {
    for (index, second) in named.iter().enumerate() {
        if let Some(first) = named[..index].iter().find(|first| first.stored == second.stored) {
            // The place to change is the one where somebody chose a name.
            let (first, second) =
                if first.explicit && !second.explicit { (second, first) } else { (first, second) };
            let message = format!(
                "queues {} and {} have one stored name, {}",
                quote(&first.logical),
                quote(&second.logical),
                quote(second.stored.as_str())
            );
            let fault = Fault::new(&second.at, message).related(&first.at, "the other");
            root.fault(fault.help("give one of them another `stored` name, or make them one queue"));
        } else if let Some(other) = named
            .iter()
            .find(|other| other.logical != second.logical && second.stored == *other.logical.as_str())
            .filter(|other| other.stored != second.stored)
        {
            let message = format!(
                "queue {} is stored as {}, which is the name of another queue",
                quote(&second.logical),
                quote(&other.logical)
            );
            root.fault(
                Fault::new(&second.at, message)
                    .help("rename the other queue, or choose another `stored` name"),
            );
        }
    }
}
