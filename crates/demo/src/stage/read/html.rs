//! HTML: the words of a page in reading order, its headings, links and pictures.
//!
//! Why not a tree: the rules for broken pages let a small file grow a huge one (each open `<b id=1><b id=2>…` is
//! copied into every later block), and we only want words. One pass over the tags is linear in time and memory.

use super::outline::Outline;
use crate::Error;

mod entity;
mod token;

use token::{Token, Tokens};

/// Elements whose content is no text of the page.
const SILENT: [&str; 8] = ["template", "svg", "math", "nav", "select", "object", "audio", "video"];

/// Elements that stand on lines of their own.
const BLOCKS: [&str; 36] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "caption",
    "dd",
    "details",
    "dialog",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "head",
    "header",
    "hr",
    "html",
    "legend",
    "main",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tbody",
    "tfoot",
    "thead",
    "tr",
    "ul",
    "li",
    "center",
];

pub(super) fn read(text: &str, out: &mut Outline<'_>) -> Result<(), Error> {
    let mut page = Page::new(out);
    for token in Tokens::new(text) {
        page.take(token)?;
    }
    page.flush()
}

/// Only the pictures of a scrap of HTML, such as a tag inside a line of Markdown.
pub(super) fn references(scrap: &str, out: &mut Outline<'_>) -> Result<(), Error> {
    for token in Tokens::new(scrap) {
        if let Token::Open { name: "img", attributes } = token {
            picture(attributes, out);
        }
    }
    Ok(())
}

struct Page<'o, 'l, 't> {
    out: &'o mut Outline<'l>,
    block: String,
    /// The level, while inside a heading.
    heading: Option<u8>,
    /// Target and where in the block its words begin, while inside a link.
    link: Option<(String, usize)>,
    /// The silent element we are in and how many of its name are open.
    silent: Option<(&'t str, usize)>,
    /// Whether line ends and spaces are kept as they are.
    preformatted: bool,
    entities: entity::Entities,
}

impl<'o, 'l, 't> Page<'o, 'l, 't> {
    fn new(out: &'o mut Outline<'l>) -> Self {
        Self {
            out,
            block: String::new(),
            heading: None,
            link: None,
            silent: None,
            preformatted: false,
            entities: entity::Entities::default(),
        }
    }

    fn take(&mut self, token: Token<'t>) -> Result<(), Error> {
        if let Some((silent, open)) = &mut self.silent {
            match token {
                Token::Open { name, .. } if name.eq_ignore_ascii_case(silent) => *open += 1,
                Token::Close { name } if name.eq_ignore_ascii_case(silent) => *open -= 1,
                _ => {}
            }
            if *open == 0 {
                self.silent = None;
            }
            return Ok(());
        }
        match token {
            Token::Text(words) => self.words(words),
            Token::Raw { name, text } => self.raw(name, text),
            Token::Open { name, attributes } => self.open(name, attributes),
            Token::Close { name } => self.close(&name.to_ascii_lowercase()),
        }
    }

    fn open(&mut self, raw_name: &'t str, attributes: &'t str) -> Result<(), Error> {
        let name = raw_name.to_ascii_lowercase();
        match name.as_str() {
            name if SILENT.contains(&name) => self.silent = Some((raw_name, 1)),
            "img" => picture(attributes, self.out),
            "br" => self.block.push('\n'),
            "a" => {
                self.end_link();
                let target = token::attribute(attributes, "href").unwrap_or_default();
                self.link = Some((self.entities.decode(target), self.block.len()));
            }
            "td" | "th" if !self.at_line_start() => self.block.push_str(" | "),
            "tr" if !self.at_line_start() => self.block.push('\n'),
            "li" | "dt" => {
                self.flush()?;
                self.block.push_str(if name == "li" { "- " } else { "" });
            }
            "tr" => {}
            name => {
                if let Some(level) = heading_level(name) {
                    self.flush()?;
                    self.heading = Some(level);
                } else if BLOCKS.contains(&name) {
                    self.flush()?;
                    self.preformatted |= name == "pre";
                }
            }
        }
        Ok(())
    }

    fn close(&mut self, name: &str) -> Result<(), Error> {
        match name {
            "a" => self.end_link(),
            "tr" => self.block.push('\n'),
            name if heading_level(name).is_some() => {
                self.flush()?;
                self.heading = None;
            }
            name if BLOCKS.contains(&name) => {
                self.flush()?;
                self.preformatted &= name != "pre";
            }
            _ => {}
        }
        Ok(())
    }

    fn raw(&mut self, name: &str, text: &str) -> Result<(), Error> {
        if name.eq_ignore_ascii_case("title") {
            let title = self.entities.decode(text);
            self.out.title(&title);
        } else if name.eq_ignore_ascii_case("textarea") {
            self.words(text)?;
        }
        Ok(())
    }

    fn words(&mut self, words: &str) -> Result<(), Error> {
        let words = self.entities.decode(words);
        if self.preformatted {
            self.block.push_str(&words);
        } else {
            for char in words.chars() {
                if !is_space(char) {
                    self.block.push(char);
                } else if !self.block.ends_with([' ', '\n']) && !self.block.is_empty() {
                    self.block.push(' ');
                }
            }
        }
        let limit = self.out.limits().text_bytes_max;
        if self.block.len() > limit { Err(Error::TooMuchText { limit }) } else { Ok(()) }
    }

    fn at_line_start(&self) -> bool {
        self.block.is_empty() || self.block.ends_with('\n')
    }

    fn end_link(&mut self) {
        if let Some((target, from)) = self.link.take() {
            let label = self.block.get(from..).unwrap_or_default();
            // A jump inside the page leads nowhere else.
            if !target.starts_with('#') {
                self.out.link(&target, label);
            }
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        // A link around a block keeps the words before the block ended.
        self.end_link();
        let block = std::mem::take(&mut self.block);
        if block.trim_matches(['-', ' ', '\n']).is_empty() {
            // A heading whose words are still to come, inside a block of their own, stays open.
            return Ok(());
        }
        match self.heading.take() {
            Some(level) => self.out.heading(level, &block),
            None => self.out.paragraph(&block),
        }
    }
}

fn picture(attributes: &str, out: &mut Outline<'_>) {
    if let Some(source) = token::attribute(attributes, "src") {
        let mut entities = entity::Entities::default();
        let label = token::attribute(attributes, "alt").unwrap_or_default();
        out.image(&entities.decode(source), &entities.decode(label));
    }
}

/// What HTML calls white space; a no-break space is none.
fn is_space(char: char) -> bool {
    matches!(char, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

fn heading_level(name: &str) -> Option<u8> {
    match name.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some(level - b'0'),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
