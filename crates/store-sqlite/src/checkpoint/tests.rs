//! The log under writers that never rest, readers that stay and transactions that are undone.

use std::time::Duration;

use super::*;

struct Log {
    conn: Connection,
    checkpoints: Checkpoints,
    dir: tempfile::TempDir,
}

impl Log {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let [mut conn, second] = [(); 2].map(|()| Connection::open(dir.path().join("tasks.db")).unwrap());
        // Nobody waits here; how long the writer does is said elsewhere.
        conn.busy_timeout(Duration::ZERO).unwrap();
        conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
        conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(())).unwrap();
        let checkpoints = Checkpoints::watch(&mut conn, second, "tasks.db".into(), Arc::default()).unwrap();
        conn.execute_batch("CREATE TABLE kept (x)").unwrap();
        Self { conn, checkpoints, dir }
    }

    /// Somebody who began to read and does not end.
    fn reader(&self) -> Connection {
        let reader = Connection::open(self.dir.path().join("tasks.db")).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM kept").unwrap();
        reader
    }

    fn keep(&self, bytes: i32) {
        self.conn.execute("INSERT INTO kept VALUES (zeroblob(?1))", [bytes]).unwrap();
    }

    fn pages(&self) -> i32 {
        self.checkpoints.pages.load(Ordering::Relaxed)
    }

    fn run_if_due(&mut self) {
        self.checkpoints.run_if_due(&self.conn, "tasks.db");
    }

    /// Looks after the log, as after commits, until something holds.
    fn until(&mut self, holds: impl Fn(&Self) -> bool) {
        // So often that a slow disk does not matter, and not for ever.
        for _ in 0..100_000_000 {
            if holds(self) {
                return;
            }
            self.run_if_due();
            std::thread::yield_now();
        }
        panic!("it never came to that");
    }

    fn is_sound(&self) -> bool {
        let said: String = self.conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
        said == "ok"
    }
}

#[test]
fn after_an_undone_transaction_the_log_begins_anew() {
    let mut log = Log::new();
    let mut pages_after = |sql: &str| {
        log.conn.execute_batch(sql).unwrap();
        let pages = log.pages();
        log.run_if_due();
        pages
    };
    let grown = pages_after("INSERT INTO kept VALUES (zeroblob(100000))");
    assert!(pages_after("INSERT INTO kept VALUES (1)") > grown, "a short log goes on");
    pages_after("BEGIN; INSERT INTO kept VALUES (2); ROLLBACK");
    assert!(pages_after("INSERT INTO kept VALUES (3)") < grown, "the room it has is used again");
    let kept: i64 = log.conn.query_row("SELECT count(*) FROM kept", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 3);
}

#[test]
fn the_log_of_a_writer_that_never_rests_does_not_grow_without_end() {
    let mut log = Log::new();
    let (mut most, mut written, mut began_anew) = (0, 0, 0);
    while written < 10 * PAGES_SOFT {
        let before = log.pages();
        log.keep(400_000);
        let after = log.pages();
        if after < before {
            began_anew += 1;
            written += after;
        } else {
            written += after - before;
        }
        most = most.max(after);
        log.run_if_due();
    }
    assert!(began_anew > 0 && most < PAGES_HARD + 1_000, "{began_anew} times, at most {most} pages");
    assert!(log.is_sound());
}

#[test]
fn a_reader_that_stays_makes_nobody_try_again_before_the_log_has_grown() {
    let mut log = Log::new();
    let reader = log.reader();
    log.keep(PAGES_SOFT * 4_096);
    log.until(|log| log.checkpoints.due > log.pages());
    let due = log.checkpoints.due;
    for _ in 0..100 {
        log.keep(1);
        log.run_if_due();
        assert_eq!((log.checkpoints.due, log.checkpoints.ahead.look()), (due, Progress::Idle));
    }
    // And once it has gone, everything is moved.
    drop(reader);
    log.keep(PAGES_SOFT * 4_096);
    let grown = log.pages();
    log.until(|log| log.checkpoints.due > grown);
    log.keep(1);
    assert!(log.pages() < grown && log.is_sound(), "the log begins anew");
}

#[test]
fn a_reader_that_stays_is_not_waited_for_after_every_commit_to_a_long_log() {
    let mut log = Log::new();
    let _reader = log.reader();
    log.keep(1);
    // As after 128 MiB. Each wait for readers moves the next one.
    let mut dues = Vec::new();
    for more in 0..100 {
        log.checkpoints.pages.store(PAGES_HARD + more, Ordering::Relaxed);
        log.run_if_due();
        dues.push(log.checkpoints.due);
    }
    dues.dedup();
    assert_eq!(dues, [PAGES_HARD + PAGES_SOFT]);
    log.checkpoints.pages.store(PAGES_HARD + PAGES_SOFT, Ordering::Relaxed);
    log.run_if_due();
    assert_eq!(log.checkpoints.due, PAGES_HARD + 2 * PAGES_SOFT);
}

#[test]
fn a_checkpoint_of_somebody_else_is_left_to_them_and_the_log_goes_on() {
    let mut log = Log::new();
    let reader = log.reader();
    log.keep(1);
    // Another one is in the middle of a checkpoint: it waits for that reader, and nobody else can make one.
    let file = log.dir.path().join("tasks.db");
    let (waits, waited) = std::sync::mpsc::channel();
    let other = std::thread::spawn(move || {
        let mut conn = Connection::open(file).unwrap();
        conn.busy_handler(Some(move |_| {
            let _ = waits.send(());
            std::thread::yield_now();
            true
        }))
        .unwrap();
        conn.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get::<_, i32>(0)).unwrap()
    });
    waited.recv().unwrap();
    log.checkpoints.pages.store(PAGES_SOFT, Ordering::Relaxed);
    log.until(|log| log.checkpoints.due == 2 * PAGES_SOFT);
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(other.join().unwrap(), 0, "theirs was done");
    log.keep(1);
    log.run_if_due();
    assert!(log.checkpoints.due < 2 * PAGES_SOFT, "a log that began anew counts from the start again");
    log.keep(PAGES_SOFT * 4_096);
    let grown = log.pages();
    log.until(|log| log.checkpoints.due > grown);
    log.keep(1);
    assert!(log.pages() < grown && log.is_sound());
}
