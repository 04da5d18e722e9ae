//! Names of pages that are safe on every file system, and the paths that documents' links lead to.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{DocumentId, digest};

/// Letters of a name before the digits that make it its own.
const SLUG_CHARS_MAX: usize = 48;

/// Where a page lies below the wiki's folder. Only the functions here make one, so it never leaves the folder: at most
/// one folder deep, of letters, digits and hyphens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PageName(String);

impl PageName {
    /// The first page.
    #[must_use]
    pub fn index() -> Self {
        Self("index.md".to_owned())
    }

    /// The page of the document at `path`.
    #[must_use]
    pub fn document(id: &DocumentId, path: &str) -> Self {
        Self(format!("documents/{}-{}.md", slug(path), id.short()))
    }

    /// The thumbnail of the picture at `path`.
    #[must_use]
    pub fn thumbnail(id: &DocumentId, path: &str) -> Self {
        Self(format!("pictures/{}-{}.png", slug(path), id.short()))
    }

    /// The page of a term.
    #[must_use]
    pub fn term(term: &str) -> Self {
        let mut digits = digest(&[term.as_bytes()]);
        digits.truncate(8);
        Self(format!("terms/{}-{digits}.md", slug(term)))
    }

    /// A name that was stored; nothing when it is none that the functions above make.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let file = ["documents/", "terms/", "pictures/"].iter().find_map(|folder| text.strip_prefix(folder));
        let stem = file.and_then(|file| file.strip_suffix(".md").or_else(|| file.strip_suffix(".png")));
        let safe = stem.is_some_and(|stem| !stem.is_empty() && stem.chars().all(is_safe));
        (safe || text == "index.md").then(|| Self(text.to_owned()))
    }

    /// With `/`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How a page at `from` links here.
    pub(super) fn seen_from(&self, from: &Self) -> String {
        if from.0.contains('/') { format!("../{}", self.0) } else { self.0.clone() }
    }
}

impl fmt::Display for PageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_safe(char: char) -> bool {
    char.is_alphanumeric() || char == '-'
}

/// Letters and digits in lower case, hyphens between them. Never empty, so never a hidden or reserved name.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for char in text.chars().flat_map(char::to_lowercase) {
        if slug.chars().count() >= SLUG_CHARS_MAX {
            break;
        }
        if char.is_alphanumeric() {
            slug.push(char);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "page".to_owned() } else { slug.to_owned() }
}

/// The path below the folder that `target`, written in the document at `document`, leads to. Nothing for addresses
/// with a scheme or host, for places inside the page, and for paths that leave the folder.
#[must_use]
pub fn resolve(document: &str, target: &str) -> Option<String> {
    let target = target.split(['?', '#']).next().unwrap_or_default();
    let scheme = target.split_once(':').is_some_and(|(scheme, _)| !scheme.contains('/'));
    if target.is_empty() || scheme || target.starts_with("//") {
        return None;
    }
    let target = decoded(target);
    let mut parts: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => document.rsplit_once('/').map_or_else(Vec::new, |(folder, _)| folder.split('/').collect()),
    };
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// `%20` and its like; what does not decode to UTF-8 stays as written.
fn decoded(target: &str) -> String {
    let bytes = target.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).and_then(|pair| std::str::from_utf8(pair).ok());
        let code = digits.filter(|_| byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok());
        plain.push(code.unwrap_or(byte));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8(plain).unwrap_or_else(|_| target.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SourceId;

    #[test]
    fn names_are_safe_short_and_their_own() {
        let source = SourceId::from("s".to_owned());
        for path in ["a/B c.md", "../../etc/passwd", "con.txt", "潮汐/表.csv", "", "....", &"x".repeat(500)]
        {
            let name = PageName::document(&DocumentId::of(&source, path), path);
            assert_eq!(PageName::parse(name.as_str()), Some(name.clone()), "{path}");
            assert!(name.as_str().chars().count() < 80, "{name}");
        }
        assert_ne!(PageName::term("a b"), PageName::term("a-b"));
        assert!(
            PageName::document(&DocumentId::of(&source, "a/B c.md"), "a/B c.md")
                .as_str()
                .starts_with("documents/a-b-c-md-")
        );
    }

    #[test]
    fn a_stored_name_that_could_leave_the_folder_is_none() {
        for text in
            ["documents/../x.md", "/etc/passwd", "terms/.md", "other/x.md", "documents/a/b.md", "terms/x"]
        {
            assert_eq!(PageName::parse(text), None, "{text}");
        }
    }

    #[test]
    fn links_resolve_as_a_reader_would_follow_them() {
        let resolved = |target| resolve("notes/log.md", target);
        assert_eq!(resolved("tide.md#high").as_deref(), Some("notes/tide.md"));
        assert_eq!(resolved("../pictures/a%20b.png").as_deref(), Some("pictures/a b.png"));
        assert_eq!(resolved("/top.md").as_deref(), Some("top.md"));
        for outside in ["https://a.b/c.md", "mailto:ann@a.b", "//host/x", "#here", "../../x.md", ""] {
            assert_eq!(resolved(outside), None, "{outside}");
        }
        assert_eq!(resolve("a.md", "b%zz.md").as_deref(), Some("b%zz.md"));
    }
}
