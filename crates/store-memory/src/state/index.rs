//! Which tasks of a queue work for a subject or belong to a scope.
//!
//! Invariant: a task is listed under exactly the subjects and scopes of its record, for as long as the record exists.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_broker::Find;
use poolwright_core::{Scope, Subject, TaskId, TaskRecord};

/// The index of one queue.
#[derive(Debug, Default)]
pub(crate) struct Index {
    subjects: BTreeMap<Subject, BTreeSet<TaskId>>,
    scopes: BTreeMap<Scope, BTreeSet<TaskId>>,
}

impl Index {
    /// Lists a task.
    pub(crate) fn add(&mut self, task: &TaskRecord) {
        for subject in &task.subjects {
            self.subjects.entry(subject.clone()).or_default().insert(task.key.id.clone());
        }
        for scope in &task.scopes {
            self.scopes.entry(scope.clone()).or_default().insert(task.key.id.clone());
        }
    }

    /// Strikes it off.
    pub(crate) fn remove(&mut self, task: &TaskRecord) {
        for subject in &task.subjects {
            strike(&mut self.subjects, subject, &task.key.id);
        }
        for scope in &task.scopes {
            strike(&mut self.scopes, scope, &task.key.id);
        }
    }

    /// The tasks listed under it.
    pub(crate) fn find(&self, what: &Find) -> impl Iterator<Item = &TaskId> {
        let found = match what {
            Find::Subject(subject) => self.subjects.get(subject),
            Find::Scope(scope) => self.scopes.get(scope),
        };
        found.into_iter().flatten()
    }
}

fn strike<K: Ord>(lists: &mut BTreeMap<K, BTreeSet<TaskId>>, key: &K, id: &TaskId) {
    if let Some(list) = lists.get_mut(key) {
        list.remove(id);
        if list.is_empty() {
            lists.remove(key);
        }
    }
}
