//! An extractive summary: the few sentences that carry most of a document's frequent terms, in their own order.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::words::{is_ideograph, is_row, sentences, shorten, terms};

/// Sentences that are weighed; a longer document is summarised by its beginning.
const SENTENCES_WEIGHED_MAX: usize = 2_000;
/// Letters of one sentence that are shown.
const SENTENCE_CHARS_MAX: usize = 320;

/// How much a summary may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Default 3.
    pub sentences_max: usize,
    /// Default 8.
    pub keywords_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { sentences_max: 3, keywords_max: 8 }
    }
}

/// What a document is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Sentences of the document.
    pub text: String,
    /// Its most frequent terms, the most frequent first.
    pub keywords: Vec<Keyword>,
}

/// A term and how often it comes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keyword {
    /// In lower case and singular.
    pub term: String,
    /// Times in the document.
    pub count: u32,
}

/// Summarises the chunks of a document, given in order.
#[must_use]
pub fn summarise(chunks: &[&str], options: &Options) -> Summary {
    let counts = count(chunks);
    let mut candidates: Vec<Candidate<'_>> = chunks
        .iter()
        .flat_map(|chunk| sentences(chunk).enumerate())
        .take(SENTENCES_WEIGHED_MAX)
        .enumerate()
        .map(|(place, (in_chunk, text))| weigh(place, in_chunk, text, &counts))
        .collect();
    candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.place.cmp(&b.place)));
    let mut chosen: Vec<Candidate<'_>> = Vec::new();
    for candidate in candidates {
        if chosen.len() == options.sentences_max {
            break;
        }
        if !chosen.iter().any(|other| says_the_same(&candidate.terms, &other.terms)) {
            chosen.push(candidate);
        }
    }
    chosen.sort_by_key(|candidate| candidate.place);
    let said: Vec<String> =
        chosen.iter().map(|candidate| shorten(plain(candidate.text), SENTENCE_CHARS_MAX)).collect();
    Summary { text: join(&said), keywords: keywords(&counts, options.keywords_max) }
}

/// Sentences need only a space between them; what ends without a stop needs a mark.
fn join(said: &[String]) -> String {
    let mut text = String::new();
    for sentence in said {
        if !text.is_empty() {
            text.push_str(if ends(&text) { " " } else { " · " });
        }
        text.push_str(sentence);
    }
    text
}

fn ends(text: &str) -> bool {
    text.ends_with(['.', '!', '?', '。', '！', '？'])
}

fn count(chunks: &[&str]) -> HashMap<String, u32> {
    let mut counts = HashMap::new();
    for term in chunks.iter().flat_map(|chunk| terms(chunk)) {
        match counts.get_mut(term.as_ref()) {
            Some(count) => *count += 1,
            None => drop(counts.insert(term.into_owned(), 1)),
        }
    }
    counts
}

fn keywords(counts: &HashMap<String, u32>, max: usize) -> Vec<Keyword> {
    let mut ranked: Vec<(&String, u32)> = counts.iter().map(|(term, count)| (term, *count)).collect();
    ranked.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    ranked.into_iter().take(max).map(|(term, count)| Keyword { term: term.clone(), count }).collect()
}

struct Candidate<'a> {
    place: usize,
    text: &'a str,
    terms: BTreeSet<String>,
    score: f64,
}

/// Square roots and products only: they are exact on every machine, so the choice is the same everywhere.
fn weigh<'a>(place: usize, in_chunk: usize, text: &'a str, counts: &HashMap<String, u32>) -> Candidate<'a> {
    let terms: BTreeSet<String> = terms(text).map(|term| term.into_owned()).collect();
    let weight: f64 = terms.iter().map(|term| f64::from(counts.get(term).copied().unwrap_or(0)).sqrt()).sum();
    let size = f64::from(u32::try_from(terms.len()).unwrap_or(u32::MAX));
    let position = match (place, in_chunk) {
        (0, _) => 1.6,
        (_, 0) => 1.2,
        _ => 1.0,
    };
    Candidate { place, text, score: weight / (size + 4.0) * position * shape(text), terms }
}

/// How much a text looks like a sentence a person would quote.
fn shape(text: &str) -> f64 {
    let chars = text.chars().count();
    let wordy = text.chars().filter(|char| char.is_alphabetic() || *char == ' ').count();
    let dense = text.chars().any(is_ideograph);
    let length = match chars {
        0..12 => 0.1,
        12..40 if !dense => 0.5,
        12..=300 => 1.0,
        _ => 0.6,
    };
    let prose = if wordy * 10 >= chars * 8 || dense { 1.0 } else { 0.4 };
    let whole = match () {
        () if is_row(text) => 0.2,
        () if ends(text) => 1.0,
        () => 0.6,
    };
    length * prose * whole
}

/// Whether most of the smaller set is in the other.
fn says_the_same(one: &BTreeSet<String>, other: &BTreeSet<String>) -> bool {
    let shared = one.intersection(other).count();
    let smaller = one.len().min(other.len());
    smaller == 0 || shared * 10 > smaller * 7
}

/// A list item without its bullet.
fn plain(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix("- ").or_else(|| text.strip_prefix("* ")).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const YARD: [&str; 2] = [
        "The boat yard mends wooden boats of every size. It rained on Tuesday. The yard has a slip and a crane for boats.",
        "Varnish needs three dry days. Ask Ann. A boat without varnish takes water into the wood of the boat.",
    ];

    #[test]
    fn the_sentences_with_the_frequent_terms_are_chosen_in_their_order() {
        let summary = summarise(&YARD, &Options { sentences_max: 2, keywords_max: 3 });
        assert_eq!(
            summary.text,
            "The boat yard mends wooden boats of every size. The yard has a slip and a crane for boats."
        );
        let keywords: Vec<_> = summary.keywords.iter().map(|word| (word.term.as_str(), word.count)).collect();
        assert_eq!(keywords, [("boat", 5), ("varnish", 2), ("yard", 2)]);
    }

    #[test]
    fn the_same_said_twice_is_chosen_once() {
        let twice = [
            "The harbour wall keeps the waves away from boats. The harbour wall keeps waves from the boats.",
        ];
        let summary = summarise(&twice, &Options { sentences_max: 3, keywords_max: 1 });
        assert_eq!(summary.text, "The harbour wall keeps the waves away from boats.");
    }

    #[test]
    fn text_without_sentences_or_words_has_a_summary_too() {
        assert_eq!(
            summarise(&["boat: Heron; yard: North"], &Options::default()).text,
            "boat: Heron; yard: North"
        );
        let rows = ["boat: Heron; yard: North", "boat: Tern; wind: West"];
        assert_eq!(
            summarise(&rows, &Options::default()).text,
            "boat: Heron; yard: North · boat: Tern; wind: West"
        );
        assert_eq!(summarise(&["12 34 56"], &Options::default()).text, "12 34 56");
        assert_eq!(
            summarise(&[], &Options::default()),
            Summary { text: String::new(), keywords: Vec::new() }
        );
        assert_eq!(
            summarise(&["任务队列保存任务。天气很好。"], &Options::default()).keywords[0].term,
            "任务"
        );
    }
}
