//! What kind of file this is: by its name, checked against its first bytes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Error;

/// Bytes at the start of a file that [`Kind::check`] wants to see.
pub const HEAD_BYTES: usize = 512;

/// The kinds of file that a stage reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// CommonMark with tables, footnotes and front matter.
    Markdown,
    /// Plain text, logs and the lighter markups.
    Text,
    /// A web page.
    Html,
    /// Rows of cells, parted by comma, semicolon, tab or bar.
    Csv,
    /// One JSON value.
    Json,
    /// Portable Network Graphics.
    Png,
    /// A JPEG photograph.
    Jpeg,
    /// The first frame of a GIF.
    Gif,
    /// WebP, lossy or lossless.
    Webp,
}

/// Kind, word in rows and payloads, words for a person, extensions.
type Row = (Kind, &'static str, &'static str, &'static [&'static str]);

const TABLE: [Row; 9] = [
    (Kind::Markdown, "markdown", "Markdown", &["md", "markdown", "mdown", "mkd"]),
    (Kind::Text, "text", "text", &["txt", "text", "log", "rst", "adoc", "org"]),
    (Kind::Html, "html", "HTML", &["html", "htm", "xhtml"]),
    (Kind::Csv, "csv", "CSV", &["csv", "tsv"]),
    (Kind::Json, "json", "JSON", &["json"]),
    (Kind::Png, "png", "a PNG picture", &["png"]),
    (Kind::Jpeg, "jpeg", "a JPEG picture", &["jpg", "jpeg", "jpe"]),
    (Kind::Gif, "gif", "a GIF picture", &["gif"]),
    (Kind::Webp, "webp", "a WebP picture", &["webp"]),
];

/// First bytes, what they say, and whether plain text could begin with them too.
const SIGNATURES: [(&[u8], &str, bool); 16] = [
    (b"%PDF-", "a PDF document", false),
    (b"PK\x03\x04", "a ZIP archive (as DOCX, XLSX and EPUB files are)", false),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document", false),
    (b"\x1f\x8b", "gzip data", false),
    (b"\x7fELF", "a program", false),
    (b"\0asm", "a program", false),
    (b"MZ", "a program", true),
    (b"SQLite format 3\0", "a SQLite database", false),
    (b"BM", "a BMP picture", true),
    (b"II*\0", "a TIFF picture", false),
    (b"MM\0*", "a TIFF picture", false),
    (b"ID3", "an MP3 sound", true),
    (b"OggS", "an Ogg sound", true),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", false),
    (b"Rar!\x1a\x07", "a RAR archive", false),
    (b"\xfd7zXZ\0", "xz data", false),
];

impl Kind {
    /// By extension, without the dot, in any case.
    #[must_use]
    pub fn of_extension(extension: &str) -> Option<Self> {
        let extension = extension.to_ascii_lowercase();
        TABLE.iter().find(|row| row.3.contains(&extension.as_str())).map(|row| row.0)
    }

    /// The word in rows and payloads.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().1
    }

    /// The kind with that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == word).map(|row| row.0)
    }

    /// How a sentence calls it: `Markdown`, `a PNG picture`.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.row().2
    }

    /// Decoded by the picture stage rather than read as text.
    #[must_use]
    pub fn is_picture(self) -> bool {
        matches!(self, Self::Png | Self::Jpeg | Self::Gif | Self::Webp)
    }

    /// The kind of a file with this extension whose content begins with `head` (up to [`HEAD_BYTES`]).
    ///
    /// # Errors
    /// [`Error::Empty`], [`Error::Unsupported`], or [`Error::Mislabelled`] when name and content disagree.
    pub fn check(extension: Option<&str>, head: &[u8]) -> Result<Self, Error> {
        let named = extension.map(|extension| (extension, Self::of_extension(extension)));
        if let Some((extension, None)) = named {
            return Err(Error::Unsupported { what: format!(".{} files", extension.to_ascii_lowercase()) });
        }
        let content = Content::of(head).ok_or(Error::Empty)?;
        match (named, content) {
            (Some((_, Some(kind))), Content::Picture(found)) if kind == found => Ok(kind),
            (Some((_, Some(kind))), Content::Text | Content::Unknown) if !kind.is_picture() => Ok(kind),
            (Some((extension, _)), content) => {
                let named = format!(".{}", extension.to_ascii_lowercase());
                Err(Error::Mislabelled { named, found: content.title() })
            }
            (None, Content::Picture(found)) => Ok(found),
            (None, Content::Text) => Ok(Self::Text),
            (None, content) => Err(Error::Unsupported { what: content.title().to_owned() }),
        }
    }

    fn row(self) -> &'static Row {
        TABLE.iter().find(|row| row.0 == self).expect("the table has a row for each kind")
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the first bytes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Picture(Kind),
    Other(&'static str),
    Text,
    Unknown,
}

impl Content {
    /// Nothing for an empty file.
    fn of(head: &[u8]) -> Option<Self> {
        let picture = match head {
            [] => return None,
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Kind::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Kind::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Kind::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Kind::Webp),
            _ => None,
        };
        if let Some(kind) = picture {
            return Some(Self::Picture(kind));
        }
        let text = looks_like_text(head);
        let signed = SIGNATURES.iter().find(|(first, _, texts)| head.starts_with(first) && !(*texts && text));
        Some(match signed {
            Some((_, what, _)) => Self::Other(what),
            None if text => Self::Text,
            None => Self::Unknown,
        })
    }

    fn title(self) -> &'static str {
        match self {
            Self::Picture(kind) => kind.title(),
            Self::Other(what) => what,
            Self::Text => "text",
            Self::Unknown => "data of an unknown kind",
        }
    }
}

/// No control bytes that text does not use; UTF-16 with its mark counts as text.
fn looks_like_text(head: &[u8]) -> bool {
    head.starts_with(b"\xff\xfe")
        || head.starts_with(b"\xfe\xff")
        || !head.iter().any(|byte| is_binary(*byte))
}

/// A control byte that no text file holds: not tab, newline, form feed, carriage return, backspace or escape.
pub(crate) fn is_binary(byte: u8) -> bool {
    matches!(byte, 0..=7 | 11 | 14..=26 | 28..=31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

    fn refusal(extension: Option<&str>, head: &[u8]) -> String {
        Kind::check(extension, head).expect_err("refused").to_string()
    }

    #[test]
    fn name_and_content_agree() {
        assert_eq!(Kind::check(Some("MD"), b"# Hello").expect("reads"), Kind::Markdown);
        assert_eq!(Kind::check(Some("png"), PNG).expect("reads"), Kind::Png);
        assert_eq!(Kind::check(Some("webp"), b"RIFF\x10\0\0\0WEBPVP8L").expect("reads"), Kind::Webp);
    }

    #[test]
    fn a_file_without_extension_is_what_it_holds() {
        assert_eq!(Kind::check(None, b"Permission is hereby granted").expect("reads"), Kind::Text);
        assert_eq!(Kind::check(None, b"GIF89a\x01\0").expect("reads"), Kind::Gif);
        assert!(refusal(None, b"\x7fELF\x02\x01\x01").contains("not a program"));
    }

    #[test]
    fn a_wrong_name_is_told_with_both_sides() {
        assert_eq!(refusal(Some("md"), PNG), "named .md, but it holds a PNG picture");
        assert_eq!(refusal(Some("PNG"), b"not a picture"), "named .png, but it holds text");
        assert_eq!(refusal(Some("jpg"), PNG), "named .jpg, but it holds a PNG picture");
        assert!(refusal(Some("txt"), b"%PDF-1.7\n").contains("a PDF document"));
        assert_eq!(refusal(Some("gif"), &[0, 1, 2, 3]), "named .gif, but it holds data of an unknown kind");
    }

    #[test]
    fn words_that_begin_like_a_signature_stay_text() {
        assert_eq!(Kind::check(Some("txt"), b"BMW and MZ are brands").expect("reads"), Kind::Text);
        assert_eq!(refusal(Some("txt"), b"BM\x36\0\0\0"), "named .txt, but it holds a BMP picture");
    }

    #[test]
    fn empty_and_unknown_are_refused_with_a_reason() {
        assert_eq!(refusal(Some("md"), b""), "the file is empty");
        assert!(refusal(Some("exe"), b"MZ\x90\0").ends_with("not .exe files"));
    }

    #[test]
    fn each_word_leads_back_to_its_kind() {
        for (kind, word, _, _) in TABLE {
            assert_eq!(Kind::parse(word), Some(kind));
            assert_eq!(kind.as_str(), word);
        }
    }
}
