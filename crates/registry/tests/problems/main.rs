//! Every mistake is told, at once, at its place and with its cure.

#![allow(clippy::unwrap_used, reason = "what a test cannot unwrap has failed it")]

mod file;
mod parts;
mod values;

use poolwright_registry::Topology;

/// Four lines that need nothing else; what a case adds begins at line 5.
const BASE: &str = "version = 1\n[pools.core]\nworkers = 8\nqueues = { default = 1, mail = 2 }\n";

/// All problems of a text, as `line:column: message`.
fn problems(text: &str) -> Vec<String> {
    match Topology::parse("queues.toml", text) {
        Ok(_) => Vec::new(),
        Err(error) => error.problems().iter().map(ToString::to_string).collect(),
    }
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(problems(text), expected, "\n{text}");
}

/// The same, for what follows the base.
#[track_caller]
fn check_after_base(text: &str, expected: &[&str]) {
    check(&format!("{BASE}{text}"), expected);
}

/// The help of the only problem.
fn help(text: &str) -> String {
    let error = Topology::parse("queues.toml", &format!("{BASE}{text}")).unwrap_err();
    assert_eq!(error.problems().len(), 1, "{error}");
    error.problems()[0].help.clone().unwrap_or_default()
}
