//! One library file and many who open it: at once, from other versions, or by mistake.

use std::path::Path;

use poolwright_demo::Kind;
use poolwright_demo::id::{ContentHash, SourceId};
use poolwright_demo::library::{Applied, Library};
use poolwright_demo::stage::scan::Found;

fn source() -> SourceId {
    SourceId::from("/yard".to_owned())
}

fn found(path: &str) -> Found {
    Found { path: path.to_owned(), kind: Kind::Text, size: 5, hash: ContentHash::of(path.as_bytes()) }
}

#[test]
fn a_new_file_may_be_opened_by_many_at_once() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("library.sqlite");
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| Library::open(&path).map(drop).unwrap_or_else(|error| panic!("{error}")));
            }
        });
        assert_eq!(Library::open(&path).expect("opens").counts().expect("counts").documents, 0);
    }
}

#[test]
fn writers_wait_for_each_other_and_take_different_generations() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("library.sqlite");
    drop(Library::open(&path).expect("opens"));
    let generations: Vec<i64> = std::thread::scope(|scope| {
        let write = |name: usize| {
            let library = Library::open(&path).expect("opens");
            let admit =
                |at: usize| library.admit(&source(), &found(&format!("{name}-{at}.txt"))).expect("waits");
            (0..50).map(|at| admit(at).key.generation.0).collect::<Vec<_>>()
        };
        let writers: Vec<_> = (0..4).map(|name| scope.spawn(move || write(name))).collect();
        writers.into_iter().flat_map(|writer| writer.join().expect("no panic")).collect()
    });
    let distinct: std::collections::BTreeSet<_> = generations.iter().collect();
    assert_eq!((generations.len(), distinct.len()), (200, 200));
}

#[test]
fn two_openings_of_one_file_see_each_other() {
    let folder = tempfile::tempdir().expect("folder");
    let one = Library::open(&folder.path().join("library.sqlite")).expect("opens");
    let other = Library::open(one.path()).expect("opens");
    let key = one.admit(&source(), &found("a.md")).expect("admits").key;
    assert_eq!(other.begin(&key).expect("begins"), Applied::Done);
    assert_eq!(one.begin(&key).expect("begins"), Applied::Already);
    assert_eq!(one.counts().expect("counts").unfinished, 1);
}

fn broken(path: &Path, detail: &str) -> String {
    let path = path.display();
    format!(
        "cannot use the library {path}: {detail}; delete it and run again, it is made anew from the files"
    )
}

#[test]
fn a_library_that_is_damaged_is_named_with_the_cure() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("library.sqlite");
    drop(Library::open(&path).expect("opens"));
    // What tells of the tables is whole, and their rows are not.
    let connection = rusqlite::Connection::open(&path).expect("opens");
    let size: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).expect("has a size");
    let roots: Vec<u32> = connection
        .prepare("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0")
        .and_then(|mut roots| roots.query_map([], |row| row.get(0))?.collect())
        .expect("has tables");
    drop(connection);
    let mut bytes = std::fs::read(&path).expect("reads");
    for page in roots {
        bytes[((page - 1) * size) as usize..(page * size) as usize].fill(0x5a);
    }
    std::fs::write(&path, bytes).expect("writes");
    let library = Library::open(&path).expect("the tables are known");
    let refused = library.counts().expect_err("damaged").to_string();
    assert_eq!(refused, broken(&path, "database disk image is malformed"));
    let refused = library.admit(&source(), &found("a.md")).expect_err("damaged").to_string();
    assert_eq!(refused, broken(&path, "database disk image is malformed"));
}

#[test]
fn files_that_are_not_ours_are_refused_with_the_cure() {
    let folder = tempfile::tempdir().expect("folder");
    let refusal = |path: &Path| Library::open(path).expect_err("refused").to_string();
    let foreign = folder.path().join("foreign.sqlite");
    rusqlite::Connection::open(&foreign)
        .expect("opens")
        .execute_batch("CREATE TABLE theirs (a)")
        .expect("creates");
    assert!(refusal(&foreign).contains("is a SQLite file of another program"), "{}", refusal(&foreign));
    let text = folder.path().join("text.sqlite");
    std::fs::write(&text, "This is no database, only text that is long enough to be looked at.".repeat(20))
        .expect("writes");
    assert_eq!(refusal(&text), broken(&text, "file is not a database"));
    let directory = folder.path().join("directory.sqlite");
    std::fs::create_dir(&directory).expect("makes");
    let refused = refusal(&directory);
    assert!(refused.starts_with(&format!("cannot open the library {}: ", directory.display())), "{refused}");
    assert!(refused.ends_with("; move that directory away"), "deleting it would be no cure: {refused}");
    let refused = refusal(&text.join("library.sqlite"));
    assert!(refused.starts_with(&format!("cannot open the library {}: ", text.display())), "{refused}");
    assert!(refused.ends_with("a file lies where a folder of its path should be: move that file away"));
    let newer = folder.path().join("newer.sqlite");
    drop(Library::open(&newer).expect("opens"));
    rusqlite::Connection::open(&newer).expect("opens").pragma_update(None, "user_version", 9).expect("sets");
    assert!(
        refusal(&newer).ends_with("has library version 9, this program knows up to 1; use the newer program")
    );
}
