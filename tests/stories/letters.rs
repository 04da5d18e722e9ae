//! Every road to the archive leaves exactly one dead letter, whatever happens to the sink.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use acceptance::crew::Crew;
use acceptance::place::{Place, play, send};
use acceptance::stage::{Part, Play};
use acceptance::{impatient, safely};
use poolwright::core::{BoxFuture, Class, DeadLetter, DeadLetterSink};
use poolwright::inspector::Letters;
use poolwright::ledger::{Filter, ListRequest};
use poolwright::prelude::*;
use poolwright::worker::Options;

use crate::{WORKER, place};

const QUEUES: &str = r#"
[runtime]
lease = "1s"
stop_grace = "50ms"

[retry.soon]
kind = "fixed"
delay = "1ms"

[task_defaults]
retry = "soon"

[pools.main]
workers = 4
queues = { work = 1 }

[tasks.work]
queue = "work"
max_retry = 2
[tasks.quick]
queue = "work"
max_retry = 0
timeout = "400ms"
[tasks.fragile]
queue = "work"
max_crashes = 1
"#;

const TYPES: [&str; 3] = ["work", "quick", "fragile"];

/// What a letter says: class, text, attempts.
type Said = (Class, String, u32);

async fn said(letters: &Letters) -> BTreeMap<String, Said> {
    let page = letters.list(ListRequest { limit: 200, ..ListRequest::default() }).await.unwrap();
    assert!(page.next.is_none());
    let count = page.letters.len();
    let letters = page.letters.into_iter();
    let said: BTreeMap<String, Said> = letters
        .map(|letter| (letter.task_id.to_string(), (letter.class, letter.last_error, letter.fail_count)))
        .collect();
    assert_eq!(said.len(), count, "one letter for each task");
    said
}

/// Looks often, but gives handlers their time on a busy machine: only those who die at once have a short lease, and the
/// guard around a handler has always spoken before the worker does.
fn thorough(options: &mut Options) {
    impatient(options);
    options.lease = Duration::from_secs(10);
    options.slack = Duration::from_secs(10);
}

/// Waits for so many letters. The counter alone does not tell: a letter may be recorded twice, which changes nothing.
async fn until_letters(app: &Running, count: usize) {
    loop {
        let recorded = app.status().counts.letters_recorded;
        if app.dead_letters().count(Filter::default()).await.unwrap() >= count as u64 {
            return;
        }
        app.until(|status| status.counts.letters_recorded > recorded).await;
    }
}

/// Two processes die of it, one after the other.
async fn kill_with(place: &Place, client: &Client, id: &str) {
    let crew = Crew::new(WORKER, place);
    send(client, "fragile", id, Part::Wait).await;
    for deaths in 1..=2 {
        let worker = crew.worker_with(&["fragile"], &[]).await;
        crew.journal.until(|log| log.starts_of(id) == deaths).await;
        worker.kill().await;
    }
}

#[tokio::test]
async fn every_road_to_the_archive_leaves_one_letter_that_says_why() {
    safely(async {
        let place = place(QUEUES);
        let client = place.client().await;
        kill_with(&place, &client, "crashed").await;

        let curtain = Play::new();
        let app = place.playing(&curtain.stage, &TYPES).tune(thorough).start().await.unwrap();
        for (task_type, id, part) in [
            ("work", "exhausted", Part::Fail),
            ("work", "permanent", Part::Permanent),
            ("quick", "timed-out", Part::Wait),
            ("quick", "timed-out-deaf", Part::Deaf),
        ] {
            send(&client, task_type, id, part).await;
        }
        play(&client, "work", "panicked", Part::Panic).max_retry(0).send().await.unwrap();
        client.raw("work", "no part").id("undecodable").send().await.unwrap();
        play(&client, "work", "operator", Part::Ok).delay(Duration::from_secs(3_600)).send().await.unwrap();
        app.inspector().archive("operator", "not today").await.unwrap();

        let roads = [
            ("crashed", Class::Crashed, "its worker died or lost contact", 2),
            ("exhausted", Class::Transient, "it did not work", 3),
            ("operator", Class::Operator, "not today", 0),
            ("panicked", Class::Panicked, "on purpose", 1),
            ("permanent", Class::Permanent, "it never will", 1),
            ("timed-out", Class::TimedOut, "stopped at a checkpoint", 1),
            ("timed-out-deaf", Class::TimedOut, "it did not return within 50ms", 1),
            ("undecodable", Class::Undecodable, "the payload is no", 1),
        ];
        until_letters(&app, roads.len()).await;
        let letters = said(&app.dead_letters()).await;
        assert_eq!(letters.len(), roads.len(), "{letters:#?}");
        for (id, class, text, attempts) in roads {
            let (of, error, made) = &letters[id];
            assert_eq!((*of, *made), (class, attempts), "{id}: {error}");
            assert!(error.contains(text), "{id}: {error}");
            assert_eq!(app.inspector().task(id).await.unwrap().last_error_class, Some(class), "{id}");
        }
        app.shutdown().await.unwrap();

        // The next process looks through the archive at its start, and finds nothing to add.
        let app = place.playing(&curtain.stage, &TYPES).tune(impatient).start().await.unwrap();
        send(&client, "work", "another", Part::Permanent).await;
        until_letters(&app, roads.len() + 1).await;
        assert_eq!(said(&app.dead_letters()).await.len(), roads.len() + 1);
        app.shutdown().await.unwrap();
    })
    .await;
}

/// The application's own sink, which can be away.
#[derive(Clone, Default)]
struct Desk(Arc<DeskState>);

#[derive(Default)]
struct DeskState {
    is_away: AtomicBool,
    letters: Mutex<Vec<DeadLetter>>,
}

impl Desk {
    fn ids(&self) -> Vec<String> {
        self.0.letters.lock().unwrap().iter().map(|letter| letter.task.id.to_string()).collect()
    }
}

impl DeadLetterSink for Desk {
    fn record<'a>(&'a self, letters: &'a [DeadLetter]) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(async move {
            if self.0.is_away.load(Ordering::Relaxed) {
                return Err("nobody is at the desk".into());
            }
            let mut kept = self.0.letters.lock().unwrap();
            for letter in letters {
                // Its key: the same letter may come twice.
                if !kept.iter().any(|other| (&other.task, other.token) == (&letter.task, letter.token)) {
                    kept.push(letter.clone());
                }
            }
            Ok(())
        })
    }
}

#[tokio::test]
async fn a_sink_that_is_away_changes_no_fate_and_gets_its_letters_later() {
    safely(async {
        let place = place(QUEUES);
        let (curtain, desk) = (Play::new(), Desk::default());
        let start =
            || place.playing(&curtain.stage, &TYPES).on_dead_letter(desk.clone()).tune(impatient).start();
        desk.0.is_away.store(true, Ordering::Relaxed);
        let app = start().await.unwrap();
        send(&app.client(), "work", "first", Part::Permanent).await;
        send(&app.client(), "work", "fine", Part::Ok).await;
        let status = app.until(|status| status.counts.sink_failed > 1 && status.counts.completed == 1).await;
        assert_eq!((status.counts.archived, status.counts.letters_recorded), (1, 0));
        assert!(desk.ids().is_empty());
        desk.0.is_away.store(false, Ordering::Relaxed);
        app.until(|status| status.counts.letters_recorded == 1).await;
        assert_eq!(desk.ids(), ["first"]);

        // Away for the rest of this process's life; the next one brings what is missing.
        desk.0.is_away.store(true, Ordering::Relaxed);
        send(&app.client(), "work", "second", Part::Permanent).await;
        app.until(|status| status.counts.archived == 2).await;
        app.shutdown().await.unwrap();
        desk.0.is_away.store(false, Ordering::Relaxed);
        let app = start().await.unwrap();
        app.until(|status| status.counts.letters_recorded == 1).await;
        assert_eq!(desk.ids(), ["first", "second"]);
        assert_eq!(app.dead_letters().count(Filter::default()).await.unwrap(), 2);
        app.shutdown().await.unwrap();
    })
    .await;
}
