//! Cuts text into sentences and terms for the stages that count words.
//!
//! Invariant: pieces are slices of the text, cut on character boundaries, in order.

use std::borrow::Cow;

/// English words that carry no topic. Sorted, so that a search can halve.
const STOP_WORDS: [&str; 151] = [
    "about", "above", "after", "again", "against", "all", "almost", "along", "already", "also", "although",
    "always", "among", "and", "another", "any", "are", "around", "because", "become", "becomes", "been",
    "before", "behind", "being", "below", "between", "both", "but", "can", "cannot", "could", "did", "does",
    "doing", "done", "down", "during", "each", "either", "else", "enough", "even", "ever", "every", "few",
    "first", "for", "from", "further", "get", "gets", "give", "given", "goes", "had", "has", "have",
    "having", "her", "here", "hers", "him", "his", "how", "however", "into", "its", "itself", "just", "keep",
    "last", "less", "let", "like", "made", "make", "makes", "many", "may", "might", "more", "most", "much",
    "must", "neither", "never", "next", "nor", "not", "nothing", "now", "off", "often", "once", "one",
    "only", "onto", "other", "our", "out", "over", "own", "per", "put", "rather", "same", "see", "shall",
    "she", "should", "since", "some", "still", "such", "take", "than", "that", "the", "their", "them",
    "then", "there", "these", "they", "this", "those", "through", "thus", "too", "two", "under", "until",
    "use", "used", "very", "was", "well", "were", "what", "when", "where", "which", "while", "who", "will",
    "with", "without", "would", "you", "your",
];

/// Abbreviations whose stop ends no sentence.
const ABBREVIATIONS: [&str; 18] = [
    "al", "approx", "ca", "cf", "dr", "e.g", "etc", "fig", "i.e", "inc", "jr", "mr", "mrs", "ms", "no",
    "prof", "st", "vs",
];

/// The first `chars` characters of a text.
#[must_use]
pub fn clip(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(end, _)| &text[..end])
}

/// The text on one line, with an ellipsis when it had to be cut to `chars` characters.
#[must_use]
pub fn shorten(text: &str, chars: usize) -> String {
    let line = one_line(text);
    let kept = clip(&line, chars);
    if kept.len() == line.len() {
        return line;
    }
    let whole = kept.rfind(' ').filter(|at| *at * 2 > kept.len()).map_or(kept, |at| &kept[..at]);
    format!("{}…", whole.trim_end_matches([',', ';', ':', ' ']))
}

/// Lines that are all `key: value` pairs stay apart by semicolons; other line ends are only spaces.
fn one_line(text: &str) -> String {
    let record = text.lines().nth(1).is_some() && text.lines().all(|line| line.contains(": "));
    let joined: Cow<'_, str> = if record { text.trim_end().replace('\n', "; ").into() } else { text.into() };
    joined.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The sentences of a text. An empty line, a new list item and a row of a table (`a | b`) end one too.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = sentence_end(rest);
            let (sentence, next) = rest.split_at(end);
            rest = next;
            let sentence = sentence.trim();
            if !sentence.is_empty() {
                return Some(sentence);
            }
        }
        None
    })
}

/// Where the first sentence of `text` ends, in bytes; never 0 unless the text is empty.
pub(crate) fn sentence_end(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    let mut line_begin = 0;
    while let Some((at, char)) = chars.next() {
        let end = at + char.len_utf8();
        let next = chars.peek().map(|(_, next)| *next);
        let ends = match char {
            '。' | '！' | '？' | '；' => true,
            '!' | '?' => next.is_none_or(char::is_whitespace),
            '.' => next.is_none_or(char::is_whitespace) && !is_abbreviation(&text[..at]),
            '\n' => {
                let line = std::mem::replace(&mut line_begin, end);
                begins_block(&text[end..]) || is_row(&text[line..at])
            }
            _ => false,
        };
        if ends {
            return end;
        }
    }
    text.len()
}

/// Whether the stop behind `before` belongs to an abbreviation, an initial or the number of a list item.
fn is_abbreviation(before: &str) -> bool {
    // Only the end is looked at, so that a long text without spaces stays linear.
    let mut from = before.len().saturating_sub(16);
    while !before.is_char_boundary(from) {
        from += 1;
    }
    let tail = &before[from..];
    let word = tail.rsplit(|char: char| char.is_whitespace() || char == '(').next().unwrap_or_default();
    let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    let item = !word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_digit())
        && is_line_start(before, word.len());
    initial || item || ABBREVIATIONS.contains(&word.to_ascii_lowercase().as_str())
}

fn is_line_start(before: &str, word_bytes: usize) -> bool {
    let above = before[..before.len() - word_bytes].trim_end_matches(' ');
    above.is_empty() || above.ends_with('\n')
}

/// Whether a line is a row of a table.
pub(crate) fn is_row(line: &str) -> bool {
    line.contains(" | ")
}

/// Whether a line begins a block of its own: an empty line, a list item, or a row.
fn begins_block(rest: &str) -> bool {
    let line = rest.split_inclusive('\n').next().unwrap_or_default();
    if is_row(line) {
        return true;
    }
    let line = line.trim_start_matches([' ', '\t']);
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    line.starts_with('\n')
        || line.starts_with("- ")
        || line.starts_with("* ")
        || ((1..=3).contains(&digits) && line[digits..].starts_with(". "))
}

/// The words of a text as written: runs of letters and digits, with the joints inside `don't`, `re-use`, `a_b`.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !(char.is_alphanumeric() || matches!(char, '_' | '-' | '\'' | '’')))
        .map(|word| word.trim_matches(['_', '-', '\'', '’']))
        .filter(|word| !word.is_empty())
}

/// The terms of a text: words in lower case and singular, without stop words, short words and numbers; Chinese and
/// Japanese text, which parts no words, in pairs of signs.
pub fn terms(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    words(text).flat_map(word_terms)
}

fn word_terms(word: &str) -> Vec<Cow<'_, str>> {
    if word.is_ascii() {
        return term(word).into_iter().collect();
    }
    let mut found = Vec::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let ideographic = is_ideograph(first);
        let end = rest.find(|char| is_ideograph(char) != ideographic).unwrap_or(rest.len());
        let (run, next) = rest.split_at(end);
        if ideographic {
            found.extend(pairs(run).map(Cow::Borrowed))
        } else {
            found.extend(term(run))
        }
        rest = next;
    }
    found
}

fn pairs(run: &str) -> impl Iterator<Item = &str> {
    let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
    let ranges: Vec<(usize, usize)> = starts.windows(3).map(|window| (window[0], window[2])).collect();
    ranges.into_iter().map(move |(from, to)| &run[from..to])
}

/// A word as a term, or nothing.
fn term(word: &str) -> Option<Cow<'_, str>> {
    let letters = word.chars().take(64).filter(|char| char.is_alphabetic()).count();
    if letters < 3 || word.len() > 64 {
        return None;
    }
    let lower = if word.chars().any(char::is_uppercase) {
        Cow::Owned(word.to_lowercase())
    } else {
        Cow::Borrowed(word)
    };
    let singular = singular(lower);
    (!is_stop_word(&singular)).then_some(singular)
}

/// Takes a plain English plural `s` off, but not of an identifier. A small error costs little, because it is the same
/// everywhere.
fn singular(word: Cow<'_, str>) -> Cow<'_, str> {
    let plural = word.len() > 3
        && word.is_ascii()
        && !word.contains('_')
        && word.ends_with('s')
        && !["ss", "us", "is", "'s", "’s"].iter().any(|end| word.ends_with(end));
    let kept = match word.strip_suffix("'s").or(word.strip_suffix("’s")) {
        Some(owner) => owner.len(),
        None if plural => word.len() - 1,
        None => return word,
    };
    match word {
        Cow::Borrowed(word) => Cow::Borrowed(&word[..kept]),
        Cow::Owned(mut word) => {
            word.truncate(kept);
            Cow::Owned(word)
        }
    }
}

/// Whether a lower-case word carries no topic.
#[must_use]
pub fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// A sign of a script that writes without spaces between words.
#[must_use]
pub fn is_ideograph(char: char) -> bool {
    matches!(char, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<&str> {
        sentences(text).collect()
    }

    #[test]
    fn sentences_end_at_stops_and_not_at_abbreviations() {
        let text = "The boat, e.g. Heron, came in at 3.5 knots. Dr. Ann saw it! Did J. Bo? Yes";
        assert_eq!(
            cut(text),
            ["The boat, e.g. Heron, came in at 3.5 knots.", "Dr. Ann saw it!", "Did J. Bo?", "Yes"]
        );
        assert_eq!(cut("潮水来了。船走了！好"), ["潮水来了。", "船走了！", "好"]);
    }

    #[test]
    fn list_items_and_paragraphs_are_sentences_and_wrapped_lines_are_not() {
        assert_eq!(cut("one\ntwo\n\nthree"), ["one\ntwo", "three"]);
        assert_eq!(cut("1. haul\n2. scrape it\n- dry"), ["1. haul", "2. scrape it", "- dry"]);
        assert_eq!(cut("head\na | b\nc | d\ntail\nends"), ["head", "a | b", "c | d", "tail\nends"]);
    }

    #[test]
    fn terms_are_lower_case_singular_and_carry_a_topic() {
        let found: Vec<_> = terms("The boats' hulls and 1234 of the Harbour's glass; ab task_ids").collect();
        assert_eq!(found, ["boat", "hull", "harbour", "glass", "task_ids"]);
        let found: Vec<_> = terms("任务队列 größere").collect();
        assert_eq!(found, ["任务", "务队", "队列", "größere"]);
    }

    #[test]
    fn stop_words_are_sorted_for_the_search() {
        assert!(STOP_WORDS.is_sorted());
        assert!(is_stop_word("about") && is_stop_word("your") && !is_stop_word("boat"));
    }

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!(clip("äöü", 2), "äö");
        assert_eq!(clip("äöü", 9), "äöü");
        assert_eq!(shorten("one two\n three four", 13), "one two…");
        assert_eq!(shorten("one two", 13), "one two");
        assert_eq!(shorten("name: Heron\nbeam: 3\n", 40), "name: Heron; beam: 3");
    }

    #[test]
    fn a_long_text_without_spaces_is_linear() {
        let text = "x.".repeat(1 << 20);
        assert_eq!(sentences(&text).count(), 1);
        assert_eq!(sentences(&". ".repeat(1 << 18)).count(), 1 << 18);
    }
}
