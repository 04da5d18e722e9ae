//! The writer under calls that fail, hang up or panic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use poolwright_broker::How;
use poolwright_core::clock::SystemClock;
use poolwright_core::{Clock, QueueName, TaskId, TypeName};
use rusqlite::Connection;

use super::*;
use crate::error::Fault;

struct Stand {
    writer: Writer,
    dir: tempfile::TempDir,
}

impl Stand {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tasks.db");
        let mut conn = Connection::open(&path).unwrap();
        conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())).unwrap();
        crate::migrate::up(&mut conn, &path).unwrap().unwrap();
        conn.execute_batch("CREATE TABLE said (word TEXT NOT NULL CHECK (word <> 'forbidden'))").unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let desk = Desk {
            checkpoints: {
                let second = Connection::open(&path).unwrap();
                Checkpoints::watch(&mut conn, second, "tasks.db".into(), Arc::default()).unwrap()
            },
            conn,
            file: path.display().to_string(),
            clock,
            chance: Chance::seeded(1),
            bells: Arc::new(Bells::new()),
            known: Known::default(),
        };
        Self { writer: Writer::start(desk).unwrap(), dir }
    }

    async fn say(&self, word: &'static str) -> Result<(), Error> {
        self.writer.write(1, move |work| say(work, word)).await
    }

    fn said(&self) -> Vec<String> {
        let conn = Connection::open(self.dir.path().join("tasks.db")).unwrap();
        let mut statement = conn.prepare("SELECT word FROM said ORDER BY word").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }
}

fn say(work: &mut Work<'_>, word: &str) -> Result<(), Fault> {
    work.conn.execute("INSERT INTO said (word) VALUES (?1)", [word])?;
    Ok(())
}

/// Holds the writer until the other calls have arrived, so that they share a transaction.
async fn together<T>(stand: &Stand, calls: impl Future<Output = T>) -> T {
    let (open, gate) = std::sync::mpsc::channel::<()>();
    let held = stand.writer.write(1, move |_| {
        // The sender is dropped when all calls are in the inbox.
        let _ = gate.recv();
        Ok(())
    });
    let release = async {
        while stand.writer.inbox.capacity() > INBOX_CALLS_MAX - 3 {
            tokio::task::yield_now().await;
        }
        drop(open);
    };
    let (held, done, ()) = tokio::join!(held, calls, release);
    held.unwrap();
    done
}

#[tokio::test]
async fn the_guilty_call_of_a_group_fails_alone() {
    let stand = Stand::new();
    let calls = async { tokio::join!(stand.say("a"), stand.say("forbidden"), stand.say("b")) };
    let (a, forbidden, b) = together(&stand, calls).await;
    assert_eq!((a, b), (Ok(()), Ok(())));
    assert!(matches!(forbidden, Err(Error::Refused { .. })), "{forbidden:?}");
    assert_eq!(stand.said(), ["a", "b"]);
}

#[tokio::test]
async fn a_call_that_panics_fails_alone_and_the_writer_goes_on() {
    let stand = Stand::new();
    let panics = stand.writer.write(1, |work| -> Result<(), Fault> {
        say(work, "half done")?;
        panic!("a bug in a step");
    });
    let calls = async { tokio::join!(stand.say("a"), panics, stand.say("b")) };
    let (a, panicked, b) = together(&stand, calls).await;
    assert_eq!((a, b), (Ok(()), Ok(())));
    assert!(panicked.unwrap_err().to_string().contains("a step panicked"));
    stand.say("c").await.unwrap();
    assert_eq!(stand.said(), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_refusal_undoes_nothing_of_others() {
    let stand = Stand::new();
    let refuses =
        stand.writer.write(1, |_| Err::<(), _>(Fault::Said(Error::Refused { why: "no".to_owned() })));
    let calls = async { tokio::join!(stand.say("a"), refuses, stand.say("b")) };
    let (a, refused, b) = together(&stand, calls).await;
    assert_eq!((a, b), (Ok(()), Ok(())));
    assert_eq!(refused, Err(Error::Refused { why: "no".to_owned() }));
    assert_eq!(stand.said(), ["a", "b"]);
}

#[tokio::test]
async fn a_call_whose_caller_went_away_before_its_turn_is_not_done() {
    let stand = Stand::new();
    let ran = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ran);
    let abandoned = stand.writer.write(1, move |_| {
        seen.store(true, Ordering::SeqCst);
        Ok(())
    });
    let calls = async {
        let mut abandoned = Box::pin(abandoned);
        // Sent, then dropped while the writer is held up.
        let sent =
            std::future::poll_fn(|cx| std::task::Poll::Ready(abandoned.as_mut().poll(cx).is_pending()));
        assert!(sent.await);
        drop(abandoned);
        tokio::join!(stand.say("a"), stand.say("b"))
    };
    let (a, b) = together(&stand, calls).await;
    assert_eq!((a, b), (Ok(()), Ok(())));
    assert!(!ran.load(Ordering::SeqCst));
}

#[tokio::test]
async fn what_was_sent_before_the_end_is_done_and_what_comes_after_is_refused() {
    let stand = Stand::new();
    let (said, ()) = tokio::join!(stand.say("a"), stand.writer.close());
    said.unwrap();
    let late = stand.say("b").await;
    assert!(late.unwrap_err().to_string().contains("the store is closed"));
    stand.writer.close().await;
    assert_eq!(stand.said(), ["a"]);
}

fn new_task(id: &str) -> NewTask {
    let (queue, id) = (QueueName::new("q").unwrap(), TaskId::new(id).unwrap());
    NewTask::new(queue, id, TypeName::new("x:y").unwrap(), "p")
}

impl Stand {
    async fn submit(&self, ids: &[&str]) -> Result<Vec<Result<How, Error>>, Error> {
        let anchor = Arc::new(Anchor::at(&self.dir.path().join("tasks.db"), SystemClock.now()));
        let tasks: Vec<_> = ids.iter().map(|id| new_task(id)).collect();
        let outcomes = self.writer.submit(tasks, ids.len(), anchor).await?;
        Ok(outcomes.into_iter().map(|outcome| outcome.map(|stored| stored.how)).collect())
    }
}

#[tokio::test]
async fn submissions_that_run_as_one_have_their_own_outcomes() {
    let stand = Stand::new();
    let calls =
        async { tokio::join!(stand.submit(&["a", "b"]), stand.submit(&["b", "c"]), stand.submit(&["d"])) };
    let (first, second, third) = together(&stand, calls).await;
    assert_eq!(first, Ok(vec![Ok(How::Stored); 2]));
    let taken = Error::DuplicateId { key: new_task("b").key, state: poolwright_core::State::Pending };
    assert_eq!(second, Ok(vec![Err(taken), Ok(How::Stored)]));
    assert_eq!(third, Ok(vec![Ok(How::Stored)]));
}

#[tokio::test]
async fn submissions_are_stored_although_a_call_between_them_fails() {
    let stand = Stand::new();
    let calls =
        async { tokio::join!(stand.submit(&["a"]), stand.say("forbidden"), stand.submit(&["a", "b"])) };
    let (first, forbidden, second) = together(&stand, calls).await;
    assert_eq!(first, Ok(vec![Ok(How::Stored)]));
    assert!(forbidden.is_err());
    let second = second.unwrap();
    assert!(second[0].is_err() && second[1] == Ok(How::Stored), "{second:?}");
}

#[tokio::test]
async fn a_submission_to_a_file_that_is_gone_is_refused_and_others_beside_it_are_not() {
    let stand = Stand::new();
    let elsewhere = tempfile::NamedTempFile::new().unwrap();
    let lost = Arc::new(Anchor::at(elsewhere.path(), SystemClock.now()));
    drop(elsewhere);
    lost.check(SystemClock.now()).unwrap_err();
    let calls = async {
        tokio::join!(
            stand.submit(&["a"]),
            stand.writer.submit(vec![new_task("b")], 1, lost),
            stand.submit(&["c"])
        )
    };
    let (a, b, c) = together(&stand, calls).await;
    assert!(a.is_ok() && b.is_err() && c.is_ok(), "{b:?}");
}
