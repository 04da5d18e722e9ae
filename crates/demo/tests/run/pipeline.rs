//! What a run leaves behind, and what the next one makes of it.

use std::fs;

use poolwright_demo::id::SourceId;
use poolwright_demo::{Error, RunOptions, Summary, run, search};

use crate::place::{Place, reasons};

/// What does not depend on time or on who did the work.
fn counts(summary: &Summary) -> [u64; 10] {
    [
        summary.documents,
        summary.images,
        summary.chunks,
        summary.summaries,
        summary.questions,
        summary.terms,
        summary.wiki_pages,
        summary.dead_letters,
        summary.skipped,
        summary.unfinished,
    ]
}

#[tokio::test]
async fn the_sample_goes_through_all_pools_to_its_end() {
    let place = Place::with_sample();
    let summary = place.run().await;
    assert_eq!((summary.documents, summary.images, summary.summaries), (9, 4, 9));
    assert_eq!((summary.dead_letters, summary.skipped, summary.unfinished), (2, 0, 0));
    assert_eq!((summary.new, summary.changed, summary.unchanged), (15, 0, 0));
    let reasons = reasons(&summary);
    assert!(reasons["broken/cut-off.json"].contains("cut off"), "{reasons:?}");
    assert!(reasons["broken/half-a-picture.png"].contains("cut off"), "{reasons:?}");
    assert!(!summary.interrupted && summary.other_tasks == 0);
    // Sync, 10 files with text, 5 pictures; for each document that was read one more, summary, questions and a graph
    // for each chunk; at least one drawing of the wiki.
    let at_least = 1 + 15 + 9 + 9 + 9 + summary.chunks + 1;
    assert!(summary.tasks >= at_least, "{} tasks, {at_least} expected", summary.tasks);
}

#[tokio::test]
async fn without_a_folder_the_sample_is_unpacked_and_read() {
    let place = Place::new();
    // The present folder of this test has no `docs`.
    let summary = place.run_with(RunOptions::at(place.home())).await;
    let sample = place.home().join("sample").canonicalize().unwrap();
    assert_eq!(summary.folders, [SourceId::from(sample.to_str().unwrap().to_owned())]);
    assert_eq!((summary.documents, summary.images, summary.dead_letters), (9, 4, 2));
}

#[tokio::test]
async fn the_same_files_give_the_same_counts_on_either_store() {
    let one = Place::with_sample();
    let other = Place::with_sample();
    let first = one.run().await;
    let memory = RunOptions { broker: "memory:".to_owned(), ..other.options() };
    let second = other.run_with(memory).await;
    assert_eq!(counts(&first), counts(&second));
    assert!(first.chunks > 20 && first.questions > 20 && first.terms > 20, "{first:?}");
}

#[tokio::test]
async fn a_second_run_finds_everything_as_it_was_and_works_on_nothing() {
    let place = Place::with_sample();
    let first = place.run().await;
    let pages = place.pages();
    let second = place.run().await;
    assert_eq!(counts(&second), counts(&first));
    assert_eq!((second.new, second.changed, second.resumed, second.removed), (0, 0, 0, 0));
    assert_eq!(second.unchanged, 15, "what failed stays failed");
    assert_eq!(second.tasks, 2, "the sync and a look at the wiki");
    assert_eq!(place.pages(), pages);
    assert_eq!(reasons(&second), reasons(&first));
}

#[tokio::test]
async fn only_what_came_changed_or_went_is_worked_on() {
    let place = Place::with_sample();
    let first = place.run().await;
    place.put("handbook/capstan.md", "# Capstan\n\nA capstan is a winch that stands upright.\n");
    place.put("handbook/slipway.md", "# Slipway\n\nA slipway is now a museum.\n");
    place.remove("notes/visitors.txt");
    let second = place.run().await;
    assert_eq!((second.new, second.changed, second.removed, second.unchanged), (1, 1, 1, 13));
    assert_eq!((second.documents, second.unfinished), (first.documents, 0));
    let found = |words: &str| -> Vec<String> {
        let hits = search(&place.home(), words, 10).unwrap();
        hits.into_iter().map(|hit| hit.path).collect()
    };
    assert_eq!(found("capstan upright"), ["handbook/capstan.md"]);
    assert_eq!(found("slipway museum"), ["handbook/slipway.md"]);
    assert!(!found("visitors").contains(&"notes/visitors.txt".to_owned()));
    let pages = place.pages();
    let is_there = |part: &str| pages.keys().any(|path| path.to_string_lossy().contains(part));
    assert!(is_there("capstan") && !is_there("visitors"));
    // Two files of a chunk each: reading, post-processing, summary, questions, graph; the rest is sync and wiki.
    assert!((12..=16).contains(&second.tasks), "{}", second.tasks);
}

#[tokio::test]
async fn a_failed_file_is_tried_again_when_it_changes_or_when_somebody_asks() {
    let place = Place::with_sample();
    place.run().await;
    let asked = place.run_with(RunOptions { retry_failed: true, ..place.options() }).await;
    assert_eq!((asked.resumed, asked.dead_letters), (2, 2), "their content is as bad as before");
    place.put("broken/cut-off.json", r#"{"boat": "Heron", "yard": "North"}"#);
    let mended = place.run().await;
    assert_eq!((mended.changed, mended.resumed), (1, 0));
    assert_eq!(reasons(&mended).into_keys().collect::<Vec<_>>(), ["broken/half-a-picture.png"]);
    assert_eq!((mended.documents, mended.unfinished), (10, 0));
}

#[tokio::test]
async fn every_link_of_the_wiki_leads_to_a_page() {
    let place = Place::with_sample();
    let summary = place.run().await;
    let pages = place.pages();
    assert_eq!(pages.len() as u64, summary.wiki_pages);
    let mut links = 0;
    for (page, text) in &pages {
        for target in text.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
            let full = page.parent().unwrap().join(target.0);
            assert!(full.is_file(), "{} leads to {}", page.display(), target.0);
            links += 1;
        }
    }
    assert!(links > pages.len() * 2, "{links} links on {} pages", pages.len());
    let index = &pages[&place.home().join("wiki/index.md")];
    assert!(index.contains("9 documents · 4 pictures") && index.contains("## Not read"), "{index}");
}

#[tokio::test]
async fn a_page_that_somebody_deleted_comes_back() {
    let place = Place::with_sample();
    place.run().await;
    let index = place.home().join("wiki/index.md");
    let text = fs::read_to_string(&index).unwrap();
    fs::remove_file(&index).unwrap();
    place.run().await;
    assert_eq!(fs::read_to_string(&index).unwrap(), text);
}

#[tokio::test]
async fn folders_are_knowledge_bases_of_their_own_in_one_library() {
    let (place, other) = (Place::with_sample(), Place::new());
    other.put("oars.md", "# Oars\n\nAn oar is a lever. See [the slip](../files/handbook/slipway.md).\n");
    let folders = vec![place.files(), other.files(), place.files().join("../files")];
    let both = place.run_with(RunOptions { folders, ..place.options() }).await;
    assert_eq!((both.folders.len(), both.documents, both.new), (2, 10, 16));
    let one = RunOptions { folders: vec![other.files()], ..place.options() };
    let one = place.run_with(one).await;
    assert_eq!((one.documents, one.chunks, one.dead_letters, one.unchanged), (1, 1, 0, 1));
    assert_eq!(one.wiki_pages, both.wiki_pages, "the wiki holds both");
    assert_eq!(search(&place.home(), "lever", 5).unwrap()[0].path, "oars.md");
}

#[tokio::test]
async fn a_home_inside_the_folder_is_not_read() {
    let place = Place::new();
    place.put("a.md", "# Anchor\n\nAn anchor is a hook.\n");
    let home = place.files().join("out");
    let options = RunOptions { folders: vec![place.files()], ..RunOptions::at(&home) };
    let first = place.run_with(options.clone()).await;
    let second = place.run_with(options).await;
    assert_eq!((first.documents, second.documents, second.new), (1, 1, 0));
}

#[tokio::test]
async fn what_cannot_begin_is_a_clear_error() {
    let place = Place::new();
    let with = |options: RunOptions| async move { Box::pin(run(options)).await.unwrap_err().to_string() };
    let gone = with(RunOptions { folders: vec!["/no/such/folder".into()], ..place.options() }).await;
    assert!(gone.starts_with("cannot read /no/such/folder: "), "{gone}");
    assert!(!place.home().exists(), "nothing was begun");
    place.put("a.md", "words");
    let file = with(RunOptions { folders: vec![place.files().join("a.md")], ..place.options() }).await;
    assert!(file.contains("a.md: not a directory"), "{file}");
    let pool = with(RunOptions { pools: Some(vec!["cor".to_owned()]), ..place.options() }).await;
    assert!(pool.contains("did you mean `core`"), "{pool}");
    let store = with(RunOptions { broker: "tasks.db".to_owned(), ..place.options() }).await;
    assert!(store.contains("did you mean `sqlite://tasks.db`"), "{store}");
    let never = search(&place.home().join("elsewhere"), "words", 5).unwrap_err();
    assert!(matches!(never, Error::NoLibrary { .. }), "{never}");
    assert!(!place.home().join("elsewhere").exists(), "a search makes nothing");
}
