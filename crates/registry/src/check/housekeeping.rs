//! `[housekeeping]`: a threshold that cannot take a running task for a stuck one.

use std::sync::Arc;
use std::time::Duration;

use super::tasks::Types;
use crate::duration;
use crate::file::{Got, View};
use crate::problem::Fault;
use crate::resolve::{resolve, sources};
use crate::suggest::{did_you_mean, known, quote};
use crate::topology::{Housekeeping, Stale};

pub(super) fn read(root: &View<'_>, types: &Types) -> Housekeeping {
    let view = root.table("housekeeping");
    let setting: Option<Got<Arc<str>>> = view.option("enabled_setting");
    let variable: Option<Got<Arc<str>>> = view.option("enabled_env");
    let sources = sources(setting.as_ref().map(|got| &*got.value), variable.map(|got| got.value.to_string()));
    let enabled = resolve(view.session, view.value("enabled"), sources);
    let schedule = view.value("schedule").value;
    let stale = view.own("stale_after").and_then(|_| stale(&view.table("stale_after"), types));
    Housekeeping { enabled, schedule, stale }
}

fn stale(view: &View<'_>, types: &Types) -> Option<Stale> {
    let (of, plus, at_least) = (view.option::<Arc<str>>("of"), view.value("plus"), view.value("at_least"));
    let of = of?;
    let Some(rules) = types.get(&of.value) else {
        if !types.is_declared(&of.value) {
            let near = did_you_mean(&of.value, types.names());
            let fault = Fault::new(&of.span, format!("unknown task type {}{near}", quote(&of.value)));
            view.fault(fault.help(known("known types", types.names())));
        }
        return None;
    };
    let timeout = rules.timeout.value;
    if timeout.is_zero() {
        let message = format!("no threshold outlasts {}, whose timeout has no limit", quote(&of.value));
        view.fault(Fault::new(&of.span, message).help("give the type a `timeout`, or name another type"));
        return None;
    }
    let plus: Duration = plus.value;
    let threshold = timeout.saturating_add(plus).max(at_least.value);
    if threshold <= timeout {
        let message = format!(
            "the threshold ({}) does not outlast the timeout of {} ({})",
            duration::show(threshold),
            quote(&of.value),
            duration::show(timeout)
        );
        let at = view.own("plus").map_or_else(|| view.span.clone(), |entry| entry.span.clone());
        let help =
            "a task that is still running would be taken for stuck; write for example `plus = \"10m\"`";
        view.fault(Fault::new(&at, message).help(help));
    }
    let origin = view.session.origin(&view.span);
    view.session.row(view.path.clone(), duration::show(threshold), &origin);
    Some(Stale { of: rules.name.clone(), after: threshold })
}
