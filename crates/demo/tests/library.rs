//! The result store: writes are keyed and idempotent, old generations change nothing, search never fails on words.

use poolwright_demo::id::{ContentHash, DocumentId, Key, SourceId};
use poolwright_demo::library::{Admitted, Applied, Counts, Failed, Library, Part, Status, Trouble};
use poolwright_demo::stage::chunk::{Chunk, Size, cut};
use poolwright_demo::stage::question::Question;
use poolwright_demo::stage::read::{Document, Limits, read};
use poolwright_demo::stage::scan::{Found, Skipped};
use poolwright_demo::stage::{graph, image, summary};
use poolwright_demo::{Error, Kind};

const TEXT: &str = "# Yard\n\nThe slipway is a ramp. Heron uses the slipway.\n\n## Winch\n\nThe winch pulls Heron. 任务队列保存任务。\n";

struct Bench {
    _folder: tempfile::TempDir,
    library: Library,
    source: SourceId,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("folder");
        let library = Library::open(&folder.path().join("in/library.sqlite")).expect("opens");
        Self { _folder: folder, library, source: SourceId::from("/yard".to_owned()) }
    }

    fn admit(&self, path: &str, content: &str) -> Admitted {
        let kind = if path.ends_with(".png") { Kind::Png } else { Kind::Markdown };
        let found = Found {
            path: path.to_owned(),
            kind,
            size: content.len() as u64,
            hash: ContentHash::of(content.as_bytes()),
        };
        self.library.admit(&self.source, &found).expect("admits")
    }

    /// Admits, begins, reads and stores.
    fn stored(&self, path: &str, content: &str) -> (Key, Vec<Chunk>) {
        let key = self.admit(path, content).key;
        assert_eq!(self.library.begin(&key).expect("begins"), Applied::Done);
        let (document, chunks) = parsed(&key.document, content);
        assert_eq!(self.library.store_content(&key, &document, &chunks).expect("stores"), Applied::Done);
        (key, chunks)
    }

    /// Runs every part of a stored document.
    fn enriched(&self, key: &Key, chunks: &[Chunk]) {
        let parts = parts(chunks);
        assert_eq!(self.library.expect_parts(key, &parts).expect("expects"), Applied::Done);
        for part in &parts {
            assert_eq!(self.run(key, part, chunks), Applied::Done);
        }
    }

    fn run(&self, key: &Key, part: &Part, chunks: &[Chunk]) -> Applied {
        let done = match part {
            Part::Summary => {
                let texts: Vec<&str> = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
                let summary = summary::summarise(&texts, &summary::Options::default());
                self.library.store_summary(key, &summary)
            }
            Part::Questions(batch) => {
                let question =
                    Question { chunk: chunks[0].id.clone(), text: "What?".into(), answer: "That.".into() };
                self.library.store_questions(key, *batch, &[question])
            }
            Part::Graph(chunk) => {
                let text = &chunks.iter().find(|other| other.id == *chunk).expect("a chunk").text;
                self.library.store_graph(key, chunk, &graph::extract(text))
            }
        };
        done.expect("stores")
    }

    fn status(&self, key: &Key) -> Status {
        self.library.record(&key.document).expect("reads").expect("is there").status
    }

    fn counts(&self) -> Counts {
        self.library.counts().expect("counts")
    }

    fn found(&self, words: &str) -> Vec<String> {
        let hits = self.library.search(words, 10).expect("never a syntax error");
        hits.into_iter().map(|hit| format!("{} | {} | {}", hit.path, hit.heading, hit.snippet)).collect()
    }
}

fn trouble(reason: &str) -> Trouble {
    Trouble { task_type: "document:process".into(), class: "permanent".into(), reason: reason.into() }
}

fn parsed(id: &DocumentId, content: &str) -> (Document, Vec<Chunk>) {
    let document = read(Kind::Markdown, "a.md", content.as_bytes(), &Limits::default()).expect("reads");
    let chunks = cut(id, &document, &Size::default());
    (document, chunks)
}

fn parts(chunks: &[Chunk]) -> Vec<Part> {
    let graphs = chunks.iter().map(|chunk| Part::Graph(chunk.id.clone()));
    [Part::Summary, Part::Questions(0)].into_iter().chain(graphs).collect()
}

#[test]
fn a_document_walks_from_pending_to_completed() {
    let bench = Bench::new();
    let admitted = bench.admit("a.md", TEXT);
    assert_eq!(bench.status(&admitted.key), Status::Pending);
    let (key, chunks) = bench.stored("a.md", TEXT);
    assert_eq!((key.clone(), bench.status(&key)), (admitted.key, Status::Processing));
    let all = parts(&chunks);
    assert_eq!(bench.library.expect_parts(&key, &all).expect("expects"), Applied::Done);
    assert_eq!(bench.status(&key), Status::Finalizing);
    let (last, first) = all.split_last().expect("parts");
    for part in first {
        assert_eq!(bench.run(&key, part, &chunks), Applied::Done);
        assert_eq!(bench.status(&key), Status::Finalizing);
    }
    assert_eq!(bench.library.open_parts(&key).expect("reads"), std::slice::from_ref(last));
    assert_eq!(bench.run(&key, last, &chunks), Applied::Done);
    assert_eq!(bench.status(&key), Status::Completed);
    let known = bench.library.known(&bench.source).expect("reads");
    assert!(known[0].settled && known[0].hash == ContentHash::of(TEXT.as_bytes()));
}

#[test]
fn every_step_done_twice_changes_nothing() {
    let bench = Bench::new();
    let (key, chunks) = bench.stored("a.md", TEXT);
    bench.enriched(&key, &chunks);
    let (counts, hits) = (bench.counts(), bench.found("slipway"));
    assert_eq!(
        bench.admit("a.md", TEXT),
        Admitted { key: key.clone(), kind: Kind::Markdown, path: "a.md".into(), status: Status::Completed }
    );
    assert_eq!(bench.library.begin(&key).expect("begins"), Applied::Already);
    let (document, _) = parsed(&key.document, TEXT);
    assert_eq!(bench.library.store_content(&key, &document, &[]).expect("stores"), Applied::Already);
    assert_eq!(bench.library.expect_parts(&key, &[]).expect("expects"), Applied::Already);
    for part in parts(&chunks) {
        assert_eq!(bench.run(&key, &part, &chunks), Applied::Already);
    }
    assert_eq!(bench.library.fail(&key, &trouble("too late")).expect("fails"), Applied::Already);
    assert_eq!((bench.counts(), bench.found("slipway")), (counts, hits));
    assert_eq!(bench.status(&key), Status::Completed);
}

#[test]
fn reading_that_was_interrupted_is_done_again_over_the_same_rows() {
    let bench = Bench::new();
    let (key, chunks) = bench.stored("a.md", TEXT);
    let counts = bench.counts();
    let (document, _) = parsed(&key.document, TEXT);
    assert_eq!(bench.library.store_content(&key, &document, &chunks).expect("stores"), Applied::Done);
    assert_eq!(bench.counts(), counts);
    assert_eq!(bench.found("slipway").len(), 1);
}

#[test]
fn an_old_generation_changes_nothing() {
    let bench = Bench::new();
    let (old, chunks) = bench.stored("a.md", TEXT);
    assert_eq!(bench.library.expect_parts(&old, &parts(&chunks)).expect("expects"), Applied::Done);
    let new = bench.admit("a.md", "# Other\n\nNothing of it.\n").key;
    assert!(new.generation > old.generation && new.document == old.document);
    let (document, _) = parsed(&old.document, TEXT);
    assert_eq!(bench.library.begin(&old).expect("begins"), Applied::Stale);
    assert_eq!(bench.library.store_content(&old, &document, &chunks).expect("stores"), Applied::Stale);
    assert_eq!(bench.library.expect_parts(&old, &[]).expect("expects"), Applied::Stale);
    for part in parts(&chunks) {
        assert_eq!(bench.run(&old, &part, &chunks), Applied::Stale);
    }
    assert_eq!(bench.library.fail(&old, &trouble("late")).expect("fails"), Applied::Stale);
    assert_eq!(bench.library.chunks(&old).expect("reads"), None);
    assert_eq!((bench.status(&new), bench.counts().questions), (Status::Pending, 0));
}

#[test]
fn old_content_is_found_until_the_new_is_stored() {
    let bench = Bench::new();
    let (old, chunks) = bench.stored("a.md", TEXT);
    bench.enriched(&old, &chunks);
    bench.admit("a.md", "# Other\n\nA windmill turns.\n");
    assert_eq!(bench.found("slipway").len(), 1);
    let (new, _) = bench.stored("a.md", "# Other\n\nA windmill turns.\n");
    assert_eq!((bench.found("slipway").len(), bench.found("windmill").len()), (0, 1));
    let counts = bench.counts();
    assert_eq!((counts.questions, counts.summaries, counts.terms), (0, 0, 0), "nothing of the old is left");
    assert_eq!(
        bench.library.record(&new.document).expect("reads").and_then(|record| record.title).as_deref(),
        Some("Other")
    );
}

#[test]
fn a_removed_file_takes_all_with_it_and_a_late_task_cannot_bring_it_back() {
    let bench = Bench::new();
    let (key, chunks) = bench.stored("a.md", TEXT);
    bench.enriched(&key, &chunks);
    assert!(bench.library.remove(&bench.source, "a.md").expect("removes"));
    assert!(!bench.library.remove(&bench.source, "a.md").expect("is content"));
    assert_eq!((bench.counts(), bench.found("slipway").len()), (Counts::default(), 0));
    let again = bench.admit("a.md", TEXT).key;
    assert_ne!(again.generation, key.generation, "the same file of a later life is another one");
    let (document, _) = parsed(&key.document, TEXT);
    assert_eq!(bench.library.store_content(&key, &document, &chunks).expect("stores"), Applied::Stale);
}

#[test]
fn a_failed_document_has_a_reason_no_content_and_a_second_chance() {
    let bench = Bench::new();
    let (key, chunks) = bench.stored("a.md", TEXT);
    bench.enriched(&key, &chunks);
    let bad = bench.admit("a.md", "cut").key;
    assert_eq!(bench.library.fail(&bad, &trouble("the file is cut off")).expect("fails"), Applied::Done);
    let counts = bench.counts();
    assert_eq!((counts.documents, counts.chunks, counts.failed, counts.unfinished), (0, 0, 1, 0));
    let skipped = vec![Skipped { path: "b.exe".into(), reason: Error::Empty }];
    bench.library.record_skips(&bench.source, &skipped).expect("records");
    bench.library.record_skips(&bench.source, &skipped).expect("records in place of the old");
    assert_eq!(bench.counts().skipped, 1);
    let failures = bench.library.failures().expect("reads");
    let failures: Vec<_> =
        failures.iter().map(|failure| (failure.path.as_str(), failure.reason.as_str())).collect();
    assert_eq!(failures, [("a.md", "the file is cut off")]);
    let again = bench.library.retry_failed(&bench.source).expect("retries");
    assert_eq!((again.len(), again[0].status), (1, Status::Pending));
    assert!(again[0].key.generation > bad.generation);
    assert_eq!(bench.library.retry_failed(&bench.source).expect("retries").len(), 0);
}

#[test]
fn a_failed_part_does_not_hold_its_document_up() {
    let bench = Bench::new();
    let (key, chunks) = bench.stored("a.md", TEXT);
    let all = [Part::Summary, Part::Questions(0)];
    assert_eq!(bench.library.expect_parts(&key, &all).expect("expects"), Applied::Done);
    assert_eq!(
        bench.library.fail_part(&key, &Part::Summary, &trouble("no words")).expect("fails"),
        Applied::Done
    );
    assert_eq!(
        bench.library.fail_part(&key, &Part::Summary, &trouble("no words")).expect("fails"),
        Applied::Already
    );
    assert_eq!(bench.run(&key, &all[1], &chunks), Applied::Done);
    assert_eq!(bench.status(&key), Status::Completed);
    assert_eq!(bench.run(&key, &Part::Questions(7), &chunks), Applied::Stale, "nobody waits for it");
    let failed = Failed { source: bench.source.clone(), path: "a.md".into(), trouble: trouble("no words") };
    assert_eq!(bench.library.failed(std::slice::from_ref(&bench.source)).expect("reads"), [failed]);
    assert_eq!(bench.run(&key, &Part::Summary, &chunks), Applied::Done, "its dead letter was replayed");
    assert_eq!(bench.library.failed(std::slice::from_ref(&bench.source)).expect("reads"), []);
    assert_eq!(bench.library.retry_failed(&bench.source).expect("retries").len(), 0);
}

#[test]
fn a_failed_document_whose_letter_is_replayed_begins_again_in_the_same_life() {
    let bench = Bench::new();
    let key = bench.admit("a.md", TEXT).key;
    assert_eq!(bench.library.fail(&key, &trouble("the disk was away")).expect("fails"), Applied::Done);
    assert!(bench.library.is_settled(&bench.source).expect("reads"));
    let (again, _) = bench.stored("a.md", TEXT);
    assert_eq!((again, bench.status(&key)), (key.clone(), Status::Processing));
    assert!(!bench.library.is_settled(&bench.source).expect("reads"));
    assert!(!bench.library.is_settled_around(&key.document).expect("reads"));
}

#[test]
fn counts_and_reasons_are_told_of_the_folders_that_are_asked_for() {
    let bench = Bench::new();
    let (key, chunks) = bench.stored("a.md", TEXT);
    bench.enriched(&key, &chunks);
    let other = [SourceId::from("/elsewhere".to_owned())];
    let left = ["a.exe", "b.exe", "c.zip"].map(|path| Skipped {
        path: path.into(),
        reason: Error::Unsupported { what: format!(".{} files", &path[2..]) },
    });
    bench.library.record_skips(&other[0], &left).expect("records");
    let both = [bench.source.clone(), other[0].clone()];
    assert_eq!(bench.library.counts_of(&both).expect("counts"), bench.counts());
    let only = bench.library.counts_of(&other).expect("counts");
    assert_eq!((only.documents, only.chunks, only.terms, only.skipped), (0, 0, 0, 3));
    let left = bench.library.left_out_of(&other).expect("reads");
    let left: Vec<_> = left.iter().map(|left| (left.files, left.example.as_str())).collect();
    assert_eq!(left, [(2, "a.exe"), (1, "c.zip")]);
    assert_eq!(bench.library.left_out_of(&[]).expect("reads"), []);
    assert_eq!(bench.library.left_out().expect("reads").len(), 2);
}

#[test]
fn a_document_without_parts_is_completed_at_once_and_a_picture_when_it_is_stored() {
    let bench = Bench::new();
    let (key, _) = bench.stored("a.md", TEXT);
    assert_eq!(bench.library.expect_parts(&key, &[]).expect("expects"), Applied::Done);
    assert_eq!(bench.status(&key), Status::Completed);
    let png = include_bytes!("../sample/pictures/harbour.png");
    let picture = image::inspect(Kind::Png, png, &image::Limits::default()).expect("decodes");
    let key = bench.admit("b.png", "png").key;
    assert_eq!(bench.library.store_picture(&key, &picture).expect("stores"), Applied::Done);
    assert_eq!(bench.library.store_picture(&key, &picture).expect("stores"), Applied::Already);
    assert_eq!((bench.status(&key), bench.counts().images), (Status::Completed, 1));
    assert_eq!(bench.library.thumbnail(&key.document).expect("reads"), Some(picture.thumbnail));
}

#[test]
fn batches_and_single_chunks_are_read_by_place_and_id() {
    let bench = Bench::new();
    let content: String = (0..45).map(|at| format!("## Part {at}\n\nText of {at}.\n\n")).collect();
    let (key, chunks) = bench.stored("a.md", &content);
    let sizes: Vec<usize> = (0..4)
        .map(|batch| bench.library.batch(&key, batch).expect("reads").expect("current").len())
        .collect();
    assert_eq!((chunks.len(), sizes), (45, vec![20, 20, 5, 0]));
    assert_eq!(bench.library.chunks(&key).expect("reads").as_deref(), Some(chunks.as_slice()));
    assert_eq!(bench.library.chunk(&key, &chunks[7].id).expect("reads").as_ref(), Some(&chunks[7]));
}

#[test]
fn search_finds_words_phrases_beginnings_and_signs() {
    let bench = Bench::new();
    bench.stored("a.md", TEXT);
    bench.stored("b.md", "# Log\n\nThe ramp was closed. Heron waited at the winch, an old slipway winch.\n");
    assert_eq!(bench.found("ramps")[0], "a.md | Yard | The slipway is a **ramp**. Heron uses the slipway.");
    assert_eq!(bench.found("\"old slipway\"").len(), 1);
    assert_eq!(bench.found("slipw*").len(), 2);
    assert_eq!(bench.found("ramp windmill").len(), 2, "no chunk has both, so chunks with one are found");
    assert_eq!(bench.found("ramp closed").len(), 1);
    let hit = &bench.found("队列")[0];
    assert!(hit.ends_with("任务**队列**保存任务。"), "{hit}");
    let best = bench.library.search("winch", 10).expect("finds");
    assert!(
        best[0].heading.ends_with("Winch") && best[0].score > best[1].score,
        "a heading weighs more: {best:?}"
    );
    assert_eq!(bench.library.search("heron", 1).expect("finds").len(), 1);
}

#[test]
fn search_finds_a_word_in_whatever_case_it_is_written_or_typed() {
    let bench = Bench::new();
    bench.stored("a.md", "# Ärger in der Straße\n\nGRÖSSERE Häuser. Москва и ОДЕССА. Η ΟΔΟΣ.\n");
    let typed = [
        "ärger",
        "ÄRGER",
        "straße",
        "STRASSE",
        "Strasse",
        "größere",
        "GRÖSSERE",
        "HÄUSER",
        "häuser",
        "МОСКВА",
        "одесса",
        "οδος",
        "STRASS*",
        "\"der STRASSE\"",
        "STRASSE häuser",
    ];
    for words in typed {
        assert_eq!(bench.found(words).len(), 1, "{words}");
    }
    let marked = &bench.found("größere")[0];
    assert!(marked.contains("**GRÖSSERE** Häuser"), "{marked}");
    assert!(bench.found("STRAND").is_empty());
}

#[test]
fn nothing_that_is_typed_is_a_syntax_error() {
    let bench = Bench::new();
    bench.stored("a.md", TEXT);
    let typed = [
        "",
        " ",
        "\"",
        "\"\"",
        "*",
        "AND",
        "NOT NOT",
        "NEAR(",
        "a NEAR/2 b",
        "(",
        ")",
        "heading:yard",
        "{a b}:c",
        "^a",
        "-a",
        "+",
        "a AND",
        "'; DROP TABLE chunks; --",
        "\0",
        "a\0b",
        "%",
        "_",
        "\u{200b}",
        "💡",
        "é̀",
        "\\",
        "a\"b\"c",
    ];
    for words in typed {
        bench.library.search(words, 10).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    }
    for at in 0..2_000_u32 {
        let signs = b"a\"*()-^:+ N'{}";
        let words: String = (0..8)
            .map(|place| {
                char::from(signs[(at.wrapping_mul(2_654_435_761) >> (place * 3)) as usize % signs.len()])
            })
            .collect();
        bench.library.search(&words, 10).unwrap_or_else(|error| panic!("{words:?}: {error}"));
    }
    assert_eq!(bench.found("winch").len(), 1, "the table is still there");
}

#[test]
fn a_mark_set_during_drawing_outlives_its_clearing() {
    let bench = Bench::new();
    let (key, chunks) = bench.stored("a.md", TEXT);
    let before = bench.library.dirty(10).expect("reads");
    assert_eq!(before.len(), 1);
    bench.enriched(&key, &chunks);
    bench.library.clear_dirty(&before).expect("clears");
    let after = bench.library.dirty(10).expect("reads");
    assert_eq!((after.len(), &after[0].document), (1, &key.document));
    bench.library.clear_dirty(&after).expect("clears");
    assert!(bench.library.dirty(10).expect("reads").is_empty());
}
