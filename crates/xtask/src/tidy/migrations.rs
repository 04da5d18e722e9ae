//! Migrations in step: numbered without gaps, with a way up and a way down, the same in every database.

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::tree::{File, Tree};

const RULE: &str = "migrations";
const FORM: &str = "migrations/<database>/NNNN_name.{up,down}.sql";

/// The migrations of one database: by number, the names and directions found.
type Database = BTreeMap<u32, BTreeSet<(String, String)>>;

/// Checks everything under `migrations/`, where a `README.md` may stand beside the databases.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut databases: BTreeMap<String, Database> = BTreeMap::new();
    for file in &tree.files {
        let Some(rest) = file.path.strip_prefix("migrations/").filter(|rest| *rest != "README.md") else {
            continue;
        };
        match parse(rest) {
            Some((database, number, name, direction)) => {
                let entry = databases.entry(database.to_owned()).or_default().entry(number).or_default();
                entry.insert((name.to_owned(), direction.to_owned()));
                findings.extend(empty(file));
            }
            None => findings.push(Finding::new(&file.path, 1, RULE, format!("expected {FORM}"))),
        }
    }
    for (name, database) in &databases {
        alone(name, database, &mut findings);
    }
    together(&databases, &mut findings);
    findings
}

/// Database, number, name and direction of a path below `migrations/`.
fn parse(rest: &str) -> Option<(&str, u32, &str, &str)> {
    let (database, file) = rest.split_once('/')?;
    let (stem, direction) = file.strip_suffix(".sql")?.rsplit_once('.')?;
    let (number, name) = stem.split_once('_')?;
    let digits = number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit());
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let well_named = !name.is_empty() && name.bytes().all(plain) && ["up", "down"].contains(&direction);
    (digits && well_named).then_some((database, number.parse().ok()?, name, direction))
}

fn empty(file: &File) -> Option<Finding> {
    let bare = file.text.trim().is_empty();
    bare.then(|| Finding::new(&file.path, 1, RULE, "expected statements, or a comment why none are needed"))
}

/// What one database must have by itself.
fn alone(database: &str, migrations: &Database, findings: &mut Vec<Finding>) {
    let dir = format!("migrations/{database}");
    for (expected, (number, entries)) in (1..).zip(migrations) {
        if *number != expected {
            let message = format!("expected number {expected:04} next, found {number:04}");
            findings.push(Finding::new(&dir, 1, RULE, message));
            break;
        }
        let names: BTreeSet<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
        if names.len() > 1 {
            let message = format!("expected one migration with number {number:04}, found {}", list(names));
            findings.push(Finding::new(&dir, 1, RULE, message));
        } else if let Some(missing) =
            ["up", "down"].iter().find(|way| !entries.iter().any(|(_, d)| d == *way))
        {
            let message = format!("expected {number:04}_{}.{missing}.sql, found no such file", list(names));
            findings.push(Finding::new(&dir, 1, RULE, message));
        }
    }
}

/// What all databases must have in common.
fn together(databases: &BTreeMap<String, Database>, findings: &mut Vec<Finding>) {
    let steps = |database: &Database| -> BTreeSet<String> {
        let entries =
            database.iter().flat_map(|(number, entries)| entries.iter().map(move |(name, _)| (number, name)));
        entries.map(|(number, name)| format!("{number:04}_{name}")).collect()
    };
    let all: BTreeSet<String> = databases.values().flat_map(&steps).collect();
    for (name, database) in databases {
        let own = steps(database);
        for step in all.difference(&own) {
            let message = format!("expected {step} as another database has it, found no such migration");
            findings.push(Finding::new(&format!("migrations/{name}"), 1, RULE, message));
        }
    }
}

fn list(names: BTreeSet<&str>) -> String {
    names.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::tree::fixture;
    use super::*;

    /// Findings for files below `migrations/`, each holding a statement.
    fn findings(names: &[&str]) -> Vec<String> {
        let paths: Vec<String> = names.iter().map(|name| format!("migrations/{name}")).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "select 1;")).collect();
        check(&fixture(&files)).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn numbered_pairs_in_step_are_tidy() {
        let pair = |db: &str| {
            ["0001_tasks.up.sql", "0001_tasks.down.sql", "0002_a_2.up.sql", "0002_a_2.down.sql"]
                .map(|f| format!("{db}/{f}"))
        };
        let both = [pair("sqlite"), pair("postgres")].concat();
        let mut names: Vec<&str> = both.iter().map(String::as_str).collect();
        names.push("README.md");
        assert!(findings(&names).is_empty());
        assert!(findings(&[]).is_empty());
    }

    #[test]
    fn a_file_of_another_form_is_found() {
        let wrong = [
            "a.sql",
            "db/1_a.up.sql",
            "db/0001.up.sql",
            "db/0001_a.sql",
            "db/0001_A.up.sql",
            "db/0001_a.up.txt",
            "db/x/0001_a.up.sql",
            "db/0001_.up.sql",
            "db/0001_a.side.sql",
        ];
        for name in wrong {
            let found = findings(&[name]);
            assert!(found.len() == 1 && found[0].ends_with(FORM), "{name}: {found:?}");
        }
    }

    #[test]
    fn a_gap_is_found() {
        let found =
            findings(&["db/0001_a.up.sql", "db/0001_a.down.sql", "db/0003_c.up.sql", "db/0003_c.down.sql"]);
        assert_eq!(found, ["migrations/db:1: migrations: expected number 0002 next, found 0003"]);
        let found = findings(&["db/0002_a.up.sql", "db/0002_a.down.sql"]);
        assert_eq!(found, ["migrations/db:1: migrations: expected number 0001 next, found 0002"]);
    }

    #[test]
    fn a_missing_direction_is_found() {
        let found = findings(&["db/0001_a.up.sql"]);
        assert_eq!(found, ["migrations/db:1: migrations: expected 0001_a.down.sql, found no such file"]);
    }

    #[test]
    fn two_migrations_with_one_number_are_found() {
        let found =
            findings(&["db/0001_a.up.sql", "db/0001_a.down.sql", "db/0001_b.up.sql", "db/0001_b.down.sql"]);
        assert_eq!(
            found,
            ["migrations/db:1: migrations: expected one migration with number 0001, found a, b"]
        );
    }

    #[test]
    fn databases_out_of_step_are_found() {
        let found =
            findings(&["a/0001_x.up.sql", "a/0001_x.down.sql", "b/0001_y.up.sql", "b/0001_y.down.sql"]);
        assert_eq!(
            found,
            [
                "migrations/a:1: migrations: expected 0001_y as another database has it, found no such migration",
                "migrations/b:1: migrations: expected 0001_x as another database has it, found no such migration",
            ]
        );
    }

    #[test]
    fn an_empty_migration_is_found() {
        let tree =
            fixture(&[("migrations/db/0001_a.up.sql", "select 1;"), ("migrations/db/0001_a.down.sql", "\n")]);
        let found = check(&tree);
        assert!(found.len() == 1 && found[0].path == "migrations/db/0001_a.down.sql");
    }
}
