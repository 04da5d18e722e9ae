//! A small folder of real files of every kind, carried in the program, so that the demo works from anywhere.

use std::fs;
use std::path::Path;

use crate::Error;
use crate::stage::wiki::write_beside;

/// Path below the folder, and content.
type SampleFile = (&'static str, &'static [u8]);

macro_rules! sample {
    ($($path:literal),* $(,)?) => {
        [$(($path, include_bytes!(concat!("../sample/", $path)).as_slice())),*]
    };
}

/// Two of them are cut off on purpose, so that dead letters show.
pub const FILES: [SampleFile; 15] = sample![
    "README.md",
    "broken/cut-off.json",
    "broken/half-a-picture.png",
    "handbook/moorings.md",
    "handbook/slipway.md",
    "handbook/varnish.md",
    "notes/storm-log.txt",
    "notes/visitors.txt",
    "pages/tides.html",
    "pictures/buoy.webp",
    "pictures/burgee.gif",
    "pictures/harbour.png",
    "pictures/slipway.jpg",
    "tables/orders.csv",
    "tables/stores.json",
];

/// Lies in the folder once all files do. Hidden, so no walk sees it.
const UNPACKED: &str = ".unpacked";

/// Puts the files into `folder`, once: what a person changes or deletes there afterwards stays so, and shows as changed
/// or removed in the next sync. An unpacking that was killed is begun again.
///
/// # Errors
/// [`Error::Write`].
pub fn unpack(folder: &Path) -> Result<(), Error> {
    let mark = folder.join(UNPACKED);
    if mark.exists() {
        return Ok(());
    }
    for (path, content) in FILES {
        let full = folder.join(path);
        let parent = full.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|e| Error::write(parent, e))?;
        write_beside(&full, content).map_err(|e| Error::write(&full, e))?;
    }
    write_beside(&mark, b"").map_err(|e| Error::write(&mark, e))
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow::Continue;

    use super::*;
    use crate::stage::scan::{Options, scan};

    #[test]
    fn the_folder_holds_every_kind_and_each_is_what_its_name_says() {
        let folder = tempfile::tempdir().expect("folder");
        unpack(folder.path()).expect("unpacks");
        let seen = scan(folder.path(), &Options::default(), &mut |_| Continue(())).expect("walks");
        assert!(seen.skipped.is_empty(), "{:?}", seen.skipped);
        let paths: Vec<&str> = seen.files.iter().map(|found| found.path.as_str()).collect();
        assert_eq!(paths, FILES.map(|(path, _)| path));
        let kinds: std::collections::BTreeSet<_> = seen.files.iter().map(|found| found.kind).collect();
        assert_eq!(kinds.len(), 9);
    }

    #[test]
    fn what_a_person_did_to_the_folder_stays() {
        let folder = tempfile::tempdir().expect("folder");
        unpack(folder.path()).expect("unpacks");
        fs::write(folder.path().join("README.md"), "mine").expect("writes");
        fs::remove_file(folder.path().join("tables/stores.json")).expect("removes");
        unpack(folder.path()).expect("is content");
        assert_eq!(fs::read_to_string(folder.path().join("README.md")).expect("reads"), "mine");
        assert!(!folder.path().join("tables/stores.json").exists());
    }

    #[test]
    fn every_sample_file_is_carried() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample");
        let seen = scan(&root, &Options::default(), &mut |_| Continue(())).expect("walks");
        assert_eq!(seen.files.len(), FILES.len());
    }
}
