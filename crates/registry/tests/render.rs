//! What a person sees: each problem underlined in the file, with its cure.

#![allow(clippy::unwrap_used, reason = "what a test cannot unwrap has failed it")]

use poolwright_registry::{Error, Topology};

fn refused(text: &str) -> Error {
    Topology::parse("queues.toml", text).unwrap_err()
}

#[test]
fn a_problem_is_underlined_and_cured() {
    let error = refused(
        "version = 1\n[pools.core]\nworkers = 8\nqueues = { default = 1 }\n\n[queues.default]\nwieght = 3\n",
    );
    assert_eq!(
        error.to_string(),
        "\
error: unknown key `wieght`, did you mean `weight`?
 --> queues.toml:7:1
  |
7 | wieght = 3
  | ^^^^^^
  |
  = help: a queue's weight stands where its pool lists it: `queues = { default = 3 }`

error: queues.toml has one problem; nothing was started"
    );
}

#[test]
fn all_problems_come_in_the_order_of_the_file_with_what_belongs_to_them() {
    let error = refused(
        "version = 1\n[pools.core]\nworkers = 0\nqueues = { default = 1 }\n[pools.b]\n\
         workers = 1\nqueues = { default = 3 }\n\
         [tasks.\"a:b\"]\nqueue = \"defualt\"\n",
    );
    assert_eq!(
        error.to_string(),
        "\
error: expected a number of workers from 1 to 10000 for `workers`, found `0`
 --> queues.toml:3:11
  |
3 | workers = 0
  |           ^
  |
  = help: `workers`: How many tasks it runs at the same time, in each process.

error: queue `default` has two home pools, `core` and `b`
 --> queues.toml:7:12
  |
4 | queues = { default = 1 }
  |            ------- owned here already
...
7 | queues = { default = 3 }
  |            ^^^^^^^
  |
  = help: keep it in one of them; the other may list it under `borrows`, as `default` = weight

error: unknown queue `defualt`, did you mean `default`?
 --> queues.toml:9:9
  |
9 | queue = \"defualt\"
  |         ^^^^^^^^^
  |
  = help: queues that a pool owns: `default`

error: queues.toml has 3 problems; nothing was started"
    );
}

#[test]
fn columns_count_characters_also_behind_tabs_and_accents() {
    let error =
        refused("version = 1\n[pools.\"é\"]\n\tlabel = \"ü\"\n\tworkers = 1\n\tqueues = { \"ö\" = 0 }\n");
    let problem = &error.problems()[0];
    assert_eq!((problem.line, problem.column), (5, 19));
    assert!(error.to_string().contains(" --> queues.toml:5:19\n"), "{error}");
    assert!(error.to_string().contains("    queues = { \"ö\" = 0 }\n"), "{error}");
}

#[test]
fn colours_change_the_look_and_not_the_words() {
    let error = refused("version = 1\n");
    let (plain, coloured) = (error.to_string(), error.coloured());
    assert!(coloured.contains("\u{1b}[") && !plain.contains('\u{1b}'));
    let mut bare = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        bare.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    bare.push_str(rest);
    assert_eq!(bare, plain);
}

#[test]
fn what_the_file_holds_cannot_take_over_the_terminal() {
    let error = refused(
        "version = 1\n\"\\u001b[2J\" = 1\n[pools.core]\nworkers = 1\nqueues = { a = 1 }\n\
         label = \"\u{1b}[31m\"\n",
    );
    assert!(!error.to_string().contains('\u{1b}'), "{error}");
}

#[test]
fn a_flood_of_problems_is_counted_but_not_all_shown() {
    let lines: String = (0..500).map(|n| format!("key_{n} = 1\n")).collect();
    let error = refused(&lines);
    assert_eq!(error.problems().len(), 502);
    let text = error.to_string();
    assert_eq!(text.matches("\n --> ").count() + text.matches("\n  --> ").count(), 100);
    assert!(text.ends_with("queues.toml has 502 problems, the first 100 are shown; nothing was started"));
}

#[test]
fn problems_are_data_for_other_programs() {
    let error = refused("version = 1\n[pools.core]\nworkers = 1\nqueues = { a = 0 }\n");
    assert_eq!(
        serde_json::to_value(error.problems()).unwrap(),
        serde_json::json!([{
            "line": 4, "column": 16,
            "message": "expected a weight from 1 to 1000 for `a`, found `0`",
            "help": "`a`: The queues it owns, with their weights.",
            "related": null,
        }])
    );
}
