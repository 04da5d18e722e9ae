//! The text files of the repository, read once; every rule works on them in memory.
//!
//! What the root `.gitignore` names, build directories (they hold a `CACHEDIR.TAG`) and hidden directories other
//! than the project's own are left out, so that tidy says the same in a fresh clone and in a lived-in checkout.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::syntax::Source;

/// Hidden directories that belong to the project; an editor's or a tool's do not.
const OWN_HIDDEN: [&str; 3] = [".cargo", ".ci", ".github"];

/// One text file.
#[derive(Debug)]
pub(crate) struct File {
    /// Relative to the root, with forward slashes on every system.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The parsed source, of `.rs` files.
    pub(crate) source: Option<Source>,
}

/// All text files under a root, in order of their paths.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

impl Tree {
    /// Reads everything under `root`; a file that is not UTF-8 is no text and is left out.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let ignored = Ignored::load(root)?;
        let mut files = Vec::new();
        walk(root, "", &ignored, &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// The file at exactly this path.
    pub(crate) fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Every Rust file with its source.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&File, &Source)> {
        self.files.iter().filter_map(|file| file.source.as_ref().map(|source| (file, source)))
    }
}

fn walk(dir: &Path, prefix: &str, ignored: &Ignored, files: &mut Vec<File>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type()?;
        if ignored.matches(&path) {
            continue;
        }
        if kind.is_dir() && is_ours(&entry.path()) {
            walk(&entry.path(), &format!("{path}/"), ignored, files)?;
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).with_context(|| format!("cannot read {path}"))?;
            files.extend(String::from_utf8(bytes).ok().map(|text| File::new(path, text)));
        }
    }
    Ok(())
}

fn is_ours(dir: &Path) -> bool {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let hidden = name.starts_with('.') && !OWN_HIDDEN.contains(&name.as_ref());
    !hidden && !dir.join("CACHEDIR.TAG").exists()
}

impl File {
    fn new(path: String, text: String) -> Self {
        let source = path.ends_with(".rs").then(|| Source::parse(&text));
        Self { path, text, source }
    }
}

/// The patterns of the root `.gitignore`.
#[derive(Debug)]
struct Ignored(Vec<String>);

impl Ignored {
    /// Three forms are understood: `/path`, `name` and `*.suffix`. Another one is an error rather than a guess.
    fn load(root: &Path) -> Result<Self> {
        let text = match fs::read_to_string(root.join(".gitignore")) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).context("cannot read .gitignore"),
        };
        let mut patterns = Vec::new();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let pattern = line.trim_end_matches('/');
            let plain = pattern.strip_prefix(['/', '*']).unwrap_or(pattern);
            if plain.contains(['*', '?', '[', '!']) || (plain.contains('/') && !pattern.starts_with('/')) {
                bail!(".gitignore: expected /path, name or *.suffix, which tidy understands; found {line}");
            }
            patterns.push(pattern.to_owned());
        }
        Ok(Self(patterns))
    }

    fn matches(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.0.iter().any(|pattern| match pattern.as_bytes().first() {
            Some(b'/') => path == &pattern[1..],
            Some(b'*') => name.ends_with(&pattern[1..]),
            _ => name == pattern,
        })
    }
}

/// Writes `files` under a fresh directory and loads it: the way every rule's tests get their tree.
#[cfg(test)]
pub(crate) fn fixture(files: &[(&str, &str)]) -> Tree {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), files);
    Tree::load(dir.path()).unwrap()
}

#[cfg(test)]
fn write(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(tree: &Tree) -> Vec<&str> {
        tree.files.iter().map(|file| file.path.as_str()).collect()
    }

    #[test]
    fn files_come_in_order_with_relative_paths() {
        let tree = fixture(&[("b.md", "text"), ("a/lib.rs", "//! A."), (".ci/run", "#!/bin/sh")]);
        assert_eq!(paths(&tree), [".ci/run", "a/lib.rs", "b.md"]);
        assert!(tree.get("a/lib.rs").unwrap().source.is_some());
        assert!(tree.get("b.md").unwrap().source.is_none());
        assert!(tree.get("a").is_none());
    }

    #[test]
    fn what_is_not_the_projects_own_is_left_out() {
        let tree = fixture(&[
            (".gitignore", "# made\n/out\nscratch/\n*.log\n"),
            (".git/config", ""),
            (".idea/workspace.xml", ""),
            ("build/CACHEDIR.TAG", ""),
            ("build/x.rs", ""),
            ("out/x.rs", ""),
            ("a/out/x.rs", ""),
            ("a/scratch/x.rs", ""),
            ("a/b.log", ""),
        ]);
        assert_eq!(paths(&tree), [".gitignore", "a/out/x.rs"]);
    }

    #[test]
    fn a_file_that_is_no_text_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("picture.png"), b"\x89PNG\xff").unwrap();
        fs::write(dir.path().join("a.md"), "é").unwrap();
        assert_eq!(paths(&Tree::load(dir.path()).unwrap()), ["a.md"]);
    }

    #[test]
    fn an_ignore_pattern_that_tidy_does_not_know_is_refused() {
        for pattern in ["!keep", "a/*.rs", "docs/**", "a/b", "**/x", "[ab]"] {
            let dir = tempfile::tempdir().unwrap();
            write(dir.path(), &[(".gitignore", pattern)]);
            let error = Tree::load(dir.path()).unwrap_err().to_string();
            assert!(error.contains(pattern), "{error}");
        }
    }
}
