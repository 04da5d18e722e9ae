//! The rules of a task type, and what they find in a payload.
//!
//! Invariant: reading a payload is pure and never fails for what it does not hold; only an id may be refused.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use poolwright_core::{OnConflict, Policy, Scope, Subject, TaskId, Tenant, TypeName};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::path::Path;
use crate::resolve::Resolved;
use crate::template::Template;
use crate::topology::Queue;
use crate::words::OnExhausted;

/// Everything the file says about a task type.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TaskRules {
    /// The type.
    pub name: TypeName,
    /// Its name for people; the type when the file has none.
    pub label: Arc<str>,
    /// What it does, for people.
    pub description: Option<Arc<str>>,
    /// Where its tasks wait.
    pub queue: Arc<Queue>,
    /// What the judge of an attempt asks: retries by error class, crashes, deferrals, cancels.
    pub policy: Policy,
    /// How often a task is tried again after its first failure. Default 25.
    pub max_retry: u32,
    /// How long one attempt may take; zero: no limit. Default 30 minutes.
    pub timeout: Resolved<Duration>,
    /// How long after its enqueue a task is still tried; none: forever, the default.
    pub deadline: Option<Duration>,
    /// How long after its enqueue a task is tried first. Default: at once.
    pub delay: Duration,
    /// How long a task is kept after success; zero, the default: not at all.
    pub retention: Duration,
    /// How long an equal task is refused at most; none, the default: no lock.
    pub unique_for: Option<Duration>,
    /// What happens when a task with the same id exists. Default: refused.
    pub on_conflict: OnConflict,
    /// What the application's records learn when a task has failed for good. Default: nothing.
    pub on_exhausted: OnExhausted,
    /// No cancel by subject or scope reaches it. Default: false.
    pub protected: bool,
    /// Which cancels reach it; neither when it is protected.
    pub cancel: Reach,
    /// Its largest payload in bytes. Default: that of `[limits]`, 1 MiB.
    pub payload_bytes_max: usize,
    pub(crate) keys: Keys,
}

/// By what a cancel reaches a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Reach {
    /// By one of its subjects (one document).
    pub subject: bool,
    /// By one of its scopes (a knowledge base).
    pub scope: bool,
}

/// Where in a payload things stand.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Keys {
    pub(crate) tenant: Option<Path>,
    pub(crate) subjects: Vec<(Arc<str>, Path)>,
    pub(crate) scopes: Vec<(Arc<str>, Path)>,
    pub(crate) shows: Vec<Path>,
    pub(crate) id: Option<Template>,
}

impl TaskRules {
    /// Whether any rule looks into the payload. Without one, nobody needs to parse it.
    #[must_use]
    pub fn reads_payload(&self) -> bool {
        let Keys { tenant, subjects, scopes, shows, id } = &self.keys;
        tenant.is_some() || !subjects.is_empty() || !scopes.is_empty() || !shows.is_empty() || id.is_some()
    }

    /// What the payload works for: each thing once, in the order of the file.
    #[must_use]
    pub fn subjects(&self, payload: &Value) -> Vec<Subject> {
        found(&self.keys.subjects, payload, Subject::new)
    }

    /// What the payload belongs to, largest first: each thing once, in the order of the file.
    #[must_use]
    pub fn scopes(&self, payload: &Value) -> Vec<Scope> {
        found(&self.keys.scopes, payload, Scope::new)
    }

    /// Whom the payload is for. An empty text and zero are nobody.
    #[must_use]
    pub fn tenant(&self, payload: &Value) -> Option<Tenant> {
        let ids = self.keys.tenant.as_ref()?.ids(payload);
        ids.into_iter().find(|id| id.bytes().any(|b| b != b'0')).map(Tenant)
    }

    /// What an operator may see of the payload: the fields under `shows`, absent and empty ones left out.
    ///
    /// Texts are cut to 255 bytes; lists and objects are never shown.
    #[must_use]
    pub fn shown(&self, payload: &Value) -> Map<String, Value> {
        let mut shown = Map::new();
        for path in &self.keys.shows {
            if let Some(value) = path.shown(payload) {
                shown.entry(path.shown_as()).or_insert(value);
            }
        }
        // A tenant that is nobody is not shown as one.
        if let Some(path) = self.keys.tenant.as_ref().filter(|_| self.tenant(payload).is_none()) {
            shown.remove(&path.shown_as());
        }
        shown
    }

    /// The names under which [`TaskRules::shown`] puts fields, in the order of the file.
    pub fn shown_names(&self) -> impl Iterator<Item = String> {
        self.keys.shows.iter().map(Path::shown_as)
    }

    /// The id template, when tasks of this type get their ids from their payloads.
    #[must_use]
    pub fn id_template(&self) -> Option<&str> {
        self.keys.id.as_ref().map(Template::as_str)
    }

    /// The id that the template gives this payload; none when the type has no template.
    ///
    /// # Errors
    /// [`Error::MissingField`] when the payload lacks a field of the template, or holds there neither a text that is
    /// not blank nor a whole number; [`Error::InvalidId`] when the result is too long or holds control characters.
    pub fn id(&self, payload: &Value) -> Result<Option<TaskId>, Error> {
        let Some(template) = &self.keys.id else { return Ok(None) };
        let id = template.render(payload).map_err(|field| Error::MissingField {
            task_type: self.name.clone(),
            field: field.to_owned(),
            template: template.to_string(),
        })?;
        TaskId::new(id).map(Some).map_err(|source| Error::InvalidId { task_type: self.name.clone(), source })
    }
}

fn found<T>(keys: &[(Arc<str>, Path)], payload: &Value, make: impl Fn(Arc<str>, Arc<str>) -> T) -> Vec<T> {
    let mut seen: HashSet<(&Arc<str>, Arc<str>)> = HashSet::new();
    let mut found = Vec::new();
    for (kind, path) in keys {
        for id in path.ids(payload) {
            if seen.insert((kind, id.clone())) {
                found.push(make(kind.clone(), id));
            }
        }
    }
    found
}

/// The types of a topology: in the order of the file, and by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Types {
    pub(crate) list: Vec<Arc<TaskRules>>,
    pub(crate) by_name: BTreeMap<TypeName, Arc<TaskRules>>,
}

impl Types {
    pub(crate) fn push(&mut self, rules: TaskRules) {
        let rules = Arc::new(rules);
        self.by_name.insert(rules.name.clone(), rules.clone());
        self.list.push(rules);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<TaskRules>> {
        self.by_name.get(name)
    }
}
