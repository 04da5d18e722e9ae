//! Walking real folders, and telling what changed in them.

use std::fs;
use std::ops::ControlFlow::{Break, Continue};
use std::path::Path;

use super::*;

fn put(root: &Path, path: &str, content: &[u8]) {
    let full = root.join(path);
    fs::create_dir_all(full.parent().expect("a file has a folder")).expect("folder");
    fs::write(full, content).expect("file");
}

fn walk(root: &Path) -> Scan {
    scan(root, &Options::default(), &mut |_| Continue(())).expect("walks")
}

fn paths(files: &[Found]) -> Vec<&str> {
    files.iter().map(|found| found.path.as_str()).collect()
}

fn reason<'a>(scan: &'a Scan, path: &str) -> &'a Error {
    &scan.skipped.iter().find(|skip| skip.path == path).expect("skipped").reason
}

fn knows(scan: &Scan) -> Vec<Known> {
    let known = |found: &Found| Known { path: found.path.clone(), hash: found.hash.clone(), settled: true };
    scan.files.iter().map(known).collect()
}

#[test]
fn lists_files_in_order_and_passes_over_what_tools_fill() {
    let root = tempfile::tempdir().expect("folder");
    for path in ["b/two.txt", "a.md", ".git/config.txt", "target/x.md", "b/node_modules/y.md", ".hidden.md"] {
        put(root.path(), path, b"words");
    }
    let seen = walk(root.path());
    assert_eq!(paths(&seen.files), ["a.md", "b/two.txt"]);
    assert!(seen.skipped.is_empty());
    assert_eq!((seen.files[0].kind, seen.files[0].size), (Kind::Markdown, 5));
    assert_eq!(seen.files[0].hash, ContentHash::of(b"words"));
}

#[test]
fn a_file_of_a_kind_that_is_read_is_listed_whatever_it_holds() {
    let root = tempfile::tempdir().expect("folder");
    put(root.path(), "good.txt", b"words");
    put(root.path(), "empty.txt", b"");
    put(root.path(), "picture.md", b"\x89PNG\r\n\x1a\n....");
    put(root.path(), "big.txt", &vec![b'x'; 300]);
    put(root.path(), "tool.exe", b"MZ");
    put(root.path(), "blank", b"");
    let options = Options { bytes_max: 299, ..Options::default() };
    let seen = scan(root.path(), &options, &mut |_| Continue(())).expect("walks");
    assert_eq!(paths(&seen.files), ["big.txt", "empty.txt", "good.txt", "picture.md"]);
    let found = |path: &str| seen.files.iter().find(|found| found.path == path).expect("listed");
    assert_eq!((found("picture.md").kind, found("empty.txt").size), (Kind::Markdown, 0));
    assert_eq!(found("big.txt").size, 300);
    assert_ne!(found("big.txt").hash, ContentHash::of(&vec![b'x'; 300]), "it is not read");
    assert!(reason(&seen, "tool.exe").to_string().ends_with("not .exe files"));
    assert_eq!(reason(&seen, "blank").to_string(), "the file is empty", "it promises nothing");
}

#[test]
fn a_folder_that_is_not_there_is_an_error_and_not_an_empty_folder() {
    let root = tempfile::tempdir().expect("folder");
    let gone = root.path().join("gone");
    let error = scan(&gone, &Options::default(), &mut |_| Continue(())).expect_err("refused");
    assert!(error.to_string().starts_with("cannot read "), "{error}");
}

#[cfg(unix)]
#[test]
fn links_and_pipes_are_reported_and_never_followed() {
    let root = tempfile::tempdir().expect("folder");
    put(root.path(), "in/a.md", b"words");
    std::os::unix::fs::symlink(root.path(), root.path().join("in/loop")).expect("link");
    std::os::unix::fs::symlink(root.path().join("in/a.md"), root.path().join("b.md")).expect("link");
    let pipe = root.path().join("pipe.txt");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let seen = walk(root.path());
    assert_eq!(paths(&seen.files), ["in/a.md"]);
    assert!(matches!(reason(&seen, "in/loop"), Error::Link));
    assert!(matches!(reason(&seen, "b.md"), Error::Link));
    assert!(matches!(reason(&seen, "pipe.txt"), Error::Special));
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_no_utf_8_is_reported() {
    use std::os::unix::ffi::OsStrExt;
    let root = tempfile::tempdir().expect("folder");
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    fs::write(root.path().join(name), "words").expect("file");
    let seen = walk(root.path());
    assert!(seen.files.is_empty());
    assert_eq!(seen.skipped[0].reason.to_string(), "the name is not valid UTF-8");
}

#[test]
fn too_many_files_and_too_deep_folders_have_bounds() {
    let root = tempfile::tempdir().expect("folder");
    for name in ["a.md", "b.md", "c.md", "in/side/deep.md"] {
        put(root.path(), name, b"words");
    }
    let few = Options { files_max: 2, ..Options::default() };
    let error = scan(root.path(), &few, &mut |_| Continue(())).expect_err("refused");
    assert_eq!(error.to_string(), "more than 2 files below the folder");
    let flat = Options { depth_max: 1, ..Options::default() };
    let seen = scan(root.path(), &flat, &mut |_| Continue(())).expect("walks");
    assert_eq!(seen.files.len(), 3);
    assert_eq!(reason(&seen, "in/side").to_string(), "more than 1 folders inside each other");
}

#[test]
fn a_watcher_can_stop_the_walk() {
    let root = tempfile::tempdir().expect("folder");
    put(root.path(), "a.md", b"words");
    put(root.path(), "b.md", b"words");
    let mut heard = Vec::new();
    let stopped = scan(root.path(), &Options::default(), &mut |seen| {
        heard.push(seen);
        Break(())
    });
    assert!(matches!(stopped, Err(Error::Stopped)));
    assert_eq!(heard, [1]);
}

#[test]
fn diff_tells_new_changed_removed_and_the_rest() {
    let root = tempfile::tempdir().expect("folder");
    for path in ["same.md", "other.md", "gone.md", "half.md"] {
        put(root.path(), path, b"words");
    }
    let mut known = knows(&walk(root.path()));
    known.iter_mut().filter(|known| known.path == "half.md").for_each(|known| known.settled = false);
    fs::remove_file(root.path().join("gone.md")).expect("removes");
    put(root.path(), "other.md", b"other words");
    put(root.path(), "fresh.md", b"words");
    let seen = walk(root.path());
    let diff = diff(&known, &seen);
    let names = |files: &[&Found]| files.iter().map(|found| found.path.clone()).collect::<Vec<_>>();
    assert_eq!(names(&diff.new), ["fresh.md"]);
    assert_eq!(names(&diff.changed), ["other.md"]);
    assert_eq!(names(&diff.unchanged), ["same.md"]);
    assert_eq!(names(&diff.unfinished), ["half.md"]);
    assert_eq!(diff.removed.iter().map(|known| known.path.as_str()).collect::<Vec<_>>(), ["gone.md"]);
    assert!(diff.unknown.is_empty());
}

#[test]
fn what_could_not_be_read_is_unknown_and_not_removed() {
    let known = ["locked/a.md", "lockedx.md", "b.md", "grown.md"];
    let known: Vec<Known> =
        known.map(|path| Known { path: path.to_owned(), hash: ContentHash::of(b""), settled: true }).into();
    let denied =
        |path: &str| Error::Read { path: path.into(), source: std::io::ErrorKind::PermissionDenied.into() };
    let skipped = vec![
        Skipped { path: "b.md".into(), reason: denied("b.md") },
        Skipped { path: "grown.md".into(), reason: Error::TooLarge { size: 2, limit: 1 } },
        Skipped { path: "locked".into(), reason: denied("locked") },
    ];
    let seen = Scan { files: Vec::new(), skipped };
    let diff = diff(&known, &seen);
    let names = |files: &[&Known]| files.iter().map(|known| known.path.clone()).collect::<Vec<_>>();
    assert_eq!(names(&diff.unknown), ["b.md", "locked/a.md"]);
    assert_eq!(names(&diff.removed), ["grown.md", "lockedx.md"]);
}

#[test]
fn load_stays_inside_the_folder_and_under_the_limit() {
    let root = tempfile::tempdir().expect("folder");
    put(root.path(), "in/a.md", b"words");
    let (bytes, hash) = load(root.path(), "in/a.md", 5).expect("loads");
    assert_eq!((bytes.as_slice(), hash), (&b"words"[..], ContentHash::of(b"words")));
    assert!(matches!(load(root.path(), "in/a.md", 4), Err(Error::TooLarge { size: 5, limit: 4 })));
    for path in ["../a.md", "/etc/passwd", "", "in/../../a.md", "./in/a.md"] {
        assert!(matches!(load(root.path(), path, 5), Err(Error::Outside { .. })), "{path}");
    }
    assert!(matches!(load(root.path(), "gone.md", 5), Err(Error::Read { .. })));
    assert!(matches!(load(root.path(), "in", 5), Err(Error::Special)));
}
