//! What the command line refuses, and what it explains.

use crate::stage::Stage;

#[test]
fn help_and_version_are_results() {
    let stage = Stage::new();
    let help = stage
        .run(&["--help"])
        .ok()
        .prints("dead-letters")
        .prints("Exit status: 0 done, 1 failed, 2 used wrongly.");
    assert_eq!(help.stderr, "");
    stage.run(&["--version"]).ok().prints("poolwright ");
    stage
        .run(&["enqueue", "--help"])
        .ok()
        .prints("--unique-for <DURATION>")
        .prints("[env: POOLWRIGHT_BROKER_URL]");
}

#[test]
fn a_secret_in_a_variable_is_not_shown_by_help() {
    let stage = Stage::new();
    let ran =
        stage.run_in(&[("POOLWRIGHT_BROKER_URL", "redis://me:s3cr3t@host")], &["queues", "--help"]).ok();
    assert!(!ran.stdout.contains("s3cr3t"), "{ran:?}");
}

#[test]
fn nothing_is_explained_on_stderr() {
    Stage::new().run(&[]).misused().says("Usage: poolwright");
}

#[test]
fn what_nobody_knows_is_refused_with_the_nearest() {
    let stage = Stage::new();
    let refused = |args: &[&str], why: &str| {
        stage.run(args).misused().says(why);
    };
    refused(&["queue"], "queues");
    refused(&["queues", "--jsn"], "--json");
    refused(&["tasks", "default"], "--state <STATE>");
    refused(&["tasks", "default", "--state", "archive"], "archived");
    refused(&["tasks", "default", "--state", "pending", "--limit", "0"], "0 is not in 1..=1000");
    refused(&["history", "default", "--days", "367"], "367 is not in 1..=366");
    refused(&["task", "default"], "<ID>");
    refused(&["dead-letters"], "Usage: poolwright dead-letters");
    refused(&["dead-letters", "delete"], "<ID>");
    assert!(stage.names().is_empty());
}

#[test]
fn options_of_every_command_may_stand_anywhere() {
    let stage = Stage::new();
    stage
        .run(&["--broker", "sqlite://a.db", "enqueue", "document:process", "--payload", "{}", "--json"])
        .ok()
        .json();
    stage.run(&["queues", "--json", "--broker", "sqlite://a.db"]).ok().json();
    assert_eq!(stage.names(), ["a.db"]);
}

#[test]
fn an_empty_place_is_refused_and_not_replaced_by_the_default() {
    let stage = Stage::new();
    let enqueue = ["enqueue", "document:process", "--payload", "{}"];
    let places = [
        ("--broker", "POOLWRIGHT_BROKER_URL"),
        ("--ledger", "POOLWRIGHT_LEDGER_URL"),
        ("--config", "POOLWRIGHT_CONFIG"),
    ];
    for (option, variable) in places {
        let why = format!("{option} or {variable} is empty, expected a ");
        stage.run(&[&enqueue[..], &[option, ""]].concat()).misused().says(&why);
        stage.run_in(&[(variable, "")], &enqueue).misused().says(&why);
    }
    assert!(stage.names().is_empty());
    // An option that says something has the last word over an empty variable.
    stage
        .run_in(&[("POOLWRIGHT_BROKER_URL", "")], &[&enqueue[..], &["--broker", "sqlite:a.db"]].concat())
        .ok();
    assert_eq!(stage.names(), ["a.db"]);
}

#[test]
fn numbers_that_no_option_takes_are_refused_with_what_it_takes() {
    let stage = Stage::new();
    let refused = |args: &str, why: &str| {
        let args: Vec<&str> = args.split(' ').collect();
        stage.run(&args).misused().says("invalid value '").says(why);
    };
    refused("enqueue document:process --payload {} --max-retry -1", "-1 is not in 0..=4294967295");
    refused("tasks default --state pending --limit -1", "-1 is not in 1..=1000");
    refused("history default --days -1", "-1 is not in 1..=366");
    refused("dead-letters list --limit -1", "-1 is not in 1..=200");
    refused("demo search word --limit -1", "-1 is not in 1..=1000");
    assert!(stage.names().is_empty());
}
