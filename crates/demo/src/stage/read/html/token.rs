//! Cuts HTML into text, tags and the raw content of scripts and the like, in one pass.
//!
//! Invariant: the position only moves forward, and no search goes back over what was read.

/// A piece of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// Text, with its entities as written.
    Text(&'a str),
    /// An opening tag: its name as written and everything up to its `>`.
    Open { name: &'a str, attributes: &'a str },
    /// A closing tag.
    Close { name: &'a str },
    /// An element in which tags are not tags, whole.
    Raw { name: &'a str, text: &'a str },
}

/// Elements in which `<` begins no tag until their own end.
const RAW: [&str; 9] =
    ["script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "noscript"];

/// The tokens of a text.
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Up to the next `<` that could begin a tag; a lone `<` is text.
    fn text_token(&mut self) -> Token<'a> {
        let from = self.at;
        let after_first = from + 1;
        let bytes = self.text.as_bytes();
        let stop = bytes[after_first..].iter().position(|byte| *byte == b'<').map(|at| at + after_first);
        self.at = stop.unwrap_or(bytes.len());
        Token::Text(&self.text[from..self.at])
    }

    /// Skips to behind `mark`, or to the end: what is never closed swallows the rest, as in a browser.
    fn skip_behind(&mut self, from: usize, mark: &str) {
        let found = self.text[from..].find(mark);
        self.at = found.map_or(self.text.len(), |at| from + at + mark.len());
    }

    /// The name at `from` and where the tag's `>` is; a tag that the file cuts off is no tag and ends the page.
    fn tag(&mut self, from: usize) -> Option<(&'a str, &'a str)> {
        let bytes = self.text.as_bytes();
        let is_name_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'>');
        let name_end = from + bytes[from..].iter().position(is_name_end).unwrap_or(bytes.len() - from);
        let Some(close) = tag_end(bytes, name_end) else {
            self.at = bytes.len();
            return None;
        };
        self.at = close + 1;
        Some((&self.text[from..name_end], &self.text[name_end..close]))
    }

    /// The content of the raw element `name`, whose opening tag was just read.
    fn raw(&mut self, name: &'a str) -> Token<'a> {
        let from = self.at;
        let mut looked = from;
        while let Some(found) = self.text[looked..].find("</") {
            let end = looked + found;
            let behind = self.text.as_bytes().get(end + 2..).unwrap_or_default();
            let named =
                behind.get(..name.len()).is_some_and(|other| other.eq_ignore_ascii_case(name.as_bytes()));
            let ends = behind.get(name.len()).is_none_or(|byte| !byte.is_ascii_alphanumeric());
            if named && ends {
                self.skip_behind(end, ">");
                return Token::Raw { name, text: &self.text[from..end] };
            }
            looked = end + 2;
        }
        self.at = self.text.len();
        Token::Raw { name, text: &self.text[from..] }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let from = self.at;
            match self.text.as_bytes().get(from..)? {
                [] => return None,
                [b'<', b'!', b'-', b'-', ..] => self.skip_behind(from + 4, "-->"),
                [b'<', b'!' | b'?', ..] => self.skip_behind(from, ">"),
                [b'<', b'/', letter, ..] if letter.is_ascii_alphabetic() => {
                    let (name, _) = self.tag(from + 2)?;
                    return Some(Token::Close { name });
                }
                [b'<', b'/', ..] => self.skip_behind(from, ">"),
                [b'<', letter, ..] if letter.is_ascii_alphabetic() => {
                    let (name, attributes) = self.tag(from + 1)?;
                    let raw = RAW.iter().any(|raw| raw.eq_ignore_ascii_case(name));
                    return Some(if raw { self.raw(name) } else { Token::Open { name, attributes } });
                }
                _ => return Some(self.text_token()),
            }
        }
    }
}

/// Where the `>` of a tag is: the first one outside a quoted value.
fn tag_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        match bytes.get(at)? {
            b'>' => return Some(at),
            b'=' => at = value(bytes, at + 1)?.1,
            _ => at += 1,
        }
    }
}

/// The range of the value behind a `=`, and where reading goes on.
fn value(bytes: &[u8], from: usize) -> Option<(std::ops::Range<usize>, usize)> {
    let space = bytes[from..].iter().position(|byte| !byte.is_ascii_whitespace())?;
    let begin = from + space;
    let quote = bytes[begin];
    if matches!(quote, b'"' | b'\'') {
        let end = begin + 1 + bytes[begin + 1..].iter().position(|byte| *byte == quote)?;
        return Some((begin + 1..end, end + 1));
    }
    let stop = |byte: &u8| byte.is_ascii_whitespace() || *byte == b'>';
    let end = begin + bytes[begin..].iter().position(stop).unwrap_or(bytes.len() - begin);
    Some((begin..end, end))
}

/// The value of the attribute `name`, with its entities as written; the first one counts.
pub(super) fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let bytes = attributes.as_bytes();
    let is_gap = |byte: u8| byte.is_ascii_whitespace() || byte == b'/';
    let mut at = 0;
    while at < bytes.len() {
        if is_gap(bytes[at]) {
            at += 1;
            continue;
        }
        let begin = at;
        at += 1;
        while at < bytes.len() && bytes[at] != b'=' && !is_gap(bytes[at]) {
            at += 1;
        }
        let found = attributes[begin..at].eq_ignore_ascii_case(name);
        let gap = bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        if bytes.get(at + gap) == Some(&b'=') {
            let (range, next) = value(bytes, at + gap + 1)?;
            if found {
                return Some(&attributes[range]);
            }
            at = next;
        } else if found {
            return Some("");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<Token<'_>> {
        Tokens::new(text).collect()
    }

    #[test]
    fn tags_text_and_comments() {
        let tokens = cut("<!DOCTYPE html><p class=x>a < b<!-- <p> --></P>c");
        let expected = [
            Token::Open { name: "p", attributes: " class=x" },
            Token::Text("a "),
            Token::Text("< b"),
            Token::Close { name: "P" },
            Token::Text("c"),
        ];
        assert_eq!(tokens, expected);
    }

    #[test]
    fn a_quoted_value_may_hold_the_end_of_a_tag() {
        let [Token::Open { attributes, .. }, Token::Text("x")] = cut("<a title='1 > 0' href = \"b\">x")[..]
        else {
            panic!("one tag and one text")
        };
        assert_eq!(attribute(attributes, "href"), Some("b"));
        assert_eq!(attribute(attributes, "TITLE"), Some("1 > 0"));
        assert_eq!(attribute(attributes, "b"), None);
    }

    #[test]
    fn attributes_without_value_quotes_or_space() {
        assert_eq!(attribute("/ checked src=a.png/ alt", "src"), Some("a.png/"));
        assert_eq!(attribute(" checked src=a.png", "checked"), Some(""));
        assert_eq!(attribute(" src=", "src"), None);
    }

    #[test]
    fn scripts_hold_no_tags() {
        let tokens = cut("<script>if (a</b) '</scripted>'</SCRIPT >x<title>T &amp; U");
        let script = Token::Raw { name: "script", text: "if (a</b) '</scripted>'" };
        assert_eq!(tokens, [script, Token::Text("x"), Token::Raw { name: "title", text: "T &amp; U" }]);
    }

    #[test]
    fn what_the_file_cuts_off_ends_the_page() {
        assert_eq!(cut("a<p class='x"), [Token::Text("a")]);
        assert_eq!(cut("a<!-- b <p>"), [Token::Text("a")]);
        assert_eq!(cut("a</"), [Token::Text("a")]);
        assert_eq!(cut("a<"), [Token::Text("a"), Token::Text("<")]);
    }
}
