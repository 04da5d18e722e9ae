//! Retry policies: numbers that make sense together, and references to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use poolwright_core::RetryPolicy;

use crate::duration;
use crate::file::node::Span;
use crate::file::{Got, View};
use crate::problem::Fault;
use crate::suggest::{did_you_mean, list, quote};
use crate::words::RetryKind;

/// The policy that needs no declaration.
const BUILT_IN: &str = "asynq";

/// The policies of the file by name; none where a declaration has mistakes.
pub(super) struct Policies(BTreeMap<Arc<str>, Option<RetryPolicy>>);

impl Policies {
    /// The policy of this name; a fault when there is none.
    pub(super) fn get(&self, view: &View<'_>, name: &str, span: &Span) -> Option<RetryPolicy> {
        if let Some(policy) = self.0.get(name) {
            return policy.clone();
        }
        let known = || self.0.keys().map(|name| &**name);
        let message = format!("unknown retry policy {}{}", quote(name), did_you_mean(name, known()));
        let help = format!("known policies: {}; declare others as `[retry.NAME]`", list(known()));
        view.fault(Fault::new(span, message).help(help));
        None
    }

    /// The policies that have no mistakes.
    pub(super) fn into_map(self) -> BTreeMap<Arc<str>, RetryPolicy> {
        self.0.into_iter().filter_map(|(name, policy)| Some((name, policy?))).collect()
    }
}

pub(super) fn read(root: &View<'_>) -> Policies {
    let mut policies = BTreeMap::from([(Arc::from(BUILT_IN), Some(RetryPolicy::Asynq))]);
    policies.extend(root.entries("retry").iter().map(|entry| (entry.name.clone(), None)));
    for (entry, view) in root.children("retry") {
        let policy = policy(&view);
        if &*entry.name == BUILT_IN && policy.as_ref().is_some_and(|policy| *policy != RetryPolicy::Asynq) {
            let message = format!("`{BUILT_IN}` is the built-in policy and cannot be another");
            root.fault(Fault::new(&entry.name_span, message).help("give this policy a name of its own"));
        }
        policies.insert(entry.name.clone(), policy);
    }
    Policies(policies)
}

fn policy(view: &View<'_>) -> Option<RetryPolicy> {
    let policy = match view.tag::<RetryKind>("kind")? {
        RetryKind::Asynq => RetryPolicy::Asynq,
        RetryKind::Exponential => {
            let (base, max) = (view.option("base"), view.value("max"));
            bounded(view, "base", base.as_ref(), &max);
            let (factor, jitter) = (view.value("factor").value, view.value("jitter").value);
            RetryPolicy::Exponential { base: base?.value, factor, jitter, max: max.value }
        }
        RetryKind::Linear => {
            let (step, max) = (view.option("step"), view.value("max"));
            bounded(view, "step", step.as_ref(), &max);
            RetryPolicy::Linear { step: step?.value, max: max.value }
        }
        RetryKind::Steps => RetryPolicy::Steps { delays: view.option::<Vec<Duration>>("delays")?.value },
        RetryKind::Fixed => RetryPolicy::Fixed { delay: view.option("delay")?.value },
    };
    Some(policy)
}

/// An upper bound below the first delay would make every delay the same.
fn bounded(view: &View<'_>, name: &str, first: Option<&Got<Duration>>, max: &Got<Duration>) {
    let Some(first) = first.filter(|first| first.value > max.value) else { return };
    let message = format!(
        "`max` ({}) is below the first delay, `{name}` ({})",
        duration::show(max.value),
        duration::show(first.value)
    );
    let own = view.own("max").is_some();
    let fault = if own {
        Fault::new(&max.span, message).related(&first.span, "the first delay")
    } else {
        Fault::new(&first.span, message)
    };
    view.fault(fault.help("raise `max`, or use `kind = \"fixed\"` for one delay"));
}
