//! The rules of the house that no compiler checks, each in a file of its own.
//!
//! Every rule is a pure function from the tree to findings; all findings are reported together.

mod clock;
mod docs;
mod exceptions;
mod length;
mod lexer;
mod manifest;
mod migrations;
mod rows;
mod syntax;
mod text;
mod tree;

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};

use manifest::House;
use tree::Tree;

/// One place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    rule: &'static str,
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, rule: &'static str, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule, self.message)
    }
}

/// Checks the workspace at `root` and prints every finding on stdout.
///
/// # Errors
/// When anything was found, or when the tree cannot be read.
pub(crate) fn run(root: &Path) -> Result<()> {
    let tree = Tree::load(root)?;
    let findings = check(&tree)?;
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => println!("tidy: nothing found in {} text files", tree.files.len()),
        count => bail!("tidy found {count} place(s) to mend"),
    }
    Ok(())
}

/// All findings of all rules, in order of their places.
fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let house = House::read(tree)?;
    let mut findings = [
        rows::check(&house),
        length::check(tree),
        docs::check(tree),
        clock::check(tree),
        migrations::check(tree),
        manifest::check(tree, &house),
        text::check(tree),
    ]
    .concat();
    findings.sort();
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_asked_and_findings_come_in_order() {
        let long = format!("fn f() {{\n{}}}", "    g();\n".repeat(80));
        let tree = tree::fixture(&[
            ("Cargo.toml", "[workspace]"),
            ("crates/novel/Cargo.toml", "[package]"),
            ("crates/novel/src/lib.rs", &long),
            (
                "crates/novel/src/nap.rs",
                "//! Naps.\n\nfn f() { std::thread::sleep(d) }\n#[ignore]\nfn g() {}\n",
            ),
            ("migrations/db/1.sql", ""),
        ]);
        let findings = check(&tree).unwrap();
        assert!(findings.is_sorted());
        for rule in ["rows", "length", "docs", "clock", "migrations", "manifest", "ignored"] {
            assert!(findings.iter().any(|finding| finding.rule == rule), "{rule}: {findings:?}");
        }
    }

    #[test]
    fn a_tree_with_findings_fails_and_a_tidy_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("docs")).unwrap();
        std::fs::write(dir.path().join("Cargo.toml"), "[workspace]").unwrap();
        assert_eq!(run(dir.path()).unwrap_err().to_string(), "tidy found 1 place(s) to mend");
        std::fs::write(dir.path().join("docs/ARCHITECTURE.md"), "# The house").unwrap();
        run(dir.path()).unwrap();
    }
}
