//! Cuts a document into chunks at headings and paragraphs, and only when it must inside them.
//!
//! Invariant: every character of every paragraph is in exactly one chunk, in order; no chunk is longer than the
//! maximum and none is empty.

use serde::{Deserialize, Serialize};

use super::read::Document;
use super::words::{clip, sentence_end};
use crate::id::{ChunkId, DocumentId};

/// Between the headings of a path, where a person reads it.
pub const PATH_MARK: &str = " › ";

/// How long chunks should be, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Size {
    /// A chunk is ended when the next paragraph would pass this. Default 800.
    pub target: usize,
    /// No chunk is longer. Default 1,600; taken as at least the target.
    pub max: usize,
}

impl Default for Size {
    fn default() -> Self {
        Self { target: 800, max: 1_600 }
    }
}

/// A piece of a document that is found, questioned and drawn as one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Of document, place and text.
    pub id: ChunkId,
    /// Its place in the document, from 0.
    pub ordinal: u32,
    /// The headings above it, or the document's title when there are none.
    pub heading: String,
    /// Paragraphs with an empty line between them.
    pub text: String,
}

/// The chunks of a document, in order.
#[must_use]
pub fn cut(id: &DocumentId, document: &Document, size: &Size) -> Vec<Chunk> {
    let target = size.target.max(1);
    let size = Size { target, max: size.max.max(target) };
    let mut chunks = Vec::new();
    for section in &document.sections {
        let heading =
            if section.path.is_empty() { document.title.clone() } else { section.path.join(PATH_MARK) };
        for text in pack(&section.text, &size) {
            let ordinal = u32::try_from(chunks.len()).expect("a document of 32 MiB has fewer chunks");
            let heading = heading.clone();
            chunks.push(Chunk { id: ChunkId::of(id, ordinal, &text), ordinal, heading, text });
        }
    }
    chunks
}

/// Paragraphs put together up to the target. A short beginning takes one more paragraph rather than stand alone.
fn pack(text: &str, size: &Size) -> Vec<String> {
    const GAP: usize = 2;
    let mut packed = Vec::new();
    let mut current = String::new();
    let mut length = 0;
    for piece in text.split("\n\n").flat_map(|paragraph| pieces(paragraph, size)) {
        let more = piece.chars().count();
        let sum = length + GAP + more;
        let fits = sum <= size.target || (length < size.target / 4 && sum <= size.max);
        if current.is_empty() || !fits {
            packed.push(std::mem::replace(&mut current, piece.to_owned()));
            length = more;
        } else {
            current.push_str("\n\n");
            current.push_str(piece);
            length = sum;
        }
    }
    packed.push(current);
    packed.retain(|text| !text.is_empty());
    packed
}

/// A paragraph whole if it fits; otherwise runs of sentences near the target, and pieces of sentences that are longer
/// than the maximum.
fn pieces<'a>(paragraph: &'a str, size: &Size) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    let mut rest = paragraph.trim_matches('\n').trim_end();
    while clip(rest, size.max).len() < rest.len() {
        let end = piece_end(rest, size);
        let (piece, next) = rest.split_at(end);
        pieces.push(piece.trim_end());
        rest = next.trim_start_matches([' ', '\n']);
    }
    pieces.push(rest);
    pieces.retain(|piece| !piece.trim().is_empty());
    pieces
}

/// Where to cut a text that is too long: behind the last sentence that ends within the target, else behind the
/// first if it fits, else at the last space, else at the maximum.
fn piece_end(text: &str, size: &Size) -> usize {
    let window = clip(text, size.max);
    let target = clip(window, size.target).len();
    let mut end = 0;
    while end < window.len() {
        let next = end + sentence_end(&window[end..]);
        // The last "sentence" of the window may be cut by the window itself.
        if next >= window.len() || (end > 0 && next > target) {
            break;
        }
        end = next;
    }
    if end > 0 {
        return end;
    }
    let space = window.rfind('\n').or_else(|| window.rfind(char::is_whitespace));
    space.filter(|at| *at > 0).unwrap_or(window.len())
}

#[cfg(test)]
mod tests {
    use super::super::read::Section;
    use super::*;
    use crate::id::SourceId;

    fn document(sections: &[(&[&str], &str)]) -> Document {
        let section = |(path, text): &(&[&str], &str)| Section {
            path: path.iter().map(|&heading| heading.to_owned()).collect(),
            text: (*text).to_owned(),
        };
        Document {
            title: "Yard".into(),
            sections: sections.iter().map(section).collect(),
            links: Vec::new(),
            images: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn id() -> DocumentId {
        DocumentId::of(&SourceId::from("s".to_owned()), "yard.md")
    }

    fn texts(text: &str, target: usize, max: usize) -> Vec<String> {
        let chunks = cut(&id(), &document(&[(&[], text)]), &Size { target, max });
        chunks.into_iter().map(|chunk| chunk.text).collect()
    }

    #[test]
    fn headings_part_chunks_and_name_them() {
        let document =
            document(&[(&[], "Before."), (&["Yard", "Slip"], "Below."), (&["Yard", "Crane"], "Up.")]);
        let chunks = cut(&id(), &document, &Size::default());
        let seen: Vec<_> = chunks.iter().map(|chunk| (chunk.ordinal, chunk.heading.as_str())).collect();
        assert_eq!(seen, [(0, "Yard"), (1, "Yard › Slip"), (2, "Yard › Crane")]);
        assert_eq!(chunks, cut(&id(), &document, &Size::default()), "ids repeat");
    }

    #[test]
    fn paragraphs_are_put_together_up_to_the_target() {
        let paragraph = "x".repeat(10);
        let text = [paragraph.as_str(); 5].join("\n\n");
        let lengths: Vec<usize> = texts(&text, 25, 50).iter().map(String::len).collect();
        assert_eq!(lengths, [22, 22, 10]);
    }

    #[test]
    fn a_short_beginning_takes_a_longer_paragraph_with_it() {
        let text = format!("Lead.\n\n{}", "y".repeat(24));
        assert_eq!(texts(&text, 25, 50).len(), 1);
    }

    #[test]
    fn long_paragraphs_are_cut_at_sentence_ends() {
        let text = "One two three. Four five six. Seven eight nine. Ten.";
        assert_eq!(texts(text, 30, 40), ["One two three. Four five six.", "Seven eight nine. Ten."]);
    }

    #[test]
    fn a_sentence_that_never_ends_is_cut_at_spaces_and_never_inside_a_character() {
        let text = "größe ".repeat(20);
        for chunk in texts(&text, 10, 20) {
            assert!(chunk.chars().count() <= 20 && chunk.starts_with('g') && chunk.ends_with('e'), "{chunk}");
        }
        let solid = "潮".repeat(50);
        let lengths: Vec<usize> = texts(&solid, 10, 20).iter().map(|text| text.chars().count()).collect();
        assert_eq!(lengths, [20, 20, 10]);
    }

    #[test]
    fn nothing_is_lost_and_nothing_is_too_long() {
        let words = ["tide", "a.", "größer?", "一二三。", "\n\n", "\n- item", "3.5", "…", "e.g."];
        for seed in 0..200_usize {
            let text: Vec<&str> =
                (0..120).map(|at| words[(seed * 7 + at * at + at / 3) % words.len()]).collect();
            let text = text.join(" ");
            let chunks = texts(&text, 20, 30);
            let letters = |text: &str| text.chars().filter(|char| !char.is_whitespace()).collect::<String>();
            assert_eq!(letters(&chunks.concat()), letters(&text));
            assert!(chunks.iter().all(|chunk| (1..=30).contains(&chunk.chars().count())));
        }
    }
}
