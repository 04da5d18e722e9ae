//! The whole pipeline over the sample folder, killed after each of its writes and begun again, ends as a calm run.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow::{self, Break, Continue};
use std::path::{Path, PathBuf};

use poolwright_demo::draw::{finalize, ingest};
use poolwright_demo::id::{Key, SourceId};
use poolwright_demo::library::{Applied, Counts, Library, Part, Status, Trouble};
use poolwright_demo::stage::question::{BATCH_CHUNKS, Options as Asking, Passage, ask};
use poolwright_demo::stage::scan::{Options, diff, load, scan};
use poolwright_demo::stage::wiki::Shelf;
use poolwright_demo::stage::{chunk, graph, image, read, summary};
use poolwright_demo::{Kind, sample};

const BYTES_MAX: u64 = 20 << 20;

/// What the handlers will do, in one thread, with a number of steps after which the process "dies".
struct Run<'a> {
    library: &'a Library,
    shelf: &'a Shelf,
    root: &'a Path,
    source: SourceId,
    steps_left: usize,
}

impl Run<'_> {
    fn step(&mut self) -> ControlFlow<()> {
        if self.steps_left == 0 {
            return Break(());
        }
        self.steps_left -= 1;
        Continue(())
    }

    fn sync(&mut self) -> ControlFlow<()> {
        let seen = scan(self.root, &Options::default(), &mut |_| Continue(())).expect("walks");
        let known = self.library.known(&self.source).expect("reads");
        let diff = diff(&known, &seen);
        for gone in &diff.removed {
            self.step()?;
            self.library.remove(&self.source, &gone.path).expect("removes");
        }
        self.library.record_skips(&self.source, &seen.skipped).expect("records");
        let work: Vec<_> = diff.new.iter().chain(&diff.changed).chain(&diff.unfinished).copied().collect();
        let mut admitted = Vec::new();
        for found in work {
            self.step()?;
            admitted.push(self.library.admit(&self.source, found).expect("admits"));
        }
        for document in admitted {
            self.process(&document.key, document.kind, &document.path)?;
        }
        self.step()?;
        while ingest(self.library, self.shelf, 3, &mut |_| Continue(())).expect("draws").1 {
            self.step()?;
        }
        self.step()?;
        finalize(self.library, self.shelf, &mut |_| Continue(())).expect("draws");
        Continue(())
    }

    fn process(&mut self, key: &Key, kind: Kind, path: &str) -> ControlFlow<()> {
        self.step()?;
        let _ = self.library.begin(key).expect("begins");
        let (bytes, _) = load(self.root, path, BYTES_MAX).expect("loads");
        self.step()?;
        let stored = if kind.is_picture() {
            image::inspect(kind, &bytes, &image::Limits::default())
                .and_then(|picture| self.library.store_picture(key, &picture))
        } else {
            read::read(kind, path, &bytes, &read::Limits::default()).and_then(|document| {
                let chunks = chunk::cut(&key.document, &document, &chunk::Size::default());
                self.library.store_content(key, &document, &chunks)
            })
        };
        match stored {
            Err(error) => {
                assert!(error.is_permanent(), "{error}");
                let trouble = Trouble {
                    task_type: "document:process".into(),
                    class: "permanent".into(),
                    reason: error.to_string(),
                };
                assert_ne!(self.library.fail(key, &trouble).expect("fails"), Applied::Stale);
                Continue(())
            }
            Ok(_) if kind.is_picture() => Continue(()),
            Ok(_) => self.enrich(key),
        }
    }

    fn enrich(&mut self, key: &Key) -> ControlFlow<()> {
        self.step()?;
        let chunks = self.library.chunks(key).expect("reads").expect("current");
        let batches = u32::try_from(chunks.len().div_ceil(BATCH_CHUNKS)).expect("few");
        let graphs = chunks.iter().map(|chunk| Part::Graph(chunk.id.clone()));
        let parts: Vec<Part> =
            std::iter::once(Part::Summary).chain((0..batches).map(Part::Questions)).chain(graphs).collect();
        let _ = self.library.expect_parts(key, &parts).expect("expects");
        for part in self.library.open_parts(key).expect("reads") {
            self.step()?;
            let done = match &part {
                Part::Summary => {
                    let texts: Vec<&str> = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
                    self.library.store_summary(key, &summary::summarise(&texts, &summary::Options::default()))
                }
                Part::Questions(batch) => {
                    let chunks = self.library.batch(key, *batch).expect("reads").expect("current");
                    let passages: Vec<Passage<'_>> = chunks
                        .iter()
                        .map(|chunk| Passage { chunk: &chunk.id, heading: &chunk.heading, text: &chunk.text })
                        .collect();
                    self.library.store_questions(key, *batch, &ask(&passages, &Asking::default()))
                }
                Part::Graph(id) => {
                    let chunk = self.library.chunk(key, id).expect("reads").expect("current");
                    self.library.store_graph(key, id, &graph::extract(&chunk.text))
                }
            };
            assert_eq!(done.expect("stores"), Applied::Done);
        }
        Continue(())
    }
}

/// A folder with the sample, a library and a wiki.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("folder");
        sample::unpack(&folder.path().join("files")).expect("unpacks");
        Self { folder }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Opens everything anew, as a new process does, and runs up to `steps`.
    fn run(&self, steps: usize) -> ControlFlow<()> {
        let library = self.library();
        let shelf = Shelf::open(&self.at("wiki")).expect("opens");
        // The same name in every place, so that two places hold the same ids.
        let source = SourceId::from("sample".to_owned());
        let root = self.at("files");
        Run { library: &library, shelf: &shelf, root: &root, source, steps_left: steps }.sync()
    }

    fn library(&self) -> Library {
        Library::open(&self.at("library.sqlite")).expect("opens")
    }

    fn counts(&self) -> Counts {
        self.library().counts().expect("counts")
    }

    /// Every file of the wiki with its content.
    fn wiki(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        for folder in ["", "documents", "terms", "pictures"] {
            for entry in fs::read_dir(self.at("wiki").join(folder)).expect("folder").flatten() {
                if entry.path().is_file() {
                    let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
                    files.insert(name, fs::read(entry.path()).expect("reads"));
                }
            }
        }
        files
    }
}

#[test]
fn a_calm_run_reads_everything_and_reports_the_two_broken_files() {
    let place = Place::new();
    assert_eq!(place.run(usize::MAX), Continue(()));
    let counts = place.counts();
    assert_eq!((counts.documents, counts.images, counts.failed, counts.unfinished), (9, 4, 2, 0));
    assert!(counts.chunks >= 15 && counts.questions >= 15 && counts.summaries == 9, "{counts:?}");
    let failures = place.library().failures().expect("reads");
    let paths: Vec<&str> = failures.iter().map(|failure| failure.path.as_str()).collect();
    assert_eq!(paths, ["broken/cut-off.json", "broken/half-a-picture.png"]);
    let wiki = place.wiki();
    let pages = wiki.keys().filter(|name| name.ends_with(".md")).count();
    assert_eq!(pages as u64, counts.wiki_pages);
    let hits = place.library().search("varnish Lindqvist", 5).expect("finds");
    assert!(hits.iter().any(|hit| hit.path == "handbook/varnish.md"), "{hits:?}");
}

#[test]
fn a_second_run_over_the_same_files_does_nothing() {
    let place = Place::new();
    assert_eq!(place.run(usize::MAX), Continue(()));
    let (counts, wiki) = (place.counts(), place.wiki());
    // Two steps are left for the wiki; not one for a document.
    assert_eq!(place.run(2), Continue(()));
    assert_eq!((place.counts(), place.wiki()), (counts, wiki));
}

#[test]
fn killed_after_any_step_and_begun_again_it_ends_as_a_calm_run() {
    let calm = Place::new();
    assert_eq!(calm.run(usize::MAX), Continue(()));
    let (counts, wiki) = (calm.counts(), calm.wiki());
    for stride in [1, 2, 5, 11, 23] {
        let place = Place::new();
        let mut deaths = 0;
        // Each life gets a little further: the step at which it dies moves over the whole run.
        while place.run(stride + deaths * stride) == Break(()) {
            deaths += 1;
        }
        assert!(deaths >= 2, "with {stride} it died {deaths} times");
        assert_eq!(place.counts(), counts, "killed {deaths} times, by {stride}");
        assert!(place.wiki() == wiki, "the wiki differs after {deaths} deaths, by {stride}");
    }
}

#[test]
fn changed_added_and_removed_files_end_as_if_they_had_always_been_so() {
    let change = |place: &Place| {
        let files = place.at("files");
        fs::write(files.join("handbook/slipway.md"), "# Slipway\n\nThe windmill drives the winch of Tern.\n")
            .expect("writes");
        fs::write(files.join("notes/new.txt"), "Tern saw the windmill.\n").expect("writes");
        fs::remove_file(files.join("tables/orders.csv")).expect("removes");
        fs::remove_file(files.join("pictures/buoy.webp")).expect("removes");
    };
    let fresh = Place::new();
    change(&fresh);
    assert_eq!(fresh.run(usize::MAX), Continue(()));
    let grown = Place::new();
    assert_eq!(grown.run(usize::MAX), Continue(()));
    change(&grown);
    assert_eq!(grown.run(7), Break(()), "killed in the middle, too");
    assert_eq!(grown.run(usize::MAX), Continue(()));
    assert_eq!(grown.counts(), fresh.counts());
    let (grown, fresh) = (grown.wiki(), fresh.wiki());
    assert_eq!(grown.keys().collect::<Vec<_>>(), fresh.keys().collect::<Vec<_>>());
    assert!(grown == fresh, "the same pages, but not the same words");
}

#[test]
fn every_link_of_the_wiki_leads_somewhere() {
    let place = Place::new();
    assert_eq!(place.run(usize::MAX), Continue(()));
    let mut links = 0;
    for (name, content) in place.wiki().iter().filter(|(name, _)| name.ends_with(".md")) {
        let folder =
            place.at("wiki").join(name.trim_start_matches('/')).parent().expect("a folder").to_path_buf();
        let text = String::from_utf8(content.clone()).expect("Markdown is text");
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(folder.join(target).is_file(), "{name} leads to {target}");
            links += 1;
        }
    }
    assert!(links > 100, "{links} links");
}

#[test]
fn a_failed_file_is_tried_again_only_when_asked() {
    let place = Place::new();
    assert_eq!(place.run(usize::MAX), Continue(()));
    let source = SourceId::from("sample".to_owned());
    let library = place.library();
    let again = library.retry_failed(&source).expect("retries");
    let paths: Vec<&str> = again.iter().map(|admitted| admitted.path.as_str()).collect();
    assert_eq!(paths, ["broken/cut-off.json", "broken/half-a-picture.png"]);
    assert!(again.iter().all(|admitted| admitted.status == Status::Pending));
    assert_eq!(library.counts().expect("counts").unfinished, 2);
    drop(library);
    assert_eq!(place.run(usize::MAX), Continue(()));
    assert_eq!((place.counts().failed, place.counts().unfinished), (2, 0));
}
