//! The shipped preset loads, and says what the system it models says.

#![allow(clippy::unwrap_used, reason = "what a test cannot unwrap has failed it")]

use std::time::Duration;

use poolwright_core::{Class, OnCancel, OnConflict, RetryPolicy};
use poolwright_registry::{Borrow, OnExhausted, Origin, Producers, Topology, report};

fn preset() -> Topology {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../queues.toml");
    let text = std::fs::read_to_string(path).unwrap();
    match Topology::parse("queues.toml", &text) {
        Ok((topology, warnings)) => {
            assert!(warnings.is_empty(), "{warnings:?}");
            topology
        }
        Err(error) => panic!("{error}"),
    }
}

const MIN: u64 = 60;
const HOUR: u64 = 3_600;

#[test]
fn it_has_six_pools_eleven_queues_and_twenty_one_types() {
    let topology = preset();
    let pools: Vec<_> = topology.pools().iter().map(|pool| (pool.name.as_str(), *pool.workers)).collect();
    assert_eq!(
        pools,
        [("core", 8), ("postprocess", 2), ("enrichment", 12), ("maintenance", 4), ("shared", 6), ("wiki", 8)]
    );
    assert_eq!(topology.queues().len(), 11);
    assert_eq!(topology.types().len(), 21);
}

#[test]
fn its_queues_have_the_homes_weights_and_borrowers_of_the_table() {
    let topology = preset();
    let shared = topology.pool("shared").unwrap();
    assert!(shared.is_elastic() && shared.borrow == Borrow::Always);
    let rows: Vec<_> = topology
        .queues()
        .iter()
        .map(|queue| {
            let lent = shared
                .borrows
                .iter()
                .find(|lent| lent.queue.name == queue.name)
                .map_or(0, |lent| lent.weight);
            assert_eq!(queue.borrowers.len(), usize::from(lent > 0));
            (queue.name.as_str(), queue.stored.as_str(), queue.home.as_str(), queue.weight, lent)
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("default", "default", "core", 1, 3),
            ("chat_attachment", "chat_attachment", "core", 3, 3),
            ("postprocess", "postprocess", "postprocess", 1, 0),
            ("summary", "summary", "enrichment", 2, 2),
            ("multimodal", "multimodal", "enrichment", 1, 1),
            ("graph", "graph", "enrichment", 1, 1),
            ("question", "question", "enrichment", 1, 1),
            ("memory", "memory", "enrichment", 1, 1),
            ("sync", "sync", "maintenance", 2, 0),
            ("maintenance", "low", "maintenance", 1, 0),
            ("wiki", "wiki", "wiki", 1, 0),
        ]
    );
    let low = topology.queue("low").unwrap();
    assert_eq!((low.name.as_str(), low.producers), ("maintenance", Producers::Any));
    assert_eq!((low.archive_max, low.archive_for), (10_000, Duration::from_secs(90 * 24 * HOUR)));
}

#[test]
fn its_types_have_the_queues_retries_timeouts_and_delays_of_the_table() {
    let topology = preset();
    let rows: Vec<_> = topology
        .types()
        .iter()
        .map(|rules| {
            let (timeout, delay) = (rules.timeout.as_secs(), rules.delay.as_secs());
            (rules.name.as_str(), rules.queue.stored.as_str(), rules.max_retry, timeout, delay)
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("document:process", "default", 3, 2 * HOUR, 0),
            ("manual:process", "default", 3, 30 * MIN, 0),
            ("temporary_document:process", "chat_attachment", 2, 10 * MIN, 0),
            ("knowledge:post_process", "postprocess", 3, 30 * MIN, 0),
            ("summary:generation", "summary", 3, 30 * MIN, 0),
            ("datatable:summary", "summary", 3, 30 * MIN, 0),
            ("knowledge:auto_tag", "summary", 2, 2 * MIN, 0),
            ("image:multimodal", "multimodal", 3, 30 * MIN, 0),
            ("chunk:extract", "graph", 3, 30 * MIN, 0),
            ("question:generation", "question", 3, 30 * MIN, 0),
            ("memory:extract", "memory", 2, 30 * MIN, 90),
            ("datasource:sync", "sync", 5, 2 * HOUR, 0),
            ("faq:import", "low", 5, 2 * HOUR, 0),
            ("kb:clone", "low", 3, 2 * HOUR, 0),
            ("knowledge:move", "low", 3, 2 * HOUR, 0),
            ("kb:delete", "low", 3, 2 * HOUR, 0),
            ("index:delete", "low", 10, HOUR, 0),
            ("knowledge:list_delete", "low", 3, 2 * HOUR, 0),
            ("knowledge:list_reparse", "low", 3, HOUR, 0),
            ("wiki:ingest", "wiki", 10, HOUR, 30),
            ("wiki:finalize", "wiki", 10, 30 * MIN, 20),
        ]
    );
}

#[test]
fn the_seven_types_of_a_documents_pipeline_are_reached_by_its_cancel_and_the_deletes_by_none() {
    let topology = preset();
    let by_subject: Vec<_> = topology
        .types()
        .iter()
        .filter(|rules| rules.cancel.subject)
        .map(|rules| rules.name.as_str())
        .collect();
    assert_eq!(
        by_subject,
        [
            "document:process",
            "manual:process",
            "knowledge:post_process",
            "summary:generation",
            "image:multimodal",
            "chunk:extract",
            "question:generation",
        ]
    );
    let beyond_scope: Vec<_> = topology
        .types()
        .iter()
        .filter(|rules| !rules.cancel.scope)
        .map(|rules| rules.name.as_str())
        .collect();
    assert_eq!(beyond_scope, ["kb:delete", "index:delete"]);
    assert!(topology.task_type("kb:delete").unwrap().protected);
}

#[test]
fn failures_that_are_final_mark_the_documents_of_four_types() {
    let topology = preset();
    let marked: Vec<_> = topology
        .types()
        .iter()
        .filter(|rules| rules.on_exhausted != OnExhausted::Nothing)
        .map(|rules| (rules.name.as_str(), rules.on_exhausted))
        .collect();
    assert_eq!(
        marked,
        [
            ("document:process", OnExhausted::FailSubject),
            ("manual:process", OnExhausted::FailSubject),
            ("knowledge:post_process", OnExhausted::FailSubject),
            ("knowledge:list_delete", OnExhausted::FailDeletingSubjects),
        ]
    );
}

#[test]
fn every_type_retries_as_asynq_and_waits_15_seconds_for_a_lock() {
    let fixed = RetryPolicy::Fixed { delay: Duration::from_secs(15) };
    for rules in preset().types() {
        assert_eq!(rules.policy.retry, RetryPolicy::Asynq);
        assert_eq!(rules.policy.on_error.get(&Class::LockConflict), Some(&fixed));
        assert_eq!((rules.policy.max_crashes, rules.policy.max_deferrals), (3, 100));
        assert_eq!(rules.policy.on_cancel, OnCancel::Discard);
        assert_eq!(rules.payload_bytes_max, poolwright_core::task::PAYLOAD_BYTES_MAX);
        assert!(rules.unique_for.is_none() && rules.deadline.is_none() && rules.retention.is_zero());
    }
}

#[test]
fn its_retry_policies_are_those_of_the_systems_they_name() {
    let topology = preset();
    let policies = topology.retry_policies();
    let secs = Duration::from_secs;
    let exponential = RetryPolicy::Exponential { base: secs(10), factor: 2.0, jitter: 0.15, max: secs(HOUR) };
    assert_eq!(policies.get("exponential"), Some(&exponential));
    assert_eq!(policies.get("steps"), Some(&RetryPolicy::Steps { delays: vec![secs(30), secs(120)] }));
    assert_eq!(policies.get("linear"), Some(&RetryPolicy::Linear { step: secs(5), max: secs(30) }));
    assert_eq!(policies.len(), 5);
}

#[test]
fn a_finalize_is_one_at_a_time_and_runs_again() {
    let topology = preset();
    let rules = topology.task_type("wiki:finalize").unwrap();
    assert_eq!(rules.on_conflict, OnConflict::RunAgain);
    let id = rules.id(&serde_json::json!({ "tenant_id": 1, "knowledge_base_id": "kb_7" })).unwrap();
    assert_eq!(id.unwrap(), "wiki-finalize-kb_7");
}

#[test]
fn housekeeping_waits_two_hours_and_ten_minutes() {
    let topology = preset();
    let housekeeping = topology.housekeeping();
    let stale = housekeeping.stale.as_ref().unwrap();
    assert_eq!((stale.of.as_str(), stale.after), ("document:process", Duration::from_secs(130 * MIN)));
    assert!(*housekeeping.enabled);
    assert_eq!(housekeeping.schedule.as_str(), "0 */5 * * * *");
}

#[test]
fn its_runtime_section_says_what_holds_without_it() {
    let bare = Topology::simple([("default", 1)]).build().unwrap();
    assert_eq!(preset().runtime(), bare.runtime());
    assert_eq!(bare.runtime().lease, Duration::from_secs(10));
    assert_eq!(preset().payload_bytes_max(), bare.payload_bytes_max());
}

#[test]
fn the_report_says_where_each_value_stands() {
    let topology = preset();
    let rows = report(&topology);
    let row = |path: &str| {
        let row = rows.iter().find(|row| row.path == path).unwrap_or_else(|| panic!("no row {path}"));
        (row.value.as_str(), &row.origin)
    };
    assert_eq!(row("pools.core.workers").0, "8");
    assert!(matches!(row("pools.core.workers").1, Origin::File { .. }));
    assert_eq!(row("pools.core.queues").0, "{ default = 1, chat_attachment = 3 }");
    assert_eq!(row("pools.core.borrow"), ("always", &Origin::Default));
    assert_eq!(row("tasks.\"kb:clone\".timeout").0, "2h");
    // A value that a type takes from the defaults stands where the defaults have it.
    assert_eq!(row("tasks.\"kb:clone\".retry").1, row("tasks.\"wiki:ingest\".retry").1);
    assert_eq!(row("housekeeping.stale_after").0, "2h10m");
    assert_eq!(
        row("tasks.\"kb:clone\".scopes").0,
        "{ knowledge_base = [knowledge_base_id, kb_id, source_id, target_id], data_source = [data_source_id] }"
    );
    let mut paths: Vec<_> = rows.iter().map(|row| &row.path).collect();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), rows.len(), "a path has two rows");
}
