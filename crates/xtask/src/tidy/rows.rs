//! The rows of the house: a crate imports only from rows below its own.
//!
//! Invariant: the table here and the one in `docs/ARCHITECTURE.md` say the same.

use super::Finding;
use super::exceptions::Exceptions;
use super::manifest::{Dependency, House, Manifest};

const RULE: &str = "rows";

/// The directories of `crates/`, lowest row first.
const ROWS: &[&[&str]] = &[
    &["derive"],
    &["core"],
    &["registry", "broker", "ledger", "handler"],
    &[
        "client",
        "middleware",
        "worker",
        "inspector",
        "store-memory",
        "store-sqlite",
        "store-redis",
        "store-postgres",
    ],
    &["admin", "housekeeping", "events"],
    &["poolwright"],
    &["demo"],
    &["cli"],
];

/// For development only: they may import anything, and only tests may import them. `acceptance` lives in `tests/`.
const ASIDE: &[&str] = &["conformance", "bench", "testbed", "xtask", "acceptance"];

/// An import that breaks the rows and is right nevertheless.
struct Exception {
    from: &'static str,
    to: &'static str,
    reason: &'static str,
}

/// The only place for exceptions, each with the reason that a reviewer accepted. None so far.
const EXCEPTIONS: &[Exception] = &[];

/// Where a crate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Row(usize),
    Aside,
}

fn place(dir: &str) -> Option<Place> {
    let row = ROWS.iter().position(|row| row.contains(&dir)).map(Place::Row);
    row.or(ASIDE.contains(&dir).then_some(Place::Aside))
}

/// Checks every import of every crate, and that no exception has become needless.
pub(crate) fn check(house: &House<'_>) -> Vec<Finding> {
    check_with(house, EXCEPTIONS)
}

fn check_with(house: &House<'_>, exceptions: &[Exception]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut exceptions = Exceptions::new(exceptions);
    for manifest in &house.crates {
        let from = manifest.dir();
        if place(from).is_none() {
            findings.push(homeless(manifest));
            continue;
        }
        for dependency in manifest.dependencies() {
            let Some(message) = broken(house, manifest, &dependency) else { continue };
            let to = house.home_of(&dependency);
            if !exceptions.cover(|exception| exception.from == from && Some(exception.to) == to) {
                findings.push(Finding::new(manifest.path, dependency.line, RULE, message));
            }
        }
    }
    let describe = |Exception { from, to, reason }: &Exception| format!("{from} → {to} ({reason})");
    findings.extend(exceptions.needless(file!(), RULE, describe));
    findings
}

fn homeless(manifest: &Manifest<'_>) -> Finding {
    let message = format!(
        "crate `{}` has no row: add it to ROWS or ASIDE in {} and to docs/ARCHITECTURE.md",
        manifest.dir(),
        file!()
    );
    Finding::new(manifest.path, 1, RULE, message)
}

/// What is wrong with a dependency, if anything.
fn broken(house: &House<'_>, manifest: &Manifest<'_>, dependency: &Dependency<'_>) -> Option<String> {
    let (from, to) = (manifest.dir(), house.home_of(dependency)?);
    // A crate without a row gets a finding of its own, at its own manifest.
    let (here, there) = (place(from)?, place(to)?);
    match (here, there) {
        _ if dependency.dev => None,
        (Place::Aside, _) => None,
        (Place::Row(_), Place::Aside) => {
            Some(format!("`{to}` is for development only: it may stand in [dev-dependencies] alone"))
        }
        (Place::Row(here), Place::Row(there)) if there >= here => Some(format!(
            "`{from}` stands in row {here} and imports only from below; `{to}` stands in row {there}"
        )),
        (Place::Row(_), Place::Row(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::fixture;
    use super::*;

    /// A house where `from` has `to` in one table of its manifest.
    fn findings(from: &str, table: &str, to: &str, exceptions: &[Exception]) -> Vec<String> {
        let home = |dir: &str| if dir == "acceptance" { "tests".to_owned() } else { format!("crates/{dir}") };
        let root = format!("[workspace.dependencies]\nserde = \"1\"\nto = {{ path = \"{}\" }}\n", home(to));
        let manifest = format!("[{table}]\nserde.workspace = true\nto.workspace = true\n");
        let tree = fixture(&[("Cargo.toml", &root), (&format!("{}/Cargo.toml", home(from)), &manifest)]);
        check_with(&House::read(&tree).unwrap(), exceptions).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_lower_row_may_be_imported() {
        for (from, to) in [("core", "derive"), ("ledger", "core"), ("worker", "handler"), ("cli", "core")] {
            assert!(findings(from, "dependencies", to, &[]).is_empty(), "{from} → {to}");
        }
    }

    #[test]
    fn the_same_row_and_a_higher_one_may_not() {
        for table in ["dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"] {
            for (from, to) in
                [("ledger", "broker"), ("core", "registry"), ("derive", "core"), ("demo", "cli")]
            {
                let found = findings(from, table, to, &[]);
                assert_eq!(found.len(), 1, "{from} → {to}");
                assert!(found[0].starts_with(&format!("crates/{from}/Cargo.toml:3: rows: ")), "{found:?}");
            }
        }
    }

    #[test]
    fn tests_may_import_anything() {
        for (from, to) in [("core", "cli"), ("broker", "ledger"), ("store-sqlite", "conformance")] {
            assert!(findings(from, "dev-dependencies", to, &[]).is_empty(), "{from} → {to}");
        }
    }

    #[test]
    fn what_stands_aside_imports_anything_and_is_imported_by_none() {
        for from in ["bench", "acceptance", "testbed", "xtask", "conformance"] {
            assert!(findings(from, "dependencies", "cli", &[]).is_empty(), "{from}");
            assert_eq!(findings("cli", "dependencies", from, &[]).len(), 1, "{from}");
        }
        assert!(findings("bench", "dependencies", "conformance", &[]).is_empty());
    }

    #[test]
    fn a_crate_without_a_row_learns_where_to_get_one() {
        let found = findings("novel", "dependencies", "core", &[]);
        assert!(
            found.len() == 1 && found[0].contains("ROWS") && found[0].contains("docs/ARCHITECTURE.md"),
            "{found:?}"
        );
    }

    #[test]
    fn an_exception_holds_for_its_own_pair_and_is_missed_when_needless() {
        let exception = || [Exception { from: "ledger", to: "broker", reason: "one type" }];
        assert!(findings("ledger", "dependencies", "broker", &exception()).is_empty());
        let found = findings("broker", "dependencies", "ledger", &exception());
        assert!(found.len() == 2 && found[1].contains("ledger → broker (one type)"), "{found:?}");
    }

    #[test]
    fn no_crate_stands_in_two_places() {
        let mut all: Vec<&str> = ROWS.iter().copied().chain([ASIDE]).flatten().copied().collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
