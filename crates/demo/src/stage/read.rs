//! Turns the bytes of a file into a document: title, sections under their headings, links and pictures.
//!
//! Invariant: time and memory are linear in the input and bounded by [`Limits`]; nothing recurses over the input, so
//! the worst file ends as one clear error.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::kind::Kind;

mod csv;
mod decode;
mod html;
mod json;
mod markdown;
mod outline;
mod text;

/// Bounds of one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes that are read. Default 20 MiB.
    pub bytes_max: usize,
    /// Bytes of text that a document may have once it is laid out. Default 32 MiB.
    pub text_bytes_max: usize,
    /// Sections. Default 20,000.
    pub sections_max: usize,
    /// Links and pictures, each; further ones are left out with a note. Default 10,000.
    pub references_max: usize,
    /// Blocks or values inside each other. Default 64.
    pub depth_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 20 << 20,
            text_bytes_max: 32 << 20,
            sections_max: 20_000,
            references_max: 10_000,
            depth_max: 64,
        }
    }
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// The document's own title, or the file's name.
    pub title: String,
    /// In reading order; none is empty.
    pub sections: Vec<Section>,
    /// Where it points.
    pub links: Vec<Reference>,
    /// Pictures it shows.
    pub images: Vec<Reference>,
    /// What a person should know about how it was read: ragged rows, links left out.
    pub notes: Vec<String>,
}

/// Text under one heading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// The headings above, outermost first; empty before the first heading.
    pub path: Vec<String>,
    /// Paragraphs with an empty line between them.
    pub text: String,
}

/// A link or a picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The address as written.
    pub target: String,
    /// The words of the link, or the picture's description.
    pub label: String,
}

/// Reads `bytes`, the content of the file `name`, as `kind`.
///
/// # Errors
/// One that says what is wrong with the content and where; see [`Error`]. A picture is refused as
/// [`Error::Unsupported`]: its stage is [`image`](super::image).
pub fn read(kind: Kind, name: &str, bytes: &[u8], limits: &Limits) -> Result<Document, Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    if bytes.len() > limits.bytes_max {
        return Err(Error::TooLarge { size: bytes.len() as u64, limit: limits.bytes_max as u64 });
    }
    if kind.is_picture() {
        return Err(Error::Unsupported { what: format!("{} as text", kind.title()) });
    }
    let text = decode::decode(bytes)?;
    if text.trim().is_empty() {
        return Err(Error::NoText);
    }
    let mut outline = outline::Outline::new(limits);
    match kind {
        Kind::Markdown => markdown::read(&text, &mut outline)?,
        Kind::Html => html::read(&text, &mut outline)?,
        Kind::Csv => csv::read(&text, &mut outline)?,
        Kind::Json => json::read(&text, &mut outline)?,
        _ => text::read(&text, &mut outline)?,
    }
    outline.finish(name)
}
