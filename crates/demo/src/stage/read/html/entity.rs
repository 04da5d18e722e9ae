//! Decodes the character references of HTML: `&amp;`, `&#8212;`, `&eacute;`.

use std::collections::HashMap;

use pulldown_cmark::{Event, Parser};

/// The longest name in the standard has 31 letters.
const NAME_BYTES_MAX: usize = 32;
/// Names that are remembered; there are about 2,200.
const REMEMBERED_MAX: usize = 4_096;

/// Decodes, and remembers the names it has looked up.
#[derive(Debug, Default)]
pub(super) struct Entities {
    known: HashMap<String, Option<String>>,
}

impl Entities {
    /// The text with every reference replaced; what is no reference stays as it is.
    pub(super) fn decode(&mut self, text: &str) -> String {
        let mut decoded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('&') {
            decoded.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let window = rest.as_bytes().get(..NAME_BYTES_MAX.min(rest.len())).unwrap_or_default();
            let end = window.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'#'));
            let name = end.filter(|end| window[*end] == b';').map(|end| &rest[..end]);
            match name.and_then(|name| self.look_up(name).map(|text| (name.len(), text))) {
                Some((bytes, text)) => {
                    decoded.push_str(&text);
                    rest = &rest[bytes + 1..];
                }
                None => decoded.push('&'),
            }
        }
        decoded.push_str(rest);
        decoded
    }

    fn look_up(&mut self, name: &str) -> Option<String> {
        if let Some(number) = name.strip_prefix('#') {
            return Some(numbered(number)?.to_string());
        }
        if let Some(known) = self.known.get(name) {
            return known.clone();
        }
        let found = named(name);
        if self.known.len() < REMEMBERED_MAX {
            self.known.insert(name.to_owned(), found.clone());
        }
        found
    }
}

/// What is out of range or half a surrogate pair becomes the replacement mark.
fn numbered(number: &str) -> Option<char> {
    let (digits, radix) = match number.strip_prefix(['x', 'X']) {
        Some(hex) => (hex, 16),
        None => (number, 10),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let code = u32::from_str_radix(digits, radix).unwrap_or(0);
    Some(char::from_u32(code).filter(|char| *char != '\0').unwrap_or(char::REPLACEMENT_CHARACTER))
}

/// Markdown has the same names, and its parser the table.
fn named(name: &str) -> Option<String> {
    let source = format!("&{name};");
    let mut decoded = String::new();
    for event in Parser::new(&source) {
        if let Event::Text(text) = event {
            decoded.push_str(&text);
        }
    }
    (decoded != source).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_decoded() {
        let mut entities = Entities::default();
        let decoded =
            entities.decode("a &lt; b &amp;amp; &eacute;t&eacute; &#8212; &#x1F30A; &NotEqualTilde;");
        assert_eq!(decoded, "a < b &amp; été — 🌊 ≂̸");
    }

    #[test]
    fn what_is_no_reference_stays() {
        let mut entities = Entities::default();
        let text = "AT&T &nosuchname; &copy 2020 &; &#; &#xg; &";
        assert_eq!(entities.decode(text), text);
        assert_eq!(entities.decode("&#0;&#xD800;&#99999999999;"), "\u{fffd}\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_long_run_of_marks_is_linear() {
        let text = "&".repeat(1 << 20);
        assert_eq!(Entities::default().decode(&text).len(), 1 << 20);
    }
}
