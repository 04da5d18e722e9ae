//! Collects headings, paragraphs and references into a document, and holds every reader to the limits.

use super::{Document, Limits, Reference, Section};
use crate::Error;
use crate::stage::words::clip;

/// Letters of a title or heading that are kept.
const HEADING_CHARS_MAX: usize = 200;
/// Letters of a link target that are kept; a longer one is a data address.
const TARGET_CHARS_MAX: usize = 2_000;

/// A document in the making.
pub(super) struct Outline<'a> {
    limits: &'a Limits,
    title: Option<String>,
    /// Stands in for a title.
    first_heading: Option<String>,
    headings: Vec<(u8, String)>,
    /// The section being written; its path is that of `headings` when it began.
    current: Section,
    sections: Vec<Section>,
    links: Vec<Reference>,
    images: Vec<Reference>,
    notes: Vec<String>,
    text_bytes: usize,
    references_left_out: usize,
}

impl<'a> Outline<'a> {
    pub(super) fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            title: None,
            first_heading: None,
            headings: Vec::new(),
            current: Section { path: Vec::new(), text: String::new() },
            sections: Vec::new(),
            links: Vec::new(),
            images: Vec::new(),
            notes: Vec::new(),
            text_bytes: 0,
            references_left_out: 0,
        }
    }

    pub(super) fn limits(&self) -> &'a Limits {
        self.limits
    }

    /// The document's own title; the first one counts.
    pub(super) fn title(&mut self, text: &str) {
        if let (None, Some(title)) = (&self.title, tidy(text)) {
            self.title = Some(title);
        }
    }

    /// Ends the section and begins one below a heading of `level` (1 is the highest).
    pub(super) fn heading(&mut self, level: u8, text: &str) -> Result<(), Error> {
        let Some(text) = tidy(text) else { return Ok(()) };
        if level == 1 {
            self.title(&text);
        }
        self.first_heading.get_or_insert_with(|| text.clone());
        let parent = self.headings.last().is_none_or(|(above, _)| *above < level);
        self.headings.retain(|(above, _)| *above < level);
        self.headings.push((level, text));
        let path = self.headings.iter().map(|(_, text)| text.clone()).collect();
        self.begin(path, parent)
    }

    /// Ends the section and begins one with exactly this path, unless that is where we are.
    pub(super) fn enter(&mut self, path: &[String]) -> Result<(), Error> {
        let path: Vec<String> = path.iter().filter_map(|text| tidy(text)).collect();
        if path == self.current.path {
            return Ok(());
        }
        let parent = path.starts_with(&self.current.path);
        self.begin(path, parent)
    }

    /// A paragraph of the current section.
    pub(super) fn paragraph(&mut self, text: &str) -> Result<(), Error> {
        let text = text.trim_matches('\n').trim_end();
        if text.trim_start().is_empty() {
            return Ok(());
        }
        self.text_bytes += text.len() + 2;
        if self.text_bytes > self.limits.text_bytes_max {
            return Err(Error::TooMuchText { limit: self.limits.text_bytes_max });
        }
        if !self.current.text.is_empty() {
            self.current.text.push_str("\n\n");
        }
        self.current.text.push_str(text);
        Ok(())
    }

    pub(super) fn link(&mut self, target: &str, label: &str) {
        if let Some(link) = reference(target, label) {
            if self.links.len() < self.limits.references_max {
                self.links.push(link);
            } else {
                self.references_left_out += 1;
            }
        }
    }

    pub(super) fn image(&mut self, target: &str, label: &str) {
        if let Some(image) = reference(target, label) {
            if self.images.len() < self.limits.references_max {
                self.images.push(image);
            } else {
                self.references_left_out += 1;
            }
        }
    }

    pub(super) fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// The document, titled by the file's name when it has no title of its own.
    pub(super) fn finish(mut self, name: &str) -> Result<Document, Error> {
        self.end(false);
        if self.sections.is_empty() && self.images.is_empty() {
            return Err(Error::NoText);
        }
        if self.references_left_out > 0 {
            self.notes.push(format!("{} links or pictures were left out", self.references_left_out));
        }
        Ok(Document {
            title: self.title.or(self.first_heading).unwrap_or_else(|| stem(name).to_owned()),
            sections: self.sections,
            links: self.links,
            images: self.images,
            notes: self.notes,
        })
    }

    fn begin(&mut self, path: Vec<String>, below: bool) -> Result<(), Error> {
        self.end(below);
        if self.sections.len() >= self.limits.sections_max {
            return Err(Error::TooMuch { what: "sections", limit: self.limits.sections_max });
        }
        self.current.path = path;
        Ok(())
    }

    /// Keeps the section if it has text. A heading with nothing under it is text of its own, unless another heading
    /// follows below it (`below`): then that one carries it in its path.
    fn end(&mut self, below: bool) {
        let mut text = std::mem::take(&mut self.current.text);
        let path = std::mem::take(&mut self.current.path);
        if text.is_empty() && !below {
            text = path.last().cloned().unwrap_or_default();
        }
        if !text.is_empty() {
            self.sections.push(Section { path, text });
        }
    }
}

/// One line, without double spaces, of bearable length; nothing when nothing is left.
fn tidy(text: &str) -> Option<String> {
    let words: Vec<&str> = clip(text.trim(), HEADING_CHARS_MAX * 2).split_whitespace().collect();
    let line = clip(&words.join(" "), HEADING_CHARS_MAX).to_owned();
    if line.is_empty() { None } else { Some(line) }
}

fn reference(target: &str, label: &str) -> Option<Reference> {
    let target = target.trim();
    if target.is_empty() || target.len() > TARGET_CHARS_MAX || target.starts_with("data:") {
        return None;
    }
    Some(Reference { target: target.to_owned(), label: tidy(label).unwrap_or_default() })
}

fn stem(name: &str) -> &str {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
    name.rsplit_once('.').map_or(name, |(stem, _)| if stem.is_empty() { name } else { stem })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(fill: impl FnOnce(&mut Outline<'_>) -> Result<(), Error>) -> Result<Document, Error> {
        let limits = Limits { sections_max: 3, references_max: 1, text_bytes_max: 64, ..Limits::default() };
        let mut outline = Outline::new(&limits);
        fill(&mut outline)?;
        outline.finish("notes/tide table.txt")
    }

    #[test]
    fn sections_carry_the_headings_above_them() {
        let document = filled(|out| {
            out.heading(1, "Boats")?;
            out.heading(3, "Hull ")?;
            out.paragraph("Oak.")?;
            out.heading(2, "Sails")?;
            out.paragraph("Flax.")
        });
        let document = document.expect("reads");
        assert_eq!(document.title, "Boats");
        let paths: Vec<String> = document.sections.iter().map(|section| section.path.join("/")).collect();
        assert_eq!(paths, ["Boats/Hull", "Boats/Sails"]);
    }

    #[test]
    fn a_heading_with_nothing_below_it_is_kept_as_text() {
        let document = filled(|out| {
            out.heading(2, "Rudder")?;
            out.heading(2, "Keel")
        });
        let texts: Vec<String> =
            document.expect("reads").sections.into_iter().map(|section| section.text).collect();
        assert_eq!(texts, ["Rudder", "Keel"]);
    }

    #[test]
    fn the_file_name_stands_in_for_a_title() {
        assert_eq!(filled(|out| out.paragraph("words")).expect("reads").title, "tide table");
        assert_eq!(stem(".profile"), ".profile");
    }

    #[test]
    fn limits_end_as_errors_or_notes() {
        let sections = filled(|out| (0..9).try_for_each(|at| out.heading(2, &format!("part {at}"))));
        assert_eq!(sections.expect_err("refused").to_string(), "more than 3 sections");
        let text = filled(|out| out.paragraph(&"x".repeat(65)));
        assert_eq!(text.expect_err("refused").to_string(), "more than 64 bytes of text once it is laid out");
        let links = filled(|out| {
            out.link("a.md", "a");
            out.link("b.md", "b");
            out.link("data:image/png;base64,AAAA", "c");
            out.paragraph("words")
        });
        let links = links.expect("reads");
        assert_eq!(
            (links.links.len(), links.notes.as_slice()),
            (1, &["1 links or pictures were left out".to_owned()][..])
        );
    }

    #[test]
    fn nothing_at_all_is_said_to_be_nothing() {
        assert!(matches!(filled(|out| out.paragraph(" \n ")), Err(Error::NoText)));
    }
}
