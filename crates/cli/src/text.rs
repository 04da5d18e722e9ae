//! Text that others wrote, made fit for a terminal.
//!
//! Invariant: nothing printed as text can move the cursor, change colours or reverse the order of characters.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// What stands for a character that a terminal should not get.
const REPLACEMENT: char = '\u{fffd}';

/// The text on one line: line ends and tabs are blanks.
pub(crate) fn one_line(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_whitespace() { ' ' } else { safe(c) }).collect()
}

/// The text with its lines.
pub(crate) fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.chars().map(|c| if c == '\t' { ' ' } else { safe(c) }).collect()).collect()
}

/// The same text with its line ends, without what a terminal would obey.
pub(crate) fn harmless(text: &str) -> String {
    lines(text).into_iter().map(|line| line + "\n").collect()
}

/// At most so many columns of a line, marked where it was cut.
pub(crate) fn shorten(line: &str, columns_max: usize) -> String {
    if width(line) <= columns_max {
        return line.to_owned();
    }
    let mut short = String::new();
    let mut used = 1;
    for c in line.chars() {
        used += c.width().unwrap_or(0);
        if used > columns_max {
            break;
        }
        short.push(c);
    }
    // A character may be wider beside its neighbours than alone.
    while width(&short) >= columns_max && short.pop().is_some() {}
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

/// How many columns a line takes.
pub(crate) fn width(line: &str) -> usize {
    line.width()
}

fn safe(c: char) -> char {
    // Controls begin escape sequences; the others turn the reading direction of what follows.
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if c.is_control() || turns { REPLACEMENT } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        assert_eq!(
            one_line(" a\r\n\tb\u{1b}[31m\u{9b}2J\u{202e}c\0 "),
            "a   b\u{fffd}[31m\u{fffd}2J\u{fffd}c\u{fffd}"
        );
        assert_eq!(lines("a\r\n\tb\n\n\u{7}"), ["a", " b", "", "\u{fffd}"]);
    }

    #[test]
    fn a_cut_line_never_takes_more_columns_than_it_may() {
        let texts = [
            "plain text here",
            "日本語のテキスト",
            "e\u{301}e\u{301}e\u{301}e\u{301}",
            "👩‍👩‍👧‍👦 family 👍🏽",
            "☺\u{fe0f}☺\u{fe0f}☺\u{fe0f}",
            "a b c d e",
        ];
        for text in texts {
            for most in 1..20 {
                let short = shorten(text, most);
                assert!(width(&short) <= most, "{text} in {most}: {short}");
                assert!(short == text || short.ends_with('…'), "{text} in {most}: {short}");
            }
        }
        assert_eq!(shorten("日本語", 4), "日…");
        assert_eq!(shorten("one two", 5), "one…");
    }
}
