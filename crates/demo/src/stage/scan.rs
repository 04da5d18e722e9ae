//! Lists the files of a folder with their kind and content hash, and tells what is new, changed or gone.
//!
//! A file whose name promises a kind that is read is listed whatever it holds; its task says what is wrong with it.
//!
//! Invariant: a file is reported removed only when its folder was read to the end; what could not be looked at is
//! unknown, and unknown is never gone.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Error;
use crate::id::ContentHash;
use crate::kind::{HEAD_BYTES, Kind};

/// Folders that tools fill and people do not read.
const SKIPPED_FOLDERS: [&str; 2] = ["target", "node_modules"];

/// Bounds of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Files above this many bytes are listed by their size and not read. Default 20 MiB.
    pub bytes_max: u64,
    /// More files than this end the walk with an error. Default 100,000.
    pub files_max: usize,
    /// Folders nested deeper are not entered. Default 64.
    pub depth_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { bytes_max: 20 << 20, files_max: 100_000, depth_max: 64 }
    }
}

/// A file that a stage should be able to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Relative to the folder, with `/` on every system.
    pub path: String,
    /// By name, or by content where the name has no extension.
    pub kind: Kind,
    /// Bytes.
    pub size: u64,
    /// Of the whole content, or [`ContentHash::unread`].
    pub hash: ContentHash,
}

/// A file or folder that was left out.
#[derive(Debug)]
pub struct Skipped {
    /// Relative to the folder, with `/`; a name that is no UTF-8 is shown with replacement marks.
    pub path: String,
    /// Why.
    pub reason: Error,
}

/// What a walk saw, in the order of the paths.
#[derive(Debug, Default)]
pub struct Scan {
    /// Files to work on.
    pub files: Vec<Found>,
    /// Files and folders left out.
    pub skipped: Vec<Skipped>,
}

/// Walks `root`. Hidden entries, `target` and `node_modules` are passed over without a word; links, special files,
/// other kinds and folders that cannot be read are reported each. `watch` hears how many files were looked at, after
/// each, and may stop the walk.
///
/// # Errors
/// When `root` itself cannot be listed, when it holds too many files, or [`Error::Stopped`]. A single file never
/// fails the walk.
pub fn scan(
    root: &Path,
    options: &Options,
    watch: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Scan, Error> {
    let root = root.canonicalize().map_err(|e| Error::read(root, e))?;
    let mut scan = Scan::default();
    let mut listed = list(&root, options, &mut scan.skipped)?;
    listed.sort();
    for (seen, path) in listed.into_iter().enumerate() {
        match examine(&root.join(&path), options) {
            Ok((kind, size, hash)) => scan.files.push(Found { path, kind, size, hash }),
            Err(reason) => scan.skipped.push(Skipped { path, reason }),
        }
        if watch(seen + 1).is_break() {
            return Err(Error::Stopped);
        }
    }
    scan.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(scan)
}

/// The bytes of one file of a folder and their hash.
///
/// # Errors
/// When the path leaves the folder, the file is no plain file, cannot be read or is above the limit.
pub fn load(root: &Path, path: &str, bytes_max: u64) -> Result<(Vec<u8>, ContentHash), Error> {
    let relative = Path::new(path);
    let inside = relative.components().all(|part| matches!(part, Component::Normal(_)));
    if path.is_empty() || !inside {
        return Err(Error::Outside { path: path.to_owned() });
    }
    let full = root.join(relative);
    let mut file = open(&full, bytes_max)?;
    let mut bytes = Vec::new();
    // The file may grow while it is read; the limit holds all the same.
    file.by_ref().take(bytes_max + 1).read_to_end(&mut bytes).map_err(|e| Error::read(&full, e))?;
    let size = bytes.len() as u64;
    if size > bytes_max {
        return Err(Error::TooLarge { size, limit: bytes_max });
    }
    let hash = ContentHash::of(&bytes);
    Ok((bytes, hash))
}

/// Paths of the plain files below `root`. Uses a list of its own instead of recursion, so depth costs no stack.
fn list(root: &Path, options: &Options, skipped: &mut Vec<Skipped>) -> Result<Vec<String>, Error> {
    let mut files = Vec::new();
    let mut folders = vec![(PathBuf::new(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = match entries(&root.join(&folder)) {
            Ok(entries) => entries,
            Err(e) if folder.as_os_str().is_empty() => return Err(e),
            Err(reason) => {
                skipped.push(Skipped { path: shown(&folder), reason });
                continue;
            }
        };
        for entry in entries {
            let path = folder.join(entry.file_name());
            match sort_out(&entry, depth, options) {
                Place::File => files.push(shown(&path)),
                Place::Folder => folders.push((path, depth + 1)),
                Place::Ignored => {}
                Place::Skipped(reason) => skipped.push(Skipped { path: shown(&path), reason }),
            }
            if files.len() > options.files_max {
                return Err(Error::TooMuch { what: "files below the folder", limit: options.files_max });
            }
        }
    }
    Ok(files)
}

fn entries(folder: &Path) -> Result<Vec<fs::DirEntry>, Error> {
    fs::read_dir(folder).and_then(Iterator::collect).map_err(|e| Error::read(folder, e))
}

enum Place {
    File,
    Folder,
    Ignored,
    Skipped(Error),
}

fn sort_out(entry: &fs::DirEntry, depth: usize, options: &Options) -> Place {
    let name = entry.file_name();
    if name.as_encoded_bytes().starts_with(b".") {
        return Place::Ignored;
    }
    let Some(name) = name.to_str() else { return Place::Skipped(Error::Unnameable) };
    match entry.file_type() {
        Err(e) => Place::Skipped(Error::read(&entry.path(), e)),
        Ok(kind) if kind.is_symlink() => Place::Skipped(Error::Link),
        Ok(kind) if kind.is_dir() && SKIPPED_FOLDERS.contains(&name) => Place::Ignored,
        Ok(kind) if kind.is_dir() && depth >= options.depth_max => {
            Place::Skipped(Error::TooMuch { what: "folders inside each other", limit: options.depth_max })
        }
        Ok(kind) if kind.is_dir() => Place::Folder,
        Ok(kind) if kind.is_file() => Place::File,
        Ok(_) => Place::Skipped(Error::Special),
    }
}

/// Opens a plain file that is not above the limit. Asks before opening, because opening a pipe waits for a writer.
fn open(path: &Path, bytes_max: u64) -> Result<File, Error> {
    let metadata = fs::symlink_metadata(path).map_err(|e| Error::read(path, e))?;
    if metadata.is_symlink() {
        return Err(Error::Link);
    }
    if !metadata.is_file() {
        return Err(Error::Special);
    }
    if metadata.len() > bytes_max {
        return Err(Error::TooLarge { size: metadata.len(), limit: bytes_max });
    }
    File::open(path).map_err(|e| Error::read(path, e))
}

/// Kind, size and hash of one file.
fn examine(path: &Path, options: &Options) -> Result<(Kind, u64, ContentHash), Error> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let Some(extension) = extension else {
        let (size, hash, head) = digest(path, options.bytes_max)?;
        return Ok((Kind::check(None, &head)?, size, hash));
    };
    // No need to open what no stage reads; the check words the refusal.
    let Some(kind) = Kind::of_extension(extension) else {
        return Err(Kind::check(Some(extension), &[]).expect_err("an unknown extension is refused"));
    };
    match digest(path, options.bytes_max) {
        Ok((size, hash, _)) => Ok((kind, size, hash)),
        Err(Error::TooLarge { size, .. }) => {
            Ok((kind, size, ContentHash::unread(&format!("{size} bytes are too many"))))
        }
        Err(Error::Read { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
            Ok((kind, 0, ContentHash::unread("not allowed")))
        }
        Err(error) => Err(error),
    }
}

/// Size, hash and first bytes of one file, read piece by piece.
fn digest(path: &Path, bytes_max: u64) -> Result<(u64, ContentHash, Vec<u8>), Error> {
    let mut file = open(path, bytes_max)?;
    let mut piece = vec![0; 64 << 10];
    let mut head = Vec::with_capacity(HEAD_BYTES);
    let mut hasher = Sha256::new();
    let mut size = 0_u64;
    loop {
        let count = file.read(&mut piece).map_err(|e| Error::read(path, e))?;
        if count == 0 {
            return Ok((size, ContentHash::finish(hasher), head));
        }
        let wanted = (HEAD_BYTES - head.len()).min(count);
        head.extend_from_slice(&piece[..wanted]);
        hasher.update(&piece[..count]);
        size += count as u64;
        if size > bytes_max {
            return Err(Error::TooLarge { size, limit: bytes_max });
        }
    }
}

/// A relative path with `/` on every system.
fn shown(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

/// What the library knows of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Relative to the folder, with `/`.
    pub path: String,
    /// Of the content that was admitted last.
    pub hash: ContentHash,
    /// Whether the work on that content has ended, well or badly.
    pub settled: bool,
}

/// What a walk means for what was known.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Diff<'a> {
    /// Never seen before.
    pub new: Vec<&'a Found>,
    /// Seen with other content.
    pub changed: Vec<&'a Found>,
    /// Same content, but the work on it has not ended: a run was interrupted.
    pub unfinished: Vec<&'a Found>,
    /// Same content, work ended.
    pub unchanged: Vec<&'a Found>,
    /// Known, and no longer a file that a stage reads.
    pub removed: Vec<&'a Known>,
    /// Known, and not looked at because it or its folder could not be read.
    pub unknown: Vec<&'a Known>,
}

/// Compares a walk with what was known.
#[must_use]
pub fn diff<'a>(known: &'a [Known], scan: &'a Scan) -> Diff<'a> {
    let mut left: BTreeMap<&str, &Known> = known.iter().map(|known| (known.path.as_str(), known)).collect();
    let mut diff = Diff::default();
    for found in &scan.files {
        match left.remove(found.path.as_str()) {
            None => diff.new.push(found),
            Some(known) if known.hash != found.hash => diff.changed.push(found),
            Some(known) if known.settled => diff.unchanged.push(found),
            Some(_) => diff.unfinished.push(found),
        }
    }
    let unseen: Vec<&str> =
        scan.skipped.iter().filter(|skip| hides(&skip.reason)).map(|skip| skip.path.as_str()).collect();
    for known in left.into_values() {
        let hidden = unseen.iter().any(|above| is_below(&known.path, above));
        if hidden { diff.unknown.push(known) } else { diff.removed.push(known) }
    }
    diff
}

/// Whether what lies at or below the skipped path may still be there.
fn hides(reason: &Error) -> bool {
    reason.leaves_unknown() || matches!(reason, Error::TooMuch { .. })
}

fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests;
