//! The shapes of sentence that can be turned into a question.

use crate::stage::words::words;

/// Words that a subject never begins with: they point elsewhere, or begin a clause.
const NO_SUBJECT: [&str; 44] = [
    "after", "again", "also", "and", "as", "at", "because", "before", "both", "but", "by", "each", "else",
    "for", "he", "here", "how", "i", "if", "in", "it", "its", "on", "one", "or", "she", "since", "so",
    "such", "that", "then", "there", "these", "they", "this", "those", "to", "we", "what", "when", "where",
    "which", "with", "you",
];

const SUBJECT_WORDS_MAX: usize = 6;
/// Pairs of a record that are looked at.
const PAIRS_MAX: usize = 6;

/// `X is a Y.` asks `What is X?`; `X means Y.` asks `What does X mean?`.
pub(super) fn definition(sentence: &str, text: &str) -> Option<String> {
    const SHAPES: [(&str, &str, &str); 6] = [
        (" is a ", "What is ", "?"),
        (" is an ", "What is ", "?"),
        (" is the ", "What is ", "?"),
        (" means ", "What does ", " mean?"),
        (" stands for ", "What does ", " stand for?"),
        (" is called ", "What is ", " called?"),
    ];
    let (at, before, after) = SHAPES
        .iter()
        .filter_map(|(mark, before, after)| Some((sentence.find(mark)?, *before, *after)))
        .min_by_key(|(at, _, _)| *at)?;
    let subject = subject(&sentence[..at], text)?;
    Some(format!("{before}{subject}{after}"))
}

/// `X is done because Y.` asks `Why is X done?`.
pub(super) fn reason(sentence: &str, text: &str) -> Option<String> {
    const AUXILIARIES: [&str; 10] =
        ["is", "are", "was", "were", "can", "cannot", "must", "should", "will", "may"];
    const CLAUSE_WORDS_MAX: usize = 18;
    let clause = sentence[..sentence.find(" because ")?].trim_end_matches(',');
    let all: Vec<&str> = clause.split_whitespace().collect();
    let at = all.iter().position(|word| AUXILIARIES.contains(word))?;
    if all.len() > CLAUSE_WORDS_MAX || at + 1 >= all.len() {
        return None;
    }
    let subject = subject(&all[..at].join(" "), text)?;
    Some(format!("Why {} {subject} {}?", all[at], all[at + 1..].join(" ")))
}

/// `X must Y.` asks `What is required of X?`.
pub(super) fn rule(sentence: &str, text: &str) -> Option<String> {
    let at = [" must ", " should ", " shall ", " has to ", " have to "]
        .iter()
        .filter_map(|mark| sentence.find(mark))
        .min()?;
    let subject = subject(&sentence[..at], text)?;
    Some(format!("What is required of {subject}?"))
}

/// `key: value; key: value` asks `What is recorded about “value” (key)?`, of the first value that is a name.
pub(super) fn record(block: &str) -> Option<String> {
    let mark = if block.contains("; ") { "; " } else { "\n" };
    let pairs: Vec<(&str, &str)> =
        block.split(mark).take(PAIRS_MAX).map(|pair| pair.split_once(": ")).collect::<Option<_>>()?;
    let is_key =
        |key: &str| (1..=3).contains(&key.split_whitespace().count()) && !key.contains(['!', '?', ',']);
    let is_name = |value: &str| value.chars().count() <= 60 && value.chars().any(char::is_alphabetic);
    if pairs.len() < 2 || !pairs.iter().all(|(key, _)| is_key(key)) {
        return None;
    }
    let (key, value) = pairs.iter().find(|(_, value)| is_name(value))?;
    Some(format!("What is recorded about “{}” ({key})?", value.trim()))
}

/// The subject as it stands inside a sentence, or nothing when it is none.
fn subject(text: &str, whole: &str) -> Option<String> {
    let text = text.trim();
    let count = text.split_whitespace().count();
    let plain = !text.contains([',', ';', ':', '(', ')', '|', '"', '“', '\n', '=', '{']);
    let first = words(text).next()?;
    let lower = first.to_lowercase();
    if !(1..=SUBJECT_WORDS_MAX).contains(&count) || !plain || NO_SUBJECT.contains(&lower.as_str()) {
        return None;
    }
    let rest = text.strip_prefix(first)?;
    // A determiner, or a word that the text also writes small, was only capital because it began the sentence.
    let small =
        matches!(lower.as_str(), "the" | "a" | "an" | "every" | "no" | "any" | "all" | "most" | "our")
            || words(whole).take(2_000).any(|word| word == lower);
    Some(if small { format!("{lower}{rest}") } else { text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_that_point_elsewhere_are_not_asked_about() {
        for sentence in
            ["This is a ramp.", "It is the last.", "If wind is a problem, wait.", "There is a crane."]
        {
            assert_eq!(definition(sentence, sentence), None, "{sentence}");
        }
        assert_eq!(rule("When it rains, you must wait.", ""), None);
    }

    #[test]
    fn a_name_keeps_its_capital_and_a_noun_loses_it() {
        assert_eq!(definition("Heron is a boat.", "Heron is a boat.").as_deref(), Some("What is Heron?"));
        let text = "Varnish is a resin. We like varnish.";
        assert_eq!(definition("Varnish is a resin.", text).as_deref(), Some("What is varnish?"));
        assert_eq!(definition("MHW means mean high water.", "").as_deref(), Some("What does MHW mean?"));
    }

    #[test]
    fn reasons_turn_the_clause_round() {
        let sentence = "No boat may leave, because the wind is strong.";
        assert_eq!(reason(sentence, sentence).as_deref(), Some("Why may no boat leave?"));
        assert_eq!(reason("Because it rained, we left.", ""), None);
        assert_eq!(reason("It is late because we slept.", ""), None);
    }

    #[test]
    fn a_record_needs_two_pairs_and_a_name() {
        assert_eq!(record("name: Heron\nbeam: 3").as_deref(), Some("What is recorded about “Heron” (name)?"));
        let dated = record("date: 2026-02-07; supplier: North Chain Works");
        assert_eq!(dated.as_deref(), Some("What is recorded about “North Chain Works” (supplier)?"));
        assert_eq!(record("year: 1999; days: 3"), None);
        assert_eq!(record("note: one pair only"), None);
        assert_eq!(record("The rule is this: wait; then go: slowly"), None);
    }
}
