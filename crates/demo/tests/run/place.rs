//! A folder of files and a home for their library, of a test's own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use poolwright_demo::{RunOptions, Summary, run, sample};

pub(crate) struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    /// With an empty folder.
    pub(crate) fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().expect("folder") };
        fs::create_dir(place.files()).expect("folder");
        place
    }

    /// With the sample.
    pub(crate) fn with_sample() -> Self {
        let place = Self::new();
        sample::unpack(&place.files()).expect("unpacks");
        place
    }

    pub(crate) fn files(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub(crate) fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let full = self.files().join(path);
        fs::create_dir_all(full.parent().expect("a file has a folder")).expect("folder");
        fs::write(full, content).expect("file");
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.files().join(path)).expect("removes");
    }

    pub(crate) fn options(&self) -> RunOptions {
        RunOptions { folders: vec![self.files()], ..RunOptions::at(self.home()) }
    }

    pub(crate) async fn run(&self) -> Summary {
        self.run_with(self.options()).await
    }

    pub(crate) async fn run_with(&self, options: RunOptions) -> Summary {
        Box::pin(run(options)).await.expect("runs to the end")
    }

    /// Every page of the wiki and its text.
    pub(crate) fn pages(&self) -> BTreeMap<PathBuf, String> {
        let mut pages = BTreeMap::new();
        let wiki = self.home().join("wiki");
        for folder in ["", "documents", "terms"] {
            for entry in fs::read_dir(wiki.join(folder)).expect("folder").flatten() {
                if entry.path().is_file() {
                    let text = fs::read_to_string(entry.path()).expect("a page is text");
                    pages.insert(entry.path(), text);
                }
            }
        }
        pages
    }
}

/// The reasons of what failed, by the path below the folder.
pub(crate) fn reasons(summary: &Summary) -> BTreeMap<String, String> {
    let root = Path::new(summary.folders[0].as_str());
    let below = |path: &str| {
        Path::new(path).strip_prefix(root).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
    };
    summary.dead.iter().map(|dead| (below(&dead.path), dead.reason.clone())).collect()
}
