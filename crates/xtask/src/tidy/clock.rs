//! Time and chance come from injected sources; what reads the machine's own is listed here, with a reason each.
//!
//! The rule reads names, not types: it finds a path as it is written and every `use` of it, but not what a macro or
//! a renamed type hides. Clippy's `disallowed-methods` knows types and guards the same border from its side.

use super::Finding;
use super::exceptions::Exceptions;
use super::syntax::Source;
use super::tree::{File, Tree};

const RULE: &str = "clock";

/// What the code must not do by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    /// Reads the time of day.
    Wall,
    /// Reads the monotonic clock.
    Stopwatch,
    /// Waits for a time to pass.
    Sleep,
    /// Draws from the system's randomness.
    Chance,
}

/// How each act is written.
const NAMES: &[(&str, Act)] = &[
    ("SystemTime::now", Act::Wall),
    ("UNIX_EPOCH.elapsed", Act::Wall),
    ("Utc::now", Act::Wall),
    ("Local::now", Act::Wall),
    ("Uuid::now_v7", Act::Wall),
    ("Instant::now", Act::Stopwatch),
    ("thread::sleep", Act::Sleep),
    ("time::sleep", Act::Sleep),
    ("time::sleep_until", Act::Sleep),
    ("time::interval", Act::Sleep),
    ("time::interval_at", Act::Sleep),
    ("rand::rng", Act::Chance),
    ("rand::make_rng", Act::Chance),
    ("rand::random", Act::Chance),
    ("rand::random_bool", Act::Chance),
    ("rand::random_range", Act::Chance),
    ("Uuid::new_v4", Act::Chance),
];

/// Whom an allowance is for: a directory's timers do not excuse a sleep in its tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    Production,
    Tests,
}

/// Files that may do some of it.
struct Allowance {
    /// A file, or a directory with a slash at its end.
    place: &'static str,
    code: Code,
    acts: &'static [Act],
    reason: &'static str,
}

/// The only place for allowances.
const ALLOWED: &[Allowance] = &[
    Allowance {
        place: "crates/core/src/clock.rs",
        code: Code::Production,
        acts: &[Act::Wall],
        reason: "the injected clock has to come from somewhere",
    },
    Allowance {
        place: "crates/core/src/chance.rs",
        code: Code::Production,
        acts: &[Act::Chance],
        reason: "the injected chance has to be seeded by something",
    },
    Allowance {
        place: "crates/worker/src/",
        code: Code::Production,
        acts: &[Act::Sleep],
        reason: "loops wait for due times and back off on tokio's timers, which tests pause",
    },
    Allowance {
        place: "crates/middleware/src/guard.rs",
        code: Code::Production,
        acts: &[Act::Sleep],
        reason: "an attempt's time limit and its grace ring on tokio's timers, which tests pause",
    },
    Allowance {
        place: "crates/store-sqlite/src/busy.rs",
        code: Code::Production,
        acts: &[Act::Stopwatch],
        reason: "SQLite calls back on a blocked thread to ask how long to wait for another process",
    },
    Allowance {
        place: "crates/store-redis/src/",
        code: Code::Production,
        acts: &[Act::Sleep, Act::Stopwatch],
        reason: "a server's silence is measured, and a lost connection is left alone for a while, in true time",
    },
    Allowance {
        place: "crates/demo/src/view/",
        code: Code::Production,
        acts: &[Act::Sleep],
        reason: "a live view draws at most so often, whatever happens",
    },
    Allowance {
        place: "crates/bench/",
        code: Code::Production,
        acts: &[Act::Stopwatch, Act::Sleep],
        reason: "it measures how long real work takes",
    },
    Allowance {
        place: "crates/testbed/src/wait.rs",
        code: Code::Production,
        acts: &[Act::Sleep],
        reason: "a server outside of this process tells of no state: one looks, and looks again",
    },
    Allowance {
        place: "crates/xtask/src/test.rs",
        code: Code::Production,
        acts: &[Act::Stopwatch],
        reason: "it tells how long each step took",
    },
];

/// Looks through every Rust file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    check_with(tree, ALLOWED)
}

fn check_with(tree: &Tree, allowed: &[Allowance]) -> Vec<Finding> {
    let mut findings = Vec::new();
    // A crate that is not born yet may have its allowance already.
    let born = |allowance: &Allowance| tree.files.iter().any(|file| file.path.starts_with(allowance.place));
    let allowed: Vec<&Allowance> = allowed.iter().filter(|allowance| born(allowance)).collect();
    let mut exceptions = Exceptions::new(&allowed);
    for (file, source) in tree.sources() {
        for (line, name, act) in acts(source) {
            let code = code_at(file, source, line);
            if !exceptions.cover(|allowance| allowance.covers(&file.path, code, act)) {
                findings.push(Finding::new(&file.path, line, RULE, complaint(name, act, code)));
            }
        }
    }
    let describe = |allowance: &&Allowance| format!("of {} ({})", allowance.place, allowance.reason);
    findings.extend(exceptions.needless(file!(), RULE, describe));
    findings
}

impl Allowance {
    fn covers(&self, path: &str, code: Code, act: Act) -> bool {
        let here = path == self.place || (self.place.ends_with('/') && path.starts_with(self.place));
        here && self.code == code && self.acts.contains(&act)
    }
}

/// Every act in a file, with its line and how it was written, once per line and name.
fn acts(source: &Source) -> Vec<(usize, &'static str, Act)> {
    let uses = source.uses();
    let mut found = Vec::new();
    for (name, act) in NAMES {
        let imported = uses.iter().filter(|(_, path)| ends_with_path(path, name)).map(|(line, _)| *line);
        let mut lines: Vec<usize> = source.find(name).into_iter().chain(imported).collect();
        lines.sort_unstable();
        lines.dedup();
        found.extend(lines.into_iter().map(|line| (line, *name, *act)));
    }
    found
}

/// Whether `path` is `end` or continues it to the left by whole segments.
fn ends_with_path(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
}

fn code_at(file: &File, source: &Source, line: usize) -> Code {
    let in_tests_dir = file.path.split('/').rev().skip(1).any(|dir| dir == "tests");
    let is_tests = in_tests_dir || file.path.ends_with("/tests.rs");
    let in_region = || source.test_regions().iter().any(|region| region.contains(&line));
    if is_tests || in_region() { Code::Tests } else { Code::Production }
}

fn complaint(name: &str, act: Act, code: Code) -> String {
    let cure = match (act, code) {
        (Act::Sleep, Code::Tests) => "a test awaits a state or a signal, never a time",
        (Act::Sleep, Code::Production) => "await a signal, or a timer where timers are allowed",
        (Act::Wall | Act::Stopwatch, _) => "ask the injected core::Clock",
        (Act::Chance, _) => "draw from the injected core::Chance",
    };
    format!("`{name}`: {cure} (allowances stand in {})", file!())
}

#[cfg(test)]
mod tests {
    use super::super::tree::fixture;
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let here = check(&fixture(&[(path, text)])).into_iter().filter(|finding| finding.path == path);
        here.map(|finding| format!("{}:{}", finding.line, finding.message)).collect()
    }

    fn names(path: &str, text: &str) -> Vec<String> {
        let name = |found: String| found.split('`').nth(1).unwrap().to_owned();
        findings(path, text).into_iter().map(name).collect()
    }

    #[test]
    fn every_name_is_found_in_code_and_not_in_text() {
        for (name, _) in NAMES {
            assert_eq!(names("crates/a/src/lib.rs", &format!("fn f() {{ x::{name}(); }}")), [*name]);
            assert!(
                names("crates/a/src/lib.rs", &format!("// {name}()\nconst X: &str = \"{name}()\";"))
                    .is_empty()
            );
        }
    }

    #[test]
    fn an_import_is_found_in_any_form() {
        for text in [
            "use tokio::time::sleep;",
            "use tokio::time::{Duration, sleep as nap};",
            "use tokio::{self, time::{sleep}};",
            "use std::{fmt, thread::sleep};",
            "use rand::{RngExt, random};",
        ] {
            assert_eq!(findings("crates/a/src/lib.rs", text).len(), 1, "{text}");
        }
        for text in
            ["use tokio::time::{self, timeout};", "use std::time::Instant;", "use std::{thread, time};"]
        {
            assert!(findings("crates/a/src/lib.rs", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn one_line_is_reported_once() {
        let text = "fn f() { std::thread::sleep(D); thread::sleep(D) }";
        assert_eq!(findings("crates/a/src/lib.rs", text).len(), 1);
    }

    #[test]
    fn an_allowance_covers_its_place_and_act_only() {
        let timer = "fn f() { tokio::time::sleep(d) }";
        assert!(findings("crates/worker/src/pool/order.rs", timer).is_empty());
        assert_eq!(names("crates/workers/src/order.rs", timer), ["time::sleep"]);
        assert_eq!(names("crates/worker/benches/x.rs", timer), ["time::sleep"]);
        assert!(findings("crates/core/src/clock.rs", "fn f() { SystemTime::now() }").is_empty());
        let found = names("crates/core/src/clock.rs", "fn f() { SystemTime::now(); Instant::now() }");
        assert_eq!(found, ["Instant::now"]);
    }

    #[test]
    fn a_sleep_in_a_test_is_not_excused_by_the_code_around_it() {
        let module = "fn f() { time::sleep(d) }\n#[cfg(test)]\nmod tests {\n    fn g() { time::sleep(d) }\n}";
        let found = findings("crates/worker/src/pool.rs", module);
        assert!(
            found.len() == 1 && found[0].starts_with("4:") && found[0].contains("a test awaits"),
            "{found:?}"
        );
        for path in [
            "crates/worker/src/pool/tests.rs",
            "crates/worker/src/tests/a.rs",
            "crates/bench/tests/a.rs",
            "tests/walk.rs",
        ] {
            assert_eq!(names(path, "fn f() { time::sleep(d) }"), ["time::sleep"], "{path}");
        }
    }

    #[test]
    fn an_allowance_for_tests_covers_tests_only() {
        let allowed = [Allowance {
            place: "crates/a/",
            code: Code::Tests,
            acts: &[Act::Sleep],
            reason: "a thread is blocked",
        }];
        let text = "fn f() { thread::sleep(d) }";
        assert!(check_with(&fixture(&[("crates/a/tests/b.rs", text)]), &allowed).is_empty());
        assert_eq!(check_with(&fixture(&[("crates/a/src/b.rs", text)]), &allowed).len(), 2);
    }

    #[test]
    fn a_needless_allowance_is_found_once_its_place_exists() {
        let place = "crates/core/src/clock.rs";
        let found = check(&fixture(&[(place, "//! No clock.")]));
        assert!(
            found.len() == 1 && found[0].path == file!() && found[0].message.contains(place),
            "{found:?}"
        );
        assert!(check(&fixture(&[("crates/a/src/lib.rs", "//! No clock.")])).is_empty());
    }
}
