//! Task types: rules that fit together, and a queue for each.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use poolwright_core::{Class, Policy, RetryPolicy, TypeName};

use super::homes::declared;
use super::payload;
use super::pools::all_known;
use super::retry::Policies;
use crate::duration;
use crate::file::node::{Entry, Node, Size};
use crate::file::{Got, View};
use crate::problem::Fault;
use crate::resolve::{resolve, sources};
use crate::rules::{self, Keys, Reach, TaskRules};
use crate::suggest::{self, did_you_mean, quote};
use crate::topology::Queue;
use crate::words::{CancelBy, OnExhausted};

/// The types that could be built, and the names of all.
pub(super) struct Types {
    built: rules::Types,
    declared: HashSet<Arc<str>>,
}

impl Types {
    pub(super) fn get(&self, name: &str) -> Option<&Arc<TaskRules>> {
        self.built.get(name)
    }

    pub(super) fn is_declared(&self, name: &str) -> bool {
        self.declared.contains(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.built.list.iter().map(|rules| rules.name.as_str())
    }

    pub(super) fn into_built(self) -> rules::Types {
        self.built
    }
}

pub(super) fn read(
    root: &View<'_>,
    queues: &[Arc<Queue>],
    policies: &Policies,
    payload: &Got<Size>,
) -> Types {
    let defaults = root.table("task_defaults");
    default_policies_exist(&defaults, policies);
    let declared = root.entries("tasks").iter().map(|entry| entry.name.clone()).collect();
    let mut types = Types { built: rules::Types::default(), declared };
    for (entry, view) in root.children("tasks") {
        let name = TypeName::new(&*entry.name).expect("the walk keeps only names that are type names");
        let view = view.over(&defaults);
        let case = Case { root, view: &view, defaults: &defaults, policies, name: &entry.name };
        if let Some(rules) = case.rules(name, queues, payload) {
            types.built.push(rules);
        }
    }
    types
}

/// The defaults' own references, which no type might ever use.
fn default_policies_exist(defaults: &View<'_>, policies: &Policies) {
    let single = defaults.own("retry").into_iter();
    for entry in single.chain(defaults.entries("on_error")) {
        if let Node::Text(name) = &entry.node {
            policies.get(defaults, name, &entry.span);
        }
    }
}

/// One type, while it is being read.
struct Case<'v> {
    root: &'v View<'v>,
    view: &'v View<'v>,
    defaults: &'v View<'v>,
    policies: &'v Policies,
    name: &'v str,
}

impl Case<'_> {
    fn rules(&self, name: TypeName, queues: &[Arc<Queue>], payload: &Got<Size>) -> Option<TaskRules> {
        let view = self.view;
        let queue = self.queue(queues);
        let label: Option<Got<Arc<str>>> = view.option("label");
        let description: Option<Got<Arc<str>>> = view.option("description");
        let setting: Option<Got<Arc<str>>> = view.option("timeout_setting");
        let variable: Option<Got<Arc<str>>> = view.option("timeout_env");
        let from =
            sources(setting.as_ref().map(|got| &*got.value), variable.map(|got| got.value.to_string()));
        let timeout = resolve(view.session, view.value("timeout"), from);
        let (deadline, delay) = (view.option::<Duration>("deadline"), view.value::<Duration>("delay"));
        if let Some(deadline) = deadline.as_ref().filter(|deadline| deadline.value <= delay.value) {
            self.deadline_after_delay(deadline, &delay);
        }
        let unique_for: Duration = view.value("unique_for").value;
        let keys = payload::read(view, self.defaults);
        let on_exhausted = view.value("on_exhausted").value;
        self.exhausted_subject(on_exhausted, &keys);
        let protected = view.value("protected").value;
        let cancel = self.reach(protected, &keys);
        let own_payload: Option<Got<Size>> = view.option("payload");
        if own_payload.is_none() {
            view.session.row(
                format!("{}.payload", view.path),
                crate::size::show(payload.value.0),
                &payload.origin,
            );
        }
        let policy = self.policy();
        Some(TaskRules {
            label: label.map_or_else(|| name.as_str().into(), |got| got.value),
            description: description.map(|got| got.value),
            name,
            queue: queue?,
            policy: policy?,
            max_retry: view.value("max_retry").value,
            timeout,
            deadline: deadline.map(|got| got.value),
            delay: delay.value,
            retention: view.value("retention").value,
            unique_for: (!unique_for.is_zero()).then_some(unique_for),
            on_conflict: view.value("on_conflict").value,
            on_exhausted,
            protected,
            cancel,
            payload_bytes_max: own_payload.map_or(payload.value, |got| got.value).0,
            keys,
        })
    }

    fn queue(&self, queues: &[Arc<Queue>]) -> Option<Arc<Queue>> {
        let name: Got<Arc<str>> = self.view.option("queue")?;
        let found = queues.iter().find(|queue| queue.name == *name.value);
        // A queue without a home, or one of a pool that was refused, has its own problem.
        if found.is_none() && all_known(self.root) && !declared(self.root, &name.value) {
            let stored = queues.iter().find(|queue| queue.stored == *name.value);
            let known = || queues.iter().map(|queue| queue.name.as_str());
            let near = match stored {
                Some(queue) => format!("; queue `{}` is stored under that name", queue.name),
                None => did_you_mean(&name.value, known()),
            };
            let message = format!("unknown queue {}{near}", quote(&name.value));
            let help = match stored {
                Some(queue) => format!("write `queue = \"{}\"`", queue.name),
                None => suggest::known("queues that a pool owns", known()),
            };
            self.view.fault(Fault::new(&name.span, message).help(help));
        }
        found.cloned()
    }

    fn policy(&self) -> Option<Policy> {
        let retry: Got<Arc<str>> = self.view.value("retry");
        let retry = self.policies.get(self.view, &retry.value, &retry.span);
        let on_error = self.on_error();
        Some(Policy {
            retry: retry?,
            on_error,
            on_cancel: self.view.value("on_cancel").value,
            max_crashes: self.view.value("max_crashes").value,
            max_deferrals: self.view.value("max_deferrals").value,
        })
    }

    /// The defaults' policies by class, with the type's own over them.
    fn on_error(&self) -> BTreeMap<Class, RetryPolicy> {
        let (mut policies, mut shown) = (BTreeMap::new(), BTreeMap::new());
        for entry in self.defaults.entries("on_error").iter().chain(self.view.entries("on_error")) {
            let (Ok(class), Node::Text(name)) = (entry.name.parse::<Class>(), &entry.node) else { continue };
            if let Some(policy) = self.policies.get(self.view, name, &entry.span) {
                policies.insert(class, policy);
                shown.insert(class, name);
            }
        }
        if let Some(entry) = self.view.own("on_error").or_else(|| self.defaults.own("on_error")) {
            let shown: Vec<String> = shown.iter().map(|(class, name)| format!("{class} = {name}")).collect();
            self.view.row("on_error", format!("{{ {} }}", shown.join(", ")), Some(&entry.span));
        }
        policies
    }

    fn reach(&self, protected: bool, keys: &Keys) -> Reach {
        let cancel: Got<Vec<CancelBy>> = self.view.value("cancel");
        let by = |word| cancel.value.contains(&word);
        let (subject, scope) = (by(CancelBy::Subject), by(CancelBy::Scope));
        let Some(own) = self.view.own("cancel") else {
            return Reach { subject: subject && !protected, scope: scope && !protected };
        };
        if protected && (subject || scope) {
            let message = format!("{} is protected, so no cancel reaches it", quote(self.name));
            let mut fault = Fault::new(&own.span, message).help("remove `cancel`, or `protected`");
            if let Some(protected) = self.view.own("protected") {
                fault = fault.related(&protected.span, "protected here");
            }
            self.view.fault(fault);
        }
        self.reached(own, subject && keys.subjects.is_empty(), "subject");
        self.reached(own, scope && keys.scopes.is_empty(), "scopes");
        Reach { subject: subject && !protected, scope: scope && !protected }
    }

    /// A cancel that could never find the type, because nothing says where its payload names the thing.
    fn reached(&self, own: &Entry, missing: bool, key: &str) {
        if missing {
            let message = format!("no such cancel can reach {}, which has no `{key}`", quote(self.name));
            let help = format!("say where the payload names it: `{key} = {{ KIND = \"FIELD\" }}`");
            self.view.fault(Fault::new(&own.span, message).help(help));
        }
    }

    fn exhausted_subject(&self, on_exhausted: OnExhausted, keys: &Keys) {
        let own = self.view.own("on_exhausted").filter(|_| on_exhausted != OnExhausted::Nothing);
        if let Some(own) = own.filter(|_| keys.subjects.is_empty()) {
            let message = format!("`{on_exhausted}` needs a subject, and {} has none", quote(self.name));
            let help = "say where the payload names it: `subject = { KIND = \"FIELD\" }`";
            self.view.fault(Fault::new(&own.span, message).help(help));
        }
    }

    fn deadline_after_delay(&self, deadline: &Got<Duration>, delay: &Got<Duration>) {
        let message = format!(
            "the deadline ({}) passes before the first try, which is delayed by {}",
            duration::show(deadline.value),
            duration::show(delay.value)
        );
        let fault = Fault::new(&deadline.span, message).help("both count from the enqueue; raise `deadline`");
        self.view.fault(if self.view.own("delay").is_some() {
            fault.related(&delay.span, "the delay")
        } else {
            fault
        });
    }
}
