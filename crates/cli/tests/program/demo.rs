//! `demo` and `demo search`.

use serde_json::json;

use crate::stage::Stage;

/// A folder with two documents, one file that is cut off, and one of no kind that is read.
fn folder() -> Stage {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("notes")).unwrap();
    stage.write(
        "notes/slipway.md",
        "# Slipway\n\nA slipway is a ramp on which ships are built and launched.\n",
    );
    stage.write("notes/harbour.txt", "A harbour shelters ships.\n\nIts walls break the waves.\n");
    stage.write("notes/cut.json", "{\"a\": [1, 2");
    stage.write("notes/tool.exe", b"MZ\0\0");
    stage
}

#[test]
fn a_folder_is_worked_through_and_found_again() {
    let stage = folder();
    let first = stage.run(&["demo", "notes", "--json"]).ok();
    let first = first.says("note: made a new broker file .poolwright/tasks.db\n").json();
    assert_eq!(
        (&first["documents"], &first["dead_letters"], &first["skipped"]),
        (&json!(2), &json!(1), &json!(1))
    );
    assert!(first["chunks"].as_u64() >= Some(2) && first["wiki_pages"].as_u64() >= Some(2), "{first}");
    assert!(stage.path(".poolwright/demo").is_dir());

    let hits = stage.json(&["demo", "search", "ramp", "launched"]);
    assert_eq!(hits.as_array().unwrap().len(), 1, "{hits}");
    assert_eq!(hits[0]["path"], "slipway.md");
    stage.run(&["demo", "search", "ramp"]).ok().prints("slipway.md");
    stage.run(&["demo", "search", "zeppelin"]).ok();
    assert_eq!(stage.json(&["demo", "search", "zeppelin"]), json!([]));

    let letters = stage.json(&["dead-letters", "list"]);
    assert_eq!(letters["letters"][0]["task_type"], "document:process");
    assert_eq!(stage.json(&["servers"]), json!([]), "no process is left");

    let second = stage.run(&["demo", "notes", "--json"]).ok();
    assert!(!second.stderr.contains("made a new"), "{second:?}");
    let second = second.json();
    assert_eq!((&second["documents"], &second["new"], &second["changed"]), (&json!(2), &json!(0), &json!(0)));
    let again = stage.json(&["demo", "notes", "--retry-failed"]);
    assert_eq!((&again["resumed"], &again["dead_letters"]), (&json!(1), &json!(1)));
}

#[test]
fn the_report_is_the_result_and_the_progress_is_not() {
    let stage = folder();
    let ran = stage.run(&["demo", "notes", "--broker", "memory:"]).ok();
    let ran = ran.prints(" 2  documents\n").prints("cut.json").prints("poolwright demo search");
    assert!(!ran.stderr.contains("made a new"), "{ran:?}");
    assert!(!ran.stdout.contains('\u{1b}') && !ran.stdout.contains('\r'), "{ran:?}");
    assert!(!stage.path(".poolwright/tasks.db").exists());
}

#[test]
fn a_search_before_the_first_run_says_how_to_run() {
    let stage = Stage::new();
    stage.run(&["demo", "search", "ramp"]).failed().says("`poolwright demo` makes one");
    stage.run(&["demo", "search"]).misused().says("<WORDS>");
    assert!(stage.names().is_empty());
}

#[test]
fn what_cannot_be_run_is_misuse() {
    let stage = folder();
    stage.run(&["demo", "nowhere"]).misused().says("cannot read nowhere");
    stage.run(&["demo", "notes", "--pools", "cor"]).misused().says("did you mean `core`?");
    stage
        .run(&["demo", "notes", "--broker", "postgres://localhost"])
        .misused()
        .says("comes with a later release");
    stage
        .run(&["demo", "notes", "--broker", "sqlite://t.db?sync=off"])
        .misused()
        .says("unknown parameter `sync`");
    stage.run(&["demo", "notes", "--ledger", "nothing"]).misused().says("names no kind of store");
}

#[test]
fn a_file_of_queues_counts_only_when_it_is_named() {
    let stage = folder();
    stage.write("queues.toml", "version = 1\n[pools.mail]\nworkrs = 4\nqueues = { mail = 1 }\n");
    let named = stage.run(&["demo", "notes", "--config", "queues.toml"]).misused();
    named.says("unknown key `workrs`, did you mean `workers`?");
    stage.run(&["demo", "notes", "--json"]).ok();
}
