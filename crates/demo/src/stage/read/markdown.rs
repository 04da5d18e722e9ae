//! Markdown: CommonMark with tables, footnotes, task lists and front matter.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::html;
use super::outline::Outline;
use crate::Error;

pub(super) fn read(text: &str, out: &mut Outline<'_>) -> Result<(), Error> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let mut page = Page {
        out,
        block: String::new(),
        page_html: String::new(),
        lists: Vec::new(),
        spans: Vec::new(),
        depth: 0,
    };
    for event in Parser::new_ext(text, options) {
        page.take(event)?;
    }
    page.flush()
}

/// A link or picture whose words are still being read.
struct Span {
    target: String,
    /// Where in the block its words begin.
    from: usize,
    picture: bool,
}

struct Page<'o, 'l> {
    out: &'o mut Outline<'l>,
    block: String,
    page_html: String,
    /// The next number of each open list; none for a list of bullets.
    lists: Vec<Option<u64>>,
    spans: Vec<Span>,
    depth: usize,
}

impl Page<'_, '_> {
    fn take(&mut self, event: Event<'_>) -> Result<(), Error> {
        match event {
            Event::Start(tag) => {
                self.depth += 1;
                let limit = self.out.limits().depth_max;
                if self.depth > limit {
                    return Err(Error::TooMuch { what: "Markdown blocks inside each other", limit });
                }
                self.start(tag)
            }
            Event::End(tag) => {
                self.depth -= 1;
                self.end(tag)
            }
            Event::Text(words) | Event::Code(words) => self.words(&words),
            Event::Html(source) => self.html(&source),
            Event::SoftBreak => self.words(" "),
            Event::HardBreak => self.words("\n"),
            Event::TaskListMarker(done) => self.words(if done { "[x] " } else { "[ ] " }),
            // A tag inside a line carries no words of its own, only perhaps a picture.
            Event::InlineHtml(source) => html::references(&source, self.out),
            Event::FootnoteReference(_) | Event::Rule | Event::InlineMath(_) | Event::DisplayMath(_) => {
                Ok(())
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) -> Result<(), Error> {
        match tag {
            // A paragraph right behind its bullet belongs to the bullet's line.
            Tag::Paragraph if self.lists.is_empty() => self.flush(),
            Tag::Heading { .. }
            | Tag::CodeBlock(_)
            | Tag::HtmlBlock
            | Tag::Table(_)
            | Tag::BlockQuote(_)
            | Tag::FootnoteDefinition(_)
            | Tag::MetadataBlock(_) => self.flush(),
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.flush()?;
                }
                self.lists.push(first);
                Ok(())
            }
            Tag::Item => self.bullet(),
            Tag::Link { dest_url, .. } => self.open(&dest_url, false),
            Tag::Image { dest_url, .. } => self.open(&dest_url, true),
            _ => Ok(()),
        }
    }

    fn end(&mut self, tag: TagEnd) -> Result<(), Error> {
        match tag {
            TagEnd::Heading(level) => {
                let words = std::mem::take(&mut self.block);
                self.out.heading(level as u8, &words)
            }
            TagEnd::MetadataBlock(_) => {
                let matter = std::mem::take(&mut self.block);
                self.front_matter(&matter);
                Ok(())
            }
            TagEnd::HtmlBlock => {
                let source = std::mem::take(&mut self.page_html);
                html::read(&source, self.out)
            }
            TagEnd::Paragraph if self.lists.is_empty() => self.flush(),
            TagEnd::CodeBlock | TagEnd::Table | TagEnd::FootnoteDefinition => self.flush(),
            TagEnd::TableCell => self.words(" | "),
            TagEnd::TableHead | TagEnd::TableRow => self.line_end(),
            TagEnd::List(_) => {
                self.lists.pop();
                if self.lists.is_empty() { self.flush() } else { Ok(()) }
            }
            TagEnd::Link | TagEnd::Image => {
                self.close();
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn words(&mut self, words: &str) -> Result<(), Error> {
        self.block.push_str(words);
        let limit = self.out.limits().text_bytes_max;
        if self.block.len() > limit { Err(Error::TooMuchText { limit }) } else { Ok(()) }
    }

    fn html(&mut self, source: &str) -> Result<(), Error> {
        self.page_html.push_str(source);
        Ok(())
    }

    fn bullet(&mut self) -> Result<(), Error> {
        self.line_end()?;
        let indent = "  ".repeat(self.lists.len().saturating_sub(1));
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{indent}{}. ", *number - 1)
            }
            _ => format!("{indent}- "),
        };
        self.words(&mark)
    }

    fn line_end(&mut self) -> Result<(), Error> {
        let kept = self.block.trim_end_matches([' ', '|']).len();
        self.block.truncate(kept);
        if self.block.is_empty() || self.block.ends_with('\n') { Ok(()) } else { self.words("\n") }
    }

    fn open(&mut self, target: &str, picture: bool) -> Result<(), Error> {
        self.spans.push(Span { target: target.to_owned(), from: self.block.len(), picture });
        Ok(())
    }

    fn close(&mut self) {
        let Some(span) = self.spans.pop() else { return };
        let label = self.block.get(span.from..).unwrap_or_default();
        if span.picture { self.out.image(&span.target, label) } else { self.out.link(&span.target, label) }
    }

    /// The title is all that we take from front matter.
    fn front_matter(&mut self, matter: &str) {
        let title = matter.lines().find_map(|line| {
            let (key, value) = line.split_once([':', '='])?;
            key.trim().eq_ignore_ascii_case("title").then_some(value)
        });
        if let Some(title) = title {
            self.out.title(title.trim().trim_matches(['"', '\'']));
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.out.paragraph(&self.block)?;
        self.block.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Document, Limits, read};
    use crate::Error;
    use crate::kind::Kind;

    fn parse(text: &str) -> Result<Document, Error> {
        read(Kind::Markdown, "page.md", text.as_bytes(), &Limits::default())
    }

    #[test]
    fn headings_paragraphs_lists_and_code() {
        let text = "# Boat *yard*\n\nWe mend\nboats.\n\n## Steps\n\n1. haul\n2. scrape\n   - with care\n\n```sh\nmake  all\n```\n";
        let document = parse(text).expect("reads");
        assert_eq!(document.title, "Boat yard");
        assert_eq!(document.sections[0].text, "We mend boats.");
        assert_eq!(document.sections[1].path, ["Boat yard", "Steps"]);
        assert_eq!(document.sections[1].text, "1. haul\n2. scrape\n  - with care\n\nmake  all");
    }

    #[test]
    fn tables_links_pictures_and_pages_inside() {
        let text = "|a|b|\n|-|-|\n|1|2|\n\nSee [the **log**](log.txt) ![a hull](hull.png)\n\n<p>Raw <img src=\"raw.gif\" alt=r> words</p>\n\nand <img src=inline.png> more\n";
        let document = parse(text).expect("reads");
        assert_eq!(document.sections[0].text, "a | b\n1 | 2\n\nSee the log a hull\n\nRaw words\n\nand  more");
        assert_eq!(
            (document.links[0].target.as_str(), document.links[0].label.as_str()),
            ("log.txt", "the log")
        );
        let pictures: Vec<_> = document.images.iter().map(|image| image.target.as_str()).collect();
        assert_eq!(pictures, ["hull.png", "raw.gif", "inline.png"]);
    }

    #[test]
    fn front_matter_names_the_page_and_is_no_text() {
        let document = parse("---\ntitle: \"The yard\"\ntags: [x]\n---\nWords.\n").expect("reads");
        assert_eq!((document.title.as_str(), document.sections[0].text.as_str()), ("The yard", "Words."));
    }

    #[test]
    fn deep_nesting_is_one_clear_error() {
        let deep = parse(&format!("{} deep", ">".repeat(2_000))).expect_err("refused");
        assert_eq!(deep.to_string(), "more than 64 Markdown blocks inside each other");
    }
}
