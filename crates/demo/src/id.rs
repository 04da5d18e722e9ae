//! The names of things: documents, chunks, contents and generations.
//!
//! Invariant: an id is a function of what it names, so that a stage run twice names the same things.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Hex digits of an id: 128 bits, enough for any folder.
const ID_DIGITS: usize = 32;
/// Letters of a folder's name in the id of its knowledge base.
const BASE_CHARS_MAX: usize = 40;

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The text of it: lower-case hex when it was made here.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        /// From a task payload or a row; an unknown id simply finds nothing.
        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id! {
    /// One file of one source. Stays the same when its content changes.
    DocumentId
}
text_id! {
    /// One chunk of one document: the same document, place and text give the same id.
    ChunkId
}
text_id! {
    /// SHA-256 of a file's bytes, as 64 hex digits.
    ContentHash
}
text_id! {
    /// A folder that is kept in sync; the handlers use its absolute path.
    SourceId
}
text_id! {
    /// The knowledge base of one source: the folder's name and eight digits, as operators see it in payloads.
    BaseId
}

impl DocumentId {
    /// Of the file at `path` (relative, with `/`) in `source`.
    #[must_use]
    pub fn of(source: &SourceId, path: &str) -> Self {
        Self(digest(&[source.as_str().as_bytes(), path.as_bytes()]))
    }

    /// The first eight digits: what makes a page's name its own.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.get(..8).unwrap_or(&self.0)
    }
}

impl ChunkId {
    /// Of the chunk at `ordinal` of `document`.
    #[must_use]
    pub fn of(document: &DocumentId, ordinal: u32, text: &str) -> Self {
        Self(digest(&[document.0.as_bytes(), &ordinal.to_be_bytes(), text.as_bytes()]))
    }
}

impl BaseId {
    /// Of this source.
    #[must_use]
    pub fn of(source: &SourceId) -> Self {
        let name = source.as_str().rsplit(['/', '\\']).find(|part| !part.is_empty()).unwrap_or("root");
        let plain = |char: char| if char.is_alphanumeric() { char } else { '-' };
        let name: String = name.chars().map(plain).take(BASE_CHARS_MAX).collect();
        Self(format!("{name}-{}", &digest(&[source.as_str().as_bytes()])[..8]))
    }
}

impl ContentHash {
    /// Of bytes in memory.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::finish(Sha256::new_with_prefix(bytes))
    }

    /// Stands for content that is not read, and says why; never equal to the hash of any content.
    #[must_use]
    pub fn unread(why: &str) -> Self {
        // Half as long as a hash of content.
        Self(digest(&[b"unread", why.as_bytes()]))
    }

    /// Of everything that went into `hasher`.
    pub(crate) fn finish(hasher: Sha256) -> Self {
        Self(hex(&hasher.finalize()))
    }
}

/// Which life of a document a task works for.
///
/// Every admission of new content takes the next number of the whole library, so a number is never used twice, not
/// even by a file that was removed and came back; a task that carries an old one finds nothing to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(pub i64);

/// What every write is keyed by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The document.
    pub document: DocumentId,
    /// The life of it that the writer knows.
    pub generation: Generation,
}

/// The first 128 bits of SHA-256 over the parts, each led by its length so that no two lists collide.
pub(crate) fn digest(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let mut text = hex(&hasher.finalize());
    text.truncate(ID_DIGITS);
    text
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_hash_is_sha_256() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(ContentHash::of(b"abc").as_str(), abc);
    }

    #[test]
    fn a_knowledge_base_is_called_after_its_folder() {
        let of = |path: &str| BaseId::of(&SourceId::from(path.to_owned()));
        let id = of("/home/ann/my notes");
        assert_eq!((id.as_str().len(), &id.as_str()[..9]), (17, "my-notes-"));
        assert_ne!(id, of("/home/bob/my notes"));
        assert!(of("/").as_str().starts_with("root-"));
        assert!(of(&"é".repeat(500)).as_str().len() < 200, "an id has room for it");
    }

    #[test]
    fn ids_repeat_and_parts_do_not_run_together() {
        let source = SourceId::from("/home/ann".to_owned());
        assert_eq!(DocumentId::of(&source, "a.md"), DocumentId::of(&source, "a.md"));
        assert_ne!(digest(&[b"ab", b"c"]), digest(&[b"a", b"bc"]));
        let document = DocumentId::of(&source, "a.md");
        assert_ne!(ChunkId::of(&document, 0, "x"), ChunkId::of(&document, 1, "x"));
        assert_eq!(document.as_str().len(), ID_DIGITS);
        assert_ne!(ContentHash::unread("").as_str().len(), ContentHash::of(b"").as_str().len());
        assert_eq!(document.short().len(), 8);
    }
}
