//! One queue: which keys it may have, who is where, and what hangs on its tasks.

use std::collections::{BTreeMap, BTreeSet};

use super::tasks::Task;
use super::{Entry, Held, Keyspace, text};

/// Where ids are, each in one of them.
const PLACES: [&str; 6] = ["pending", "active", "scheduled", "retry", "archived", "completed"];

/// Whether a key goes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lasts {
    Stays,
    Expires,
}

/// One queue of a keyspace.
pub(super) struct Queue<'k> {
    name: &'k str,
    keys: BTreeMap<&'k str, &'k Entry>,
    tasks: BTreeMap<String, Task<'k>>,
    faults: Vec<String>,
}

impl<'k> Queue<'k> {
    pub(super) fn new(keyspace: &'k Keyspace, name: &'k str) -> Self {
        let keys = keyspace.of_queue(name);
        let mut tasks = BTreeMap::new();
        for (key, entry) in &keys {
            if let (Some(id), Held::Hash(fields)) = (key.strip_prefix("t:"), &entry.held) {
                tasks.insert(id.to_owned(), Task::new(fields));
            }
        }
        Self { name, keys, tasks, faults: Vec::new() }
    }

    /// Everything that breaks a rule.
    pub(super) fn faults(mut self, registered: &BTreeSet<String>) -> Vec<String> {
        self.check_keys();
        self.check_places();
        self.check_leases();
        for (id, task) in &self.tasks {
            let faults = task.faults(|place| self.score(place, id.as_bytes()));
            self.faults.extend(faults.into_iter().map(|fault| format!("task {id} {fault}")));
        }
        self.check_locks();
        self.check_index();
        self.check_quarantine();
        self.check_counts();
        self.check_groups();
        if !self.tasks.is_empty() && !registered.contains(self.name) {
            self.fault("has tasks and is not registered");
        }
        self.faults.into_iter().map(|fault| format!("queue {}: {fault}", self.name)).collect()
    }

    fn fault(&mut self, fault: impl Into<String>) {
        self.faults.push(fault.into());
    }

    fn held(&self, key: &str) -> Option<&'k Held> {
        self.keys.get(key).map(|entry| &entry.held)
    }

    /// The members of a list or a set, twice if they are there twice.
    fn members(&self, key: &str) -> Vec<&'k [u8]> {
        match self.held(key) {
            Some(Held::List(members)) => members.iter().map(Vec::as_slice).collect(),
            Some(Held::Scored(members)) => members.keys().map(Vec::as_slice).collect(),
            Some(Held::Set(members)) => members.iter().map(Vec::as_slice).collect(),
            _ => Vec::new(),
        }
    }

    fn score(&self, key: &str, member: &[u8]) -> Option<i64> {
        match self.held(key) {
            Some(Held::Scored(members)) => members.get(member).copied().flatten(),
            _ => None,
        }
    }

    fn number(&self, key: &str) -> Option<i64> {
        match self.held(key) {
            Some(Held::Text(bytes)) => text(bytes).parse().ok(),
            _ => None,
        }
    }

    fn keys_of_kind(&self, kind: &str) -> Vec<(&'k str, &'k Held)> {
        let all = self.keys.iter();
        all.filter_map(|(key, entry)| Some((key.strip_prefix(kind)?, &entry.held))).collect()
    }

    fn check_keys(&mut self) {
        for (key, entry) in self.keys.clone() {
            let Some((kind, lasts)) = known(key) else {
                self.fault(format!("nobody knows the key {key}"));
                continue;
            };
            if kind != kind_of(&entry.held) {
                self.fault(format!("{key} is a {}, not a {kind}", kind_of(&entry.held)));
            }
            if entry.expires != (lasts == Lasts::Expires) {
                let says = if entry.expires { "goes by itself" } else { "does not go by itself" };
                self.fault(format!("{key} {says}"));
            }
            if let Held::Scored(members) = &entry.held
                && let Some((member, _)) = members.iter().find(|(_, score)| score.is_none())
            {
                self.fault(format!("{key} has a score that is no whole second, of {}", text(member)));
            }
        }
    }

    /// Each id is in the one place that its state names, and each that is somewhere is a task.
    fn check_places(&mut self) {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let groups = self.keys_of_kind("g:").into_iter().map(|(group, _)| format!("g:{group}"));
        for place in PLACES.iter().map(ToString::to_string).chain(groups) {
            for id in self.members(&place) {
                found.entry(text(id)).or_default().push(place.clone());
            }
        }
        for (id, places) in &found {
            if !self.tasks.contains_key(id) {
                self.fault(format!("{id} is in {places:?} and has no hash"));
            }
        }
        let wanted: Vec<_> = self.tasks.iter().map(|(id, task)| (id.clone(), task.place())).collect();
        for (id, place) in wanted {
            let places = found.remove(&id).unwrap_or_default();
            let fits = match &place {
                // A set that is being put together is below its group.
                Some(group) if group.starts_with("g:") => {
                    places.len() == 1 && places[0].starts_with(group.as_str())
                }
                Some(place) => places == [place.clone()],
                None => places.is_empty(),
            };
            if !fits {
                self.fault(format!("task {id} should be in {place:?} and is in {places:?}"));
            }
        }
    }

    /// What runs has a lease, and what has a lease runs.
    fn check_leases(&mut self) {
        let running: BTreeSet<&[u8]> = self.members("active").into_iter().collect();
        let leased: BTreeSet<&[u8]> = self.members("lease").into_iter().collect();
        for id in running.difference(&leased) {
            self.fault(format!("{} runs without a lease", text(id)));
        }
        for id in leased.difference(&running) {
            self.fault(format!("{} has a lease and does not run", text(id)));
        }
        let claims = self.number("claims").unwrap_or(0);
        let places = self.tasks.iter().filter_map(|(id, task)| Some((id.clone(), task.claimed_as()?)));
        for (id, place) in places.collect::<Vec<_>>() {
            if place > claims {
                self.fault(format!("{id} was claimed as number {place} of {claims}"));
            }
        }
    }

    /// A lock is held by a task that lives and knows it.
    fn check_locks(&mut self) {
        for (lock, held) in self.keys_of_kind("unique:") {
            let Held::Text(id) = held else { continue };
            let (id, key) = (text(id), format!("asynq:{{{}}}:unique:{lock}", self.name));
            match self.tasks.get(&id) {
                Some(task) if task.holds(&key) => {}
                Some(_) => self.fault(format!("the lock {lock} names {id}, which does not hold it")),
                None => self.fault(format!("the lock {lock} names {id}, which is no task")),
            }
        }
    }

    /// The index knows exactly what the tasks say of themselves.
    fn check_index(&mut self) {
        let mut said = BTreeSet::new();
        for (id, task) in &self.tasks {
            said.extend(task.entries().into_iter().map(|entry| (entry, id.clone())));
        }
        let mut indexed = BTreeSet::new();
        for kind in ["subject:", "scope:"] {
            for (rest, _) in self.keys_of_kind(kind) {
                let entry = format!("{kind}{rest}");
                indexed.extend(self.members(&entry).into_iter().map(|member| (entry.clone(), id_of(member))));
            }
        }
        for (entry, id) in said.difference(&indexed) {
            self.fault(format!("{id} is missing in {entry}"));
        }
        for (entry, id) in indexed.difference(&said) {
            // What cannot be read is left until somebody meets it.
            if self.tasks.get(id).is_none_or(Task::is_readable) {
                self.fault(format!("{entry} names {id}, which does not say so"));
            }
        }
    }

    fn check_quarantine(&mut self) {
        let listed: BTreeSet<String> = self.members("quarantined").into_iter().map(text).collect();
        let kept = self.keys_of_kind("quarantine:");
        let kept: BTreeSet<String> = kept.into_iter().map(|(id, _)| id.to_owned()).collect();
        for id in listed.symmetric_difference(&kept) {
            self.fault(format!("{id} is set aside by half"));
        }
    }

    fn check_counts(&mut self) {
        for (total, days) in [("processed", "processed:"), ("failed", "failed:")] {
            let days = self.keys_of_kind(days).into_iter();
            let days: i64 = days.filter_map(|(day, _)| self.number(&format!("{total}:{day}"))).sum();
            let all = self.number(total).unwrap_or(0);
            if days > all {
                self.fault(format!("the days have {days} {total}, and there were {all}"));
            }
        }
        let [processed, failed] = ["processed", "failed"].map(|key| self.number(key).unwrap_or(0));
        if failed > processed {
            self.fault(format!("{failed} of {processed} have failed"));
        }
        if self.keys.contains_key("paused_because") && !self.keys.contains_key("paused") {
            self.fault("there is a reason for a pause, and no pause");
        }
    }

    fn check_groups(&mut self) {
        let registered: BTreeSet<String> = self.members("groups").into_iter().map(text).collect();
        let sets: BTreeSet<String> = self.members("aggregation_sets").into_iter().map(text).collect();
        for (group, _) in self.keys_of_kind("g:") {
            let key = format!("asynq:{{{}}}:g:{group}", self.name);
            if !registered.contains(group) && !sets.contains(&key) {
                self.fault(format!("the group {group} has members and is not registered"));
            }
        }
    }
}

/// The type of a key of this name, and whether it goes by itself; none for a name that nobody knows.
fn known(key: &str) -> Option<(&'static str, Lasts)> {
    use Lasts::{Expires, Stays};
    let (kind, rest) = key.split_once(':').map_or((key, None), |(kind, rest)| (kind, Some(rest)));
    Some(match (kind, rest) {
        ("pending" | "active", None) => ("list", Stays),
        ("lease" | "scheduled" | "retry" | "archived" | "completed", None) => ("sorted set", Stays),
        ("quarantined" | "aggregation_sets", None) => ("sorted set", Stays),
        ("groups", None) => ("set", Stays),
        ("processed" | "failed" | "claims" | "paused" | "paused_because", None) => ("string", Stays),
        ("processed" | "failed", Some(day)) if day.len() == "2026-11-30".len() => ("string", Expires),
        ("unique", Some(_)) => ("string", Expires),
        ("t" | "quarantine", Some(_)) => ("hash", Stays),
        ("subject" | "scope" | "g", Some(_)) => ("sorted set", Stays),
        _ => return None,
    })
}

fn kind_of(held: &Held) -> &str {
    match held {
        Held::Text(_) => "string",
        Held::List(_) => "list",
        Held::Set(_) => "set",
        Held::Scored(_) => "sorted set",
        Held::Hash(_) => "hash",
        Held::Other(kind) => kind,
    }
}

/// The id of a member of the index: a UUID is 16 bytes behind a 1.
fn id_of(member: &[u8]) -> String {
    match member.split_first() {
        Some((1, uuid)) => {
            let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
            let part = |from, to| hex.get(from..to).unwrap_or_default();
            [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
        }
        _ => text(member),
    }
}
