//! Plain text: paragraphs parted by empty lines, headings by a line of `=`, `-` or `~` below them.

use super::outline::Outline;
use crate::Error;

/// Letters a line may have to be taken for a heading.
const HEADING_CHARS_MAX: usize = 120;

pub(super) fn read(text: &str, out: &mut Outline<'_>) -> Result<(), Error> {
    let mut paragraph = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let level = lines.peek().and_then(|below| heading_level(line, below));
        if let Some(level) = level.filter(|_| paragraph.is_empty()) {
            out.heading(level, line)?;
            lines.next();
        } else if line.trim().is_empty() {
            out.paragraph(&paragraph)?;
            paragraph.clear();
        } else {
            if !paragraph.is_empty() {
                paragraph.push('\n');
            }
            paragraph.push_str(line.trim_end());
        }
    }
    out.paragraph(&paragraph)
}

/// `=` is the first level, `-` the second, `~` the third, when the rule is about as long as the line.
fn heading_level(line: &str, below: &str) -> Option<u8> {
    let rule = below.trim_end();
    let mark = rule.chars().next()?;
    let level = match mark {
        '=' => 1,
        '-' => 2,
        '~' => 3,
        _ => return None,
    };
    let (words, rule_chars) = (line.trim().chars().count(), rule.chars().count());
    let is_rule = rule_chars >= 3 && rule.chars().all(|char| char == mark);
    let fits = (1..=HEADING_CHARS_MAX).contains(&words) && words.abs_diff(rule_chars) <= 4 + words / 2;
    (is_rule && fits && line.chars().any(char::is_alphabetic)).then_some(level)
}

#[cfg(test)]
mod tests {
    use super::super::{Document, Limits, read};
    use crate::kind::Kind;

    fn parse(text: &str) -> Document {
        read(Kind::Text, "log.txt", text.as_bytes(), &Limits::default()).expect("reads")
    }

    #[test]
    fn paragraphs_end_at_empty_lines_and_keep_their_lines() {
        let document = parse("first line\nsecond line\n\n\n  third\n");
        assert_eq!(document.title, "log");
        assert_eq!(document.sections.len(), 1);
        assert_eq!(document.sections[0].text, "first line\nsecond line\n\n  third");
    }

    #[test]
    fn ruled_lines_are_headings() {
        let document = parse("Storm log\n=========\n\nMonday\n------\nWind.\n\nTuesday\n-------\nCalm.\n");
        assert_eq!(document.title, "Storm log");
        let sections: Vec<_> =
            document.sections.iter().map(|section| (section.path.join("/"), section.text.as_str())).collect();
        assert_eq!(sections, [("Storm log/Monday".into(), "Wind."), ("Storm log/Tuesday".into(), "Calm.")]);
    }

    #[test]
    fn a_rule_in_the_middle_of_a_paragraph_is_no_heading() {
        let document = parse("one\ntwo\n---\nthree\n");
        assert_eq!(document.sections[0].text, "one\ntwo\n---\nthree");
        assert!(document.sections[0].path.is_empty());
    }
}
