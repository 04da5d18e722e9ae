//! The schema: which version a file has, and how it becomes the present one.
//!
//! Invariant: a file is brought up to date in one immediate transaction, or left as it was; many processes may start
//! at once, the first one does it.

use rusqlite::{Connection, TransactionBehavior};

use crate::Error;

/// Written into the file's header: "Pool".
pub(crate) const APPLICATION_ID: i32 = 0x506f_6f6c;

/// The steps; the version of a file is the number of steps that were taken.
const STEPS: [Step; 2] = [
    Step {
        up: include_str!("../../../migrations/sqlite/0001_broker.up.sql"),
        #[cfg(test)]
        down: include_str!("../../../migrations/sqlite/0001_broker.down.sql"),
    },
    Step {
        up: include_str!("../../../migrations/sqlite/0002_ledger.up.sql"),
        #[cfg(test)]
        down: include_str!("../../../migrations/sqlite/0002_ledger.down.sql"),
    },
];

struct Step {
    up: &'static str,
    #[cfg(test)]
    down: &'static str,
}

/// The newest schema version that this program knows.
pub(crate) const NEWEST: u32 = STEPS.len() as u32;

/// What a file says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// No table, no id: a new file.
    Nothing,
    /// Ours, of this version.
    Ours(u32),
    /// Somebody else's, with this application id.
    Foreign(i32),
}

impl Found {
    /// It is not of the newest version yet.
    pub(crate) const fn lacks_steps(self) -> bool {
        !matches!(self, Self::Ours(NEWEST))
    }
}

/// Looks without changing anything.
pub(crate) fn look(conn: &Connection) -> rusqlite::Result<Found> {
    let application: i32 = conn.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(match (application, tables) {
        (APPLICATION_ID, _) => Found::Ours(u32::try_from(version).unwrap_or(u32::MAX)),
        (0, 0) if version == 0 => Found::Nothing,
        _ => Found::Foreign(application),
    })
}

/// Refuses what is not ours to write.
pub(crate) fn check(found: Found, path: &std::path::Path) -> Result<(), Error> {
    match found {
        Found::Nothing => Ok(()),
        Found::Ours(version) if version <= NEWEST => Ok(()),
        Found::Ours(found) => Err(Error::NewerVersion { path: path.to_owned(), found, known: NEWEST }),
        Found::Foreign(found) => Err(Error::Foreign { path: path.to_owned(), found }),
    }
}

/// Takes the steps that are missing. What another process did meanwhile is seen and left.
pub(crate) fn up(conn: &mut Connection, path: &std::path::Path) -> rusqlite::Result<Result<(), Error>> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = look(&tx)?;
    if let Err(error) = check(found, path) {
        return Ok(Err(error));
    }
    let from = match found {
        Found::Ours(version) => version as usize,
        _ => 0,
    };
    if from < STEPS.len() {
        for step in &STEPS[from..] {
            tx.execute_batch(step.up)?;
        }
        tx.pragma_update(None, "application_id", APPLICATION_ID)?;
        tx.pragma_update(None, "user_version", NEWEST)?;
        tracing::debug!(from, to = NEWEST, file = %path.display(), "schema brought up to date");
    }
    tx.commit()?;
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn names(conn: &Connection) -> Vec<String> {
        let mut statement =
            conn.prepare("SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY 1").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn a_new_file_becomes_the_newest_version_and_stays_it() {
        let mut conn = Connection::open_in_memory().unwrap();
        assert_eq!(look(&conn).unwrap(), Found::Nothing);
        up(&mut conn, Path::new("x")).unwrap().unwrap();
        let first = names(&conn);
        assert_eq!(look(&conn).unwrap(), Found::Ours(NEWEST));
        up(&mut conn, Path::new("x")).unwrap().unwrap();
        assert_eq!(names(&conn), first);
    }

    #[test]
    fn an_older_file_takes_only_the_steps_it_lacks() {
        let mut conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(STEPS[0].up).unwrap();
        conn.execute("INSERT INTO queues (name) VALUES ('kept')", []).unwrap();
        conn.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        conn.pragma_update(None, "user_version", 1).unwrap();
        up(&mut conn, Path::new("x")).unwrap().unwrap();
        assert_eq!(look(&conn).unwrap(), Found::Ours(NEWEST));
        let kept: i64 = conn.query_row("SELECT count(*) FROM queues", [], |row| row.get(0)).unwrap();
        assert_eq!(kept, 1);
    }

    #[test]
    fn every_step_down_undoes_its_step_up() {
        let conn = Connection::open_in_memory().unwrap();
        let mut before = vec![names(&conn)];
        for step in &STEPS {
            conn.execute_batch(step.up).unwrap();
            before.push(names(&conn));
        }
        for (step, expected) in STEPS.iter().rev().zip(before.iter().rev().skip(1)) {
            conn.execute_batch(step.down).unwrap();
            assert_eq!(&names(&conn), expected);
        }
    }

    #[test]
    fn another_applications_tables_are_not_ours_to_change() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE theirs (x)").unwrap();
        assert_eq!(look(&conn).unwrap(), Found::Foreign(0));
        let said = check(Found::Foreign(7), Path::new("x.db")).unwrap_err().to_string();
        assert!(
            said.contains("x.db is a SQLite database of another application (application id 0x7)"),
            "{said}"
        );
    }
}
