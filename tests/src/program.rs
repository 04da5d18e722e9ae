//! The program `poolwright` itself, as people run it.
//!
//! `cargo test --workspace` has built it before any story begins. Where this package is tested alone it may be missing or
//! older than its sources; then it is built here.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Names another program to tell the stories with.
const VARIABLE: &str = "POOLWRIGHT_PROGRAM";

/// The program, built with the profile of `neighbour`, another program of the same build.
///
/// # Panics
/// When it is not there and does not build.
#[must_use]
pub fn poolwright(neighbour: &str) -> PathBuf {
    if let Some(named) = std::env::var_os(VARIABLE) {
        return named.into();
    }
    let profile = Path::new(neighbour).parent().expect("a program lies in the directory of its profile");
    let program = profile.join(format!("poolwright{}", std::env::consts::EXE_SUFFIX));
    if !is_newer(&program, &root().join("crates")) {
        build(profile);
    }
    program
}

/// The root of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this package lies in the repository").to_owned()
}

/// The program is newer than all sources below this directory.
fn is_newer(program: &Path, sources: &Path) -> bool {
    let changed = |path: &Path| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let Some(built) = changed(program) else { return false };
    let mut left = vec![sources.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            match entry.file_type().unwrap().is_dir() {
                // Tests of a crate are no part of the program.
                true if !["tests", "examples", "benches"].iter().any(|name| path.ends_with(name)) => {
                    left.push(path)
                }
                true => {}
                false if changed(&path).unwrap_or(SystemTime::UNIX_EPOCH) > built => return false,
                false => {}
            }
        }
    }
    true
}

fn build(profile: &Path) {
    let target = profile.parent().expect("a profile has a directory in the target directory");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--package", "poolwright-cli", "--target-dir"]).arg(target);
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    let done = cargo.current_dir(root()).status().expect("cargo is there, it runs this test");
    assert!(done.success(), "the program does not build");
}
