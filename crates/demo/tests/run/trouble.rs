//! A library that comes to harm during a run: the run ends, and says what to do.

use std::fs;
use std::path::{Path, PathBuf};

use poolwright::core::QueueName;
use poolwright::prelude::*;
use poolwright::{Stores, Topology};
use poolwright_demo::Error;

use crate::place::Place;

const PRESET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../queues.toml");

/// Runs over the sample, harms the library while nine summaries wait, lets them go on, and gives what the run said.
async fn harmed(place: &Place, harm: impl FnOnce(&Path)) -> Error {
    let stores = Stores::open(&place.options().broker, None).await.unwrap();
    let (topology, _) = Topology::load(PRESET).unwrap();
    let inspector = TaskInspector::new(stores.broker.clone(), topology);
    inspector.pause("summary", "the library is about to come to harm").await.unwrap();
    let mut news = stores.broker.watch(vec![QueueName::new("summary").unwrap()]);
    let options = place.options();
    let run = tokio::spawn(async move { Box::pin(poolwright_demo::run(options)).await });
    while inspector.queue("summary").await.unwrap().pending < 9 {
        news.changed().await;
    }
    harm(&library(place));
    inspector.resume("summary").await.unwrap();
    let error = run.await.unwrap().expect_err("what it found cannot be kept");
    stores.broker.close().await.unwrap();
    error
}

fn library(place: &Place) -> PathBuf {
    place.home().join("library.db")
}

/// The library's file and the log beside it.
fn remove(library: &Path) {
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{end}", library.display()));
    }
}

#[tokio::test]
async fn a_library_that_is_overwritten_with_rubbish_during_a_run_ends_it_with_the_cure() {
    let place = Place::with_sample();
    let error = harmed(&place, |library| {
        for end in ["", "-wal"] {
            let file = format!("{}{end}", library.display());
            let bytes = fs::metadata(&file).unwrap().len();
            fs::write(file, "no database ".repeat(bytes as usize / 12 + 1)).unwrap();
        }
    })
    .await;
    assert!(matches!(error, Error::BrokenLibrary { .. }), "{error}");
    let said = error.to_string();
    let start = format!("cannot use the library {}: ", library(&place).display());
    assert!(said.starts_with(&start) && said.contains("delete it and run again"), "{said}");

    remove(&library(&place));
    let summary = place.run().await;
    assert_eq!((summary.documents, summary.dead_letters, summary.unfinished), (9, 2, 0), "the cure is one");
}

#[tokio::test]
async fn a_library_that_is_deleted_during_a_run_ends_it_and_the_next_run_makes_it_anew() {
    let place = Place::with_sample();
    let error = harmed(&place, |library| fs::remove_file(library).unwrap()).await;
    assert!(matches!(error, Error::LostLibrary { .. }), "{error}");
    assert!(error.to_string().contains("was deleted or replaced while it was in use; run again"), "{error}");
    assert!(!library(&place).exists(), "no empty one lies in its place");
    let summary = place.run().await;
    assert_eq!((summary.documents, summary.dead_letters, summary.unfinished), (9, 2, 0));
}

#[tokio::test]
async fn a_library_whose_rows_cannot_be_read_ends_the_run() {
    let place = Place::with_sample();
    let error = harmed(&place, |library| {
        let connection = rusqlite::Connection::open(library).unwrap();
        connection.execute("UPDATE documents SET status = 'odd'", []).unwrap();
    })
    .await;
    assert!(matches!(error, Error::BrokenLibrary { .. }), "{error}");
    assert!(error.to_string().contains("unknown word \"odd\""), "{error}");
}
