//! The few shapes that tidy reads out of Rust tokens: functions, attributes, `use` trees and the regions of tests.

use std::ops::RangeInclusive;

use super::lexer::{self, Kind, Token};

/// A Rust file cut into code and comments.
#[derive(Debug)]
pub(crate) struct Source {
    text: String,
    code: Vec<Token>,
    comments: Vec<Token>,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function<'s> {
    pub(crate) name: &'s str,
    /// The line of its `fn`, counted from 1.
    pub(crate) line: usize,
    /// From `fn` to the closing brace, both included.
    pub(crate) lines: usize,
}

/// `#[…]` or `#![…]`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Attribute<'s> {
    /// The tokens between the brackets.
    pub(crate) words: Vec<&'s str>,
    pub(crate) line: usize,
    /// The index of the token after it.
    next: usize,
}

impl Source {
    /// Any text has a source; what is no Rust yields shapes that mean nothing.
    pub(crate) fn parse(text: &str) -> Self {
        let (comments, code) = lexer::lex(text).into_iter().partition(|token| token.kind == Kind::Comment);
        Self { text: text.to_owned(), code, comments }
    }

    /// Every comment with its line.
    pub(crate) fn comments(&self) -> impl Iterator<Item = (usize, &str)> {
        self.comments.iter().map(|token| (token.line, &self.text[token.start..token.end]))
    }

    /// The text of a token of the code; empty beyond the end.
    fn word(&self, index: usize) -> &str {
        self.code.get(index).map_or("", |token| &self.text[token.start..token.end])
    }

    fn line(&self, index: usize) -> usize {
        self.code.get(index).map_or(0, |token| token.line)
    }

    /// The index of the bracket that closes the one at `open`; the last token when none does.
    fn matching(&self, open: usize) -> usize {
        let mut depth = 0_usize;
        for index in open..self.code.len() {
            match self.word(index) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return index;
            }
        }
        self.code.len().saturating_sub(1)
    }

    /// The lines where the code reads `needle`, token by token: `Instant::now` is found however it is spaced.
    pub(crate) fn find(&self, needle: &str) -> Vec<usize> {
        let words: Vec<&str> =
            lexer::lex(needle).iter().map(|token| &needle[token.start..token.end]).collect();
        let starts =
            |index: &usize| words.iter().enumerate().all(|(at, word)| self.word(index + at) == *word);
        (0..self.code.len()).filter(starts).map(|index| self.line(index)).collect()
    }

    /// Every function that has a body, nested ones too.
    pub(crate) fn functions(&self) -> Vec<Function<'_>> {
        let named = |index: &usize| {
            let next = self.code.get(index + 1);
            // `fn $name` stands in macros; `fn(u8)` is a type.
            self.word(*index) == "fn"
                && (next.is_some_and(|token| token.kind == Kind::Word) || self.word(index + 1) == "$")
        };
        (0..self.code.len()).filter(named).filter_map(|index| self.function(index)).collect()
    }

    fn function(&self, start: usize) -> Option<Function<'_>> {
        let close = self.matching(self.body(start)?);
        let line = self.line(start);
        Some(Function { name: self.word(start + 1), line, lines: self.line(close) - line + 1 })
    }

    /// The brace that opens the body of the function whose `fn` is at `start`; none for a mere declaration.
    fn body(&self, start: usize) -> Option<usize> {
        let mut generic = 0_usize;
        let mut index = start + 1;
        while index < self.code.len() {
            match self.word(index) {
                "(" | "[" => index = self.matching(index),
                "<" => generic += 1,
                // Not the tip of `->`.
                ">" if self.word(index - 1) != "-" => generic = generic.saturating_sub(1),
                // A constant in a generic argument: `Buffer<{ N + 1 }>`.
                "{" if generic > 0 => index = self.matching(index),
                "{" => return Some(index),
                ";" | ")" | "]" | "}" => return None,
                _ => {}
            }
            index += 1;
        }
        None
    }

    /// Every attribute.
    pub(crate) fn attributes(&self) -> Vec<Attribute<'_>> {
        (0..self.code.len()).filter_map(|index| self.attribute(index)).collect()
    }

    fn attribute(&self, index: usize) -> Option<Attribute<'_>> {
        let inner = usize::from(self.word(index + 1) == "!");
        let open = index + 1 + inner;
        if self.word(index) != "#" || self.word(open) != "[" {
            return None;
        }
        let close = self.matching(open);
        let words = (open + 1..close).map(|at| self.word(at)).collect();
        Some(Attribute { words, line: self.line(index), next: close + 1 })
    }

    /// The lines of the items that exist only in tests: what follows `#[cfg(test)]`.
    pub(crate) fn test_regions(&self) -> Vec<RangeInclusive<usize>> {
        let only_tests = |attribute: &Attribute<'_>| {
            attribute.words.first() == Some(&"cfg")
                && attribute.words.contains(&"test")
                && !attribute.words.contains(&"not")
        };
        let tests = self.attributes().into_iter().filter(only_tests);
        tests.map(|attribute| attribute.line..=self.line(self.item_end(attribute.next))).collect()
    }

    /// The last token of the item that begins at `start`: its closing brace or its semicolon.
    fn item_end(&self, start: usize) -> usize {
        let mut index = start;
        while index < self.code.len() {
            match self.word(index) {
                "(" | "[" => index = self.matching(index),
                "{" => return self.matching(index),
                ";" => return index,
                _ => {}
            }
            index += 1;
        }
        self.code.len().saturating_sub(1)
    }

    /// Every path that a `use` names, written out in full, with its line: `a::{b, c::*}` gives `a::b` and `a::c::*`.
    pub(crate) fn uses(&self) -> Vec<(usize, String)> {
        let mut paths = Vec::new();
        for index in 0..self.code.len() {
            // `use<'a>` captures lifetimes.
            if self.word(index) == "use" && self.word(index + 1) != "<" {
                self.use_tree(index + 1, "", &mut paths);
            }
        }
        paths
    }

    /// Reads one branch of a `use` tree from `start` and answers the index where it ended.
    fn use_tree(&self, start: usize, prefix: &str, paths: &mut Vec<(usize, String)>) -> usize {
        let mut path = prefix.to_owned();
        let mut index = start;
        while index < self.code.len() {
            match self.word(index) {
                "{" => return self.use_group(index, &path, paths),
                "," | "}" | ";" => break,
                // The new name says nothing about what is imported.
                "as" => index += 1,
                word => path.push_str(word),
            }
            index += 1;
        }
        if path != prefix {
            paths.push((self.line(index - 1), path));
        }
        index
    }

    fn use_group(&self, open: usize, prefix: &str, paths: &mut Vec<(usize, String)>) -> usize {
        let close = self.matching(open);
        let mut index = open + 1;
        while index < close {
            index = self.use_tree(index, prefix, paths) + 1;
        }
        close + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions(text: &str) -> Vec<(String, usize, usize)> {
        let source = Source::parse(text);
        source.functions().into_iter().map(|f| (f.name.to_owned(), f.line, f.lines)).collect()
    }

    fn function(name: &str, line: usize, lines: usize) -> (String, usize, usize) {
        (name.to_owned(), line, lines)
    }

    #[test]
    fn a_function_counts_from_its_signature_to_its_brace() {
        let text = "/// Docs.\n#[inline]\npub async fn a(\n    x: u8,\n) -> u8 {\n    x\n}\nfn b() {}\n";
        assert_eq!(functions(text), [function("a", 3, 5), function("b", 8, 1)]);
    }

    #[test]
    fn braces_in_strings_and_comments_do_not_end_a_function() {
        let text = "fn a() {\n    f(\"}\", '}', r#\"}\"#); // }\n    /* } */\n}";
        assert_eq!(functions(text), [function("a", 1, 4)]);
    }

    #[test]
    fn a_nested_function_is_counted_too() {
        let text = "fn outer() {\n    fn inner() {\n    }\n}";
        assert_eq!(functions(text), [function("outer", 1, 4), function("inner", 2, 2)]);
    }

    #[test]
    fn a_signature_may_hold_brackets_and_arrows_of_any_kind() {
        let text = "fn a<F: Fn(&[u8; 4]) -> Buffer<{ N }>, const N: usize>(f: F) -> Map<u8, { N }>\nwhere\n    F: Sync, {\n}";
        assert_eq!(functions(text), [function("a", 1, 4)]);
    }

    #[test]
    fn what_has_no_body_is_no_function() {
        let text = "trait T {\n    fn a(&self, _: [u8; 2]) -> u8;\n    fn b(&self) {\n    }\n}\ntype F = fn(u8) -> u8;";
        assert_eq!(functions(text), [function("b", 3, 2)]);
    }

    #[test]
    fn a_function_in_a_macro_is_counted() {
        let text =
            "macro_rules! m {\n    ($n:ident) => {\n        fn $n() {\n            x\n        }\n    };\n}";
        assert_eq!(functions(text), [function("$", 3, 3)]);
        assert_eq!(functions("macro_rules! m { (fn $n:ident) => { $n }; }"), []);
    }

    #[test]
    fn text_that_does_not_close_measures_to_its_end() {
        assert_eq!(functions("fn a() {\n    b(\n"), [function("a", 1, 2)]);
        assert_eq!(functions("fn"), []);
        assert_eq!(functions("fn a"), []);
    }

    #[test]
    fn attributes_are_read_with_their_words() {
        let source = Source::parse("#![a]\nfn f() { x[0]; }\n#[cfg_attr(b, c)]\nstruct S;");
        let found: Vec<_> = source.attributes().into_iter().map(|a| (a.line, a.words.join(" "))).collect();
        assert_eq!(found, [(1, "a".to_owned()), (3, "cfg_attr ( b , c )".to_owned())]);
    }

    #[test]
    fn the_region_of_tests_ends_with_its_item() {
        let text = "fn a() {}\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n#[cfg(test)]\nuse d;\n";
        assert_eq!(Source::parse(text).test_regions(), [2..=6, 8..=9]);
        assert_eq!(Source::parse("#[cfg(all(test, unix))]\nfn f(x: [u8; 2]) {\n}").test_regions(), [1..=3]);
        assert_eq!(Source::parse("#[cfg(not(test))]\nfn f() {}").test_regions(), []);
    }

    #[test]
    fn uses_are_written_out() {
        let text = "use a::b;\npub(crate) use c::{\n    self,\n    d as e,\n    f::{g, h::*},\n};\nuse i as _;\nfn x() -> impl T + use<'a> {}";
        let found: Vec<_> = Source::parse(text).uses();
        let expected =
            [(1, "a::b"), (3, "c::self"), (4, "c::d"), (5, "c::f::g"), (5, "c::f::h::*"), (7, "i")];
        assert_eq!(found.iter().map(|(line, path)| (*line, path.as_str())).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_needle_is_found_in_code_only() {
        let text = "// a::b\nlet x = \"a::b\";\na :: b();\nza::b();\na::bz();\nx.a\n    ::b\n";
        assert_eq!(Source::parse(text).find("a::b"), [3, 6]);
    }
}
