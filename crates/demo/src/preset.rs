//! The file of queues that the demo runs on: the shipped preset with shorter times, or a file of the user's as it is.

use std::path::Path;
use std::time::Duration;

use poolwright::core::SettingsSource;
use poolwright::registry::{Loader, Topology};
use toml::{Table, Value};

use crate::Error;
use crate::handlers::handled_types;

const PRESET: &str = include_str!("../../../queues.toml");

/// What the demo changes in the preset: its work takes milliseconds, and someone watches. In production the wiki waits
/// half a minute so that many documents share one drawing, and a failed task waits longer from try to try.
const CHANGES: [(&[&str], &str); 4] = [
    // After a kill, the tasks of the dead process are taken over that much later.
    (&["runtime", "lease"], "'3s'"),
    (&["task_defaults", "retry"], "'demo'"),
    (&["task_defaults", "on_error", "lock_conflict"], "'demo'"),
    // A person who kills the demo again and again is no sign that a task is poison.
    (&["task_defaults", "max_crashes"], "10"),
];

/// The policy `demo`: a run with a task that fails at every try ends all the same, in a few seconds.
const RETRY: &str = "kind = 'steps'\ndelays = ['100ms', '400ms', '1s']";

/// How long a request for `wiki:ingest` waits for others (30 s in the preset). The end of a run does not wait for it.
pub(crate) const INGEST_DELAY: Duration = Duration::from_secs(3);
/// How long a request for `wiki:finalize` waits for others (20 s in the preset).
pub(crate) const FINALIZE_DELAY: Duration = Duration::from_millis(200);

/// The topology, with settings and environment over it.
///
/// # Errors
/// [`Error::Orchestrator`] with every mistake of the file.
pub(crate) fn topology(config: Option<&Path>, settings: &dyn SettingsSource) -> Result<Topology, Error> {
    let loader = Loader::from_process().settings(settings);
    let loaded = match config {
        Some(path) => loader.load(path),
        None => loader.parse("queues.toml (built in)", &shortened()),
    };
    let (topology, warnings) = loaded.map_err(poolwright::Error::from)?;
    for warning in &warnings {
        tracing::warn!(file = topology.name(), "{warning}");
    }
    Ok(topology)
}

/// The text of the preset with [`CHANGES`], and without the types that nothing here runs.
fn shortened() -> String {
    let mut preset: Table = PRESET.parse().expect("the shipped preset is TOML");
    for (path, value) in CHANGES {
        let (last, above) = path.split_last().expect("a path has a last part");
        let table = above.iter().fold(&mut preset, |table, name| {
            table[*name].as_table_mut().expect("the preset has a table where the demo changes one")
        });
        let value = format!("it = {value}").parse::<Table>().expect("our own values are TOML")["it"].clone();
        table.insert((*last).to_owned(), value);
    }
    let retry = RETRY.parse::<Table>().expect("our own policy is TOML");
    let policies = preset["retry"].as_table_mut().expect("the preset has policies");
    policies.insert("demo".to_owned(), Value::Table(retry));
    let tasks = preset["tasks"].as_table_mut().expect("the preset has types");
    tasks.retain(|name, _| handled_types().contains(&name));
    preset.to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use poolwright::core::RetryPolicy;

    use super::*;

    fn built_in() -> Topology {
        topology(None, &BTreeMap::<String, String>::new()).expect("the preset is sound")
    }

    #[test]
    fn the_preset_keeps_its_pools_and_queues_and_its_wiki_rules() {
        let (whole, _) = Topology::parse("queues.toml", PRESET).expect("the preset is sound");
        let topology = built_in();
        let names = |topology: &Topology| -> Vec<_> {
            topology.pools().iter().map(|pool| (pool.name.clone(), *pool.workers)).collect()
        };
        assert_eq!(names(&topology), names(&whole));
        assert_eq!(topology.queues().len(), whole.queues().len());
        let types: Vec<_> = topology.types().iter().map(|rules| rules.name.to_string()).collect();
        assert_eq!(types.len(), handled_types().len(), "{types:?}");
        let finalize = topology.require_type("wiki:finalize").expect("declared");
        assert!(finalize.id_template().is_some());
    }

    #[test]
    fn retries_and_leases_are_short() {
        let topology = built_in();
        let rules = topology.require_type("document:process").expect("declared");
        assert_eq!(topology.runtime().lease, Duration::from_secs(3));
        assert_eq!((rules.max_retry, rules.policy.max_crashes), (3, 10));
        assert!(matches!(&rules.policy.retry, RetryPolicy::Steps { delays } if delays.len() == 3));
    }
}
