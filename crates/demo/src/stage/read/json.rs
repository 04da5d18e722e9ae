//! JSON: keys become headings down to three levels and `key: value` lines below, streamed without building a tree.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;

use super::outline::Outline;
use crate::Error;
use crate::stage::words::clip;

/// Keys that become headings; deeper ones are joined by dots.
const HEADINGS_MAX: usize = 3;
/// Letters of a key that are repeated in lines and headings.
const KEY_CHARS_MAX: usize = 64;

pub(super) fn read(text: &str, out: &mut Outline<'_>) -> Result<(), Error> {
    let mut walk = Walk::new(out);
    let mut source = serde_json::Deserializer::from_str(text);
    let parsed = Step { walk: &mut walk, section: None }.deserialize(&mut source).and_then(|()| source.end());
    if let Some(refused) = walk.refused.take() {
        return Err(refused);
    }
    parsed.map_err(|error| malformed(&error))?;
    walk.flush()
}

/// serde_json puts the place behind its message; we say it our own way.
fn malformed(error: &serde_json::Error) -> Error {
    let (line, column) = (error.line(), error.column());
    let message = error.to_string();
    let detail =
        message.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&message).to_owned();
    match error.classify() {
        Category::Eof => {
            let detail =
                format!("it ends at line {line}, column {column}, {}", detail.replace("EOF while", "while"));
            Error::CutOff { format: "JSON", detail }
        }
        _ => Error::Malformed { format: "JSON", line, column, detail },
    }
}

struct Walk<'o, 'l> {
    out: &'o mut Outline<'l>,
    /// Keys that became headings.
    path: Vec<String>,
    /// Keys below the headings; they lead each line.
    keys: Vec<String>,
    /// Lines of the paragraph being written.
    block: String,
    /// Lists around us; inside one, a value gets no heading.
    lists: usize,
    depth: usize,
    /// Whether the next plain value of a list goes on the line of the one before.
    joins: bool,
    /// Our own refusal: a serde error could carry only its text.
    refused: Option<Error>,
}

impl<'o, 'l> Walk<'o, 'l> {
    fn new(out: &'o mut Outline<'l>) -> Self {
        Self {
            out,
            path: Vec::new(),
            keys: Vec::new(),
            block: String::new(),
            lists: 0,
            depth: 0,
            joins: false,
            refused: None,
        }
    }

    fn guard<E: de::Error>(&mut self, result: Result<(), Error>) -> Result<(), E> {
        result.map_err(|refused| {
            self.refused = Some(refused);
            E::custom("refused")
        })
    }

    /// A plain value: `key: value`, or `, value` behind its neighbour in a list.
    fn plain(&mut self, value: &str) -> Result<(), Error> {
        let value = value.trim();
        if value.is_empty() {
            return Ok(());
        }
        if self.path.is_empty() && self.depth == 1 && matches!(self.keys.as_slice(), [key] if is_title(key)) {
            self.out.title(value);
        }
        if self.joins {
            self.block.push_str(", ");
        } else {
            if !self.block.is_empty() {
                self.block.push('\n');
            }
            if !self.keys.is_empty() {
                self.block.push_str(&self.keys.join("."));
                self.block.push_str(": ");
            }
        }
        self.block.push_str(value);
        let limit = self.out.limits().text_bytes_max;
        if self.block.len() > limit { Err(Error::TooMuchText { limit }) } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.joins = false;
        if self.block.is_empty() {
            return Ok(());
        }
        self.out.enter(&self.path)?;
        let block = std::mem::take(&mut self.block);
        self.out.paragraph(&block)
    }

    fn deeper(&mut self) -> Result<(), Error> {
        self.depth += 1;
        let limit = self.out.limits().depth_max;
        let what = "JSON values inside each other";
        if self.depth > limit { Err(Error::TooMuch { what, limit }) } else { Ok(()) }
    }

    /// Makes the one key that waits a heading, when there is room for one. Tells whether it did.
    fn open_section(&mut self) -> Result<bool, Error> {
        if self.lists > 0 || self.keys.len() != 1 || self.path.len() >= HEADINGS_MAX {
            return Ok(false);
        }
        self.flush()?;
        self.path.append(&mut self.keys);
        Ok(true)
    }

    fn close_section(&mut self) -> Result<(), Error> {
        self.flush()?;
        self.keys.extend(self.path.pop());
        Ok(())
    }
}

fn is_title(key: &str) -> bool {
    key.eq_ignore_ascii_case("title") || key.eq_ignore_ascii_case("name")
}

/// Reads one value. `section` is there for an element of a list: whether the list has become a section.
struct Step<'w, 'o, 'l> {
    walk: &'w mut Walk<'o, 'l>,
    section: Option<&'w mut bool>,
}

impl<'de> DeserializeSeed<'de> for Step<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Step<'_, '_, '_> {
    fn plain<E: de::Error>(self, value: &str) -> Result<(), E> {
        let done = self.walk.plain(value);
        self.walk.joins = self.section.is_some();
        self.walk.guard(done)
    }

    /// The first compound element of a list makes the list a section; each is a paragraph.
    fn begin_element(&mut self) -> Result<(), Error> {
        let Some(section) = &mut self.section else { return Ok(()) };
        if !**section {
            self.walk.lists -= 1;
            **section = self.walk.open_section()?;
            self.walk.lists += 1;
        }
        if self.walk.lists == 1 { self.walk.flush() } else { Ok(()) }
    }
}

impl<'de> Visitor<'de> for Step<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<(), E> {
        self.plain(if value { "true" } else { "false" })
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<(), E> {
        self.plain(&value.to_string())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<(), E> {
        self.plain(&value.to_string())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        self.plain(&value.to_string())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<(), E> {
        self.plain(value)
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let begun = self.walk.deeper().and_then(|()| self.begin_element());
        self.walk.guard(begun)?;
        self.walk.joins = false;
        self.walk.lists += 1;
        let mut section = false;
        while list.next_element_seed(Step { walk: self.walk, section: Some(&mut section) })?.is_some() {}
        self.walk.lists -= 1;
        self.walk.depth -= 1;
        self.walk.joins = false;
        let closed = if section { self.walk.close_section() } else { Ok(()) };
        self.walk.guard(closed)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let begun =
            self.walk.deeper().and_then(|()| self.begin_element()).and_then(|()| self.walk.open_section());
        let section = *begun.as_ref().unwrap_or(&false);
        self.walk.guard(begun.map(|_| ()))?;
        let fixed = self.walk.keys.len();
        while let Some(key) = map.next_key::<String>()? {
            self.walk.joins = false;
            self.walk.keys.push(clip(key.trim(), KEY_CHARS_MAX).to_owned());
            map.next_value_seed(Step { walk: self.walk, section: None })?;
            self.walk.keys.truncate(fixed);
        }
        self.walk.depth -= 1;
        self.walk.joins = false;
        let closed = if section { self.walk.close_section() } else { Ok(()) };
        self.walk.guard(closed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Document, Limits, read};
    use crate::Error;
    use crate::kind::Kind;

    fn parse(text: &str) -> Result<Document, Error> {
        read(Kind::Json, "stock.json", text.as_bytes(), &Limits::default())
    }

    fn sections(text: &str) -> Vec<(String, String)> {
        let sections = parse(text).expect("reads").sections;
        sections.into_iter().map(|section| (section.path.join("/"), section.text)).collect()
    }

    #[test]
    fn keys_become_headings_and_lines() {
        let text = r#"{"title": "Stock", "open": true, "yard": {"name": "North", "crane": {"lift": 2.5}}, "tags": ["a", "b"]}"#;
        assert_eq!(parse(text).expect("reads").title, "Stock");
        let expected = [
            ("", "title: Stock\nopen: true"),
            ("yard", "name: North"),
            ("yard/crane", "lift: 2.5"),
            ("", "tags: a, b"),
        ];
        assert_eq!(sections(text), expected.map(|(path, text)| (path.to_owned(), text.to_owned())));
    }

    #[test]
    fn each_record_of_a_list_is_a_paragraph() {
        let text = r#"{"boats": [{"name": "Heron", "size": {"beam": 3}}, {"name": "Tern", "crew": ["Ann", "Bo"]}], "n": 1}"#;
        let boats = "name: Heron\nsize.beam: 3\n\nname: Tern\ncrew: Ann, Bo";
        assert_eq!(
            sections(text),
            [("boats".to_owned(), boats.to_owned()), (String::new(), "n: 1".to_owned())]
        );
        assert_eq!(sections("[{\"a\": 1}, 2, 3, [4, 5]]")[0].1, "a: 1\n2, 3\n\n4, 5");
        assert_eq!(sections("\"only words\"")[0].1, "only words");
    }

    #[test]
    fn a_cut_file_says_where_it_ends() {
        let cut = parse("{\"a\": [1,\n 2").expect_err("refused").to_string();
        assert_eq!(cut, "the JSON is cut off: it ends at line 2, column 2, while parsing a list");
        let bad = parse("{\"a\": 1,\n oops}").expect_err("refused").to_string();
        assert_eq!(bad, "not valid JSON at line 2, column 2: key must be a string");
        let more = parse("{} {}").expect_err("refused").to_string();
        assert_eq!(more, "not valid JSON at line 1, column 4: trailing characters");
    }

    #[test]
    fn depth_and_growth_are_bounded() {
        let deep = parse(&"[".repeat(1 << 20)).expect_err("refused").to_string();
        assert_eq!(deep, "more than 64 JSON values inside each other");
        let keys: String = (0..9_000).map(|at| format!("\"{at}\":{{\"{}\":[", "k".repeat(60))).collect();
        assert!(parse(&keys).is_err());
        let limits = Limits { text_bytes_max: 1_000, ..Limits::default() };
        let long = read(Kind::Json, "a.json", format!("[{}0]", "1,".repeat(9_000)).as_bytes(), &limits);
        assert_eq!(
            long.expect_err("refused").to_string(),
            "more than 1000 bytes of text once it is laid out"
        );
    }

    #[test]
    fn nothing_inside_is_no_text() {
        assert!(matches!(parse("{}"), Err(Error::NoText)));
        assert!(matches!(parse("[null, {\"a\": \"\"}]"), Err(Error::NoText)));
    }
}
