//! Cuts Rust source into tokens, well enough to count lines, match brackets and tell code from strings and comments.
//!
//! Invariant: tokens lie in source order and never overlap. Text that the compiler would refuse still becomes
//! tokens, never a panic: an unclosed string or comment simply reaches to the end of the file.

/// What a token is, as far as tidy needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An identifier or a keyword; a raw identifier keeps its `r#`.
    Word,
    /// `'a`
    Lifetime,
    /// Any string, byte string, C string, raw or not, or a character.
    Literal,
    /// A number with its suffix.
    Number,
    /// One character of punctuation.
    Punct,
    /// A comment of either form, documentation too.
    Comment,
}

/// One token: bytes `start..end` of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The line of its first character, counted from 1.
    pub(crate) line: usize,
}

/// All tokens of a text, comments among them.
pub(crate) fn lex(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let (mut start, mut line) = (0, 1);
    while let Some(first) = text[start..].chars().next() {
        let rest = &text[start..];
        let (kind, len) = scan(rest, first);
        if let Some(kind) = kind {
            tokens.push(Token { kind, start, end: start + len, line });
        }
        line += rest[..len].bytes().filter(|byte| *byte == b'\n').count();
        start += len;
    }
    tokens
}

/// The kind (none for white space) and the length in bytes of what `rest` begins with.
fn scan(rest: &str, first: char) -> (Option<Kind>, usize) {
    let (kind, len) = match first {
        _ if first.is_whitespace() => return (None, first.len_utf8()),
        '/' if rest.starts_with("//") => (Kind::Comment, rest.find('\n').unwrap_or(rest.len())),
        '/' if rest.starts_with("/*") => (Kind::Comment, block_comment(rest)),
        '"' => (Kind::Literal, quoted(rest, '"')),
        '\'' => after_quote(rest),
        _ if starts_word(first) => word_or_prefix(rest),
        _ if first.is_ascii_digit() => (Kind::Number, number(rest)),
        _ => (Kind::Punct, first.len_utf8()),
    };
    (Some(kind), len)
}

fn starts_word(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

/// The length of the letters, digits and underscores that `rest` begins with.
fn word(rest: &str) -> usize {
    rest.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(rest.len())
}

/// A number: `1_000u64`, `0xff`, `1.5e3`, but not the dots of `0..9` nor the call in `1.max(2)`.
fn number(rest: &str) -> usize {
    let whole = word(rest);
    match rest[whole..].strip_prefix('.') {
        Some(fraction) if fraction.starts_with(|c: char| c.is_ascii_digit()) => whole + 1 + word(fraction),
        _ => whole,
    }
}

/// Block comments nest.
fn block_comment(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let (mut depth, mut at) = (0_usize, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// The length of a literal from its opening quote to the closing one; a backslash hides the character after it.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// A single quote begins a character (`'a'`, `'\n'`, `'{'`) or a lifetime (`'a`).
fn after_quote(rest: &str) -> (Kind, usize) {
    let mut chars = rest.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) => (Kind::Literal, quoted(rest, '\'')),
        (Some(c), Some('\'')) if c != '\'' => (Kind::Literal, 2 + c.len_utf8()),
        (Some(c), _) if starts_word(c) => (Kind::Lifetime, 1 + word(&rest[1..])),
        _ => (Kind::Punct, 1),
    }
}

/// A word, or the literal whose prefix it is: `r"…"`, `br#"…"#`, `c"…"`, `b'x'`.
fn word_or_prefix(rest: &str) -> (Kind, usize) {
    let len = word(rest);
    let (prefix, after) = rest.split_at(len);
    match prefix {
        "b" | "c" if after.starts_with('"') => (Kind::Literal, len + quoted(after, '"')),
        "b" if after.starts_with('\'') => (Kind::Literal, len + quoted(after, '\'')),
        "r" | "br" | "cr" => raw(prefix, after),
        _ => (Kind::Word, len),
    }
}

/// What follows a raw prefix: a string that ends at a quote with as many hashes, a raw identifier, or nothing special.
fn raw(prefix: &str, after: &str) -> (Kind, usize) {
    let hashes = after.bytes().take_while(|byte| *byte == b'#').count();
    let inside = &after[hashes..];
    if let Some(text) = inside.strip_prefix('"') {
        let close = format!("\"{}", "#".repeat(hashes));
        let len = text.find(&close).map_or(text.len(), |at| at + close.len());
        return (Kind::Literal, prefix.len() + hashes + 1 + len);
    }
    if prefix == "r" && hashes == 1 && inside.starts_with(starts_word) {
        return (Kind::Word, 2 + word(inside));
    }
    (Kind::Word, prefix.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kind and text of every token.
    fn tokens(text: &str) -> Vec<(Kind, &str)> {
        lex(text).into_iter().map(|token| (token.kind, &text[token.start..token.end])).collect()
    }

    fn of_kind(text: &str, kind: Kind) -> Vec<&str> {
        tokens(text).into_iter().filter(|token| token.0 == kind).map(|token| token.1).collect()
    }

    #[test]
    fn words_numbers_and_punctuation_are_told_apart() {
        use Kind::{Number, Punct, Word};
        let expected =
            [(Word, "let"), (Word, "a_1"), (Punct, "="), (Number, "0xffu8"), (Punct, "+"), (Number, "1.5e3")];
        assert_eq!(tokens("let a_1=0xffu8 + 1.5e3"), expected);
        assert_eq!(of_kind("0..9 1.max(2) x.0", Number), ["0", "9", "1", "2", "0"]);
    }

    #[test]
    fn a_string_hides_what_looks_like_code() {
        assert_eq!(tokens(r#""fn { // \" }""#), [(Kind::Literal, r#""fn { // \" }""#)]);
        assert_eq!(of_kind(r#"f("\\", "}")"#, Kind::Literal), [r#""\\""#, r#""}""#]);
        assert_eq!(
            of_kind("b\"{\" c\"{\" b'{' b'\\''", Kind::Literal),
            ["b\"{\"", "c\"{\"", "b'{'", "b'\\''"]
        );
    }

    #[test]
    fn a_raw_string_ends_at_as_many_hashes() {
        let text = "r\"\\\" + r#\"a \" b\"# + br##\"x \"# y\"## + cr\"{\"";
        assert_eq!(
            of_kind(text, Kind::Literal),
            ["r\"\\\"", "r#\"a \" b\"#", "br##\"x \"# y\"##", "cr\"{\""]
        );
    }

    #[test]
    fn a_raw_identifier_is_one_word() {
        assert_eq!(of_kind("r#fn r br cr rest", Kind::Word), ["r#fn", "r", "br", "cr", "rest"]);
    }

    #[test]
    fn characters_and_lifetimes_are_told_apart() {
        let text = "fn f<'a>(x: &'a str, c: char) -> bool { c == 'a' || c == '\\'' || c == '{' || c == '\\u{7d}' || c == 'é' }";
        assert_eq!(of_kind(text, Kind::Lifetime), ["'a", "'a"]);
        assert_eq!(of_kind(text, Kind::Literal), ["'a'", "'\\''", "'{'", "'\\u{7d}'", "'é'"]);
        assert_eq!(of_kind("'outer: loop { break 'outer }", Kind::Lifetime), ["'outer", "'outer"]);
        assert_eq!(of_kind("f::<'a,'b>()", Kind::Lifetime), ["'a", "'b"]);
        assert_eq!(of_kind("'\"' '/'", Kind::Literal), ["'\"'", "'/'"]);
    }

    #[test]
    fn comments_of_both_forms_are_comments() {
        let text = "a // it's \"open\n/* b /* c */ \" d */ e /// f\n//! g";
        assert_eq!(of_kind(text, Kind::Word), ["a", "e"]);
        assert_eq!(
            of_kind(text, Kind::Comment),
            ["// it's \"open", "/* b /* c */ \" d */", "/// f", "//! g"]
        );
    }

    #[test]
    fn a_division_is_no_comment() {
        assert_eq!(of_kind("a / b /c", Kind::Punct), ["/", "/"]);
    }

    #[test]
    fn lines_are_counted_through_strings_and_comments() {
        let text = "a\n\"two\nlines\"\n/* two\nlines */ b\nr#\"\n\"# c";
        let lines: Vec<_> = lex(text).into_iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 2, 4, 5, 6, 7]);
    }

    #[test]
    fn text_that_never_closes_reaches_to_the_end() {
        for text in ["\"open", "/* open /* */", "r##\"open\"#", "b'", "'\\", "'", "\"\\", "r#", "é'"] {
            let tokens = lex(text);
            assert_eq!(tokens.last().map(|token| token.end), Some(text.len()), "{text}");
        }
    }

    #[test]
    fn no_text_panics_and_no_byte_is_lost() {
        // Every text of four pieces out of these, cut anywhere a lexer can stumble.
        let pieces = ["'", "\"", "\\", "r", "#", "b", "/", "*", "é", "1.", "\n", "{"];
        for number in 0..pieces.len().pow(4) {
            let text: String =
                (0..4).map(|at| pieces[number / pieces.len().pow(at) % pieces.len()]).collect();
            let mut end = 0;
            for token in lex(&text) {
                assert!(token.start >= end && token.end > token.start, "{text:?}");
                assert!(text[end..token.start].trim().is_empty(), "{text:?}");
                end = token.end;
            }
            assert!(text[end..].trim().is_empty(), "{text:?}");
        }
    }
}
