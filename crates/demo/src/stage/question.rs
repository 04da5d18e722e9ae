//! Questions that a chunk answers, built from its headings, definitions, reasons, rules and records.
//!
//! Invariant: each question carries the passage that answers it, and no batch asks the same twice.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::chunk::PATH_MARK;
use super::words::{is_ideograph, is_row, sentences, shorten, terms, words};
use crate::id::ChunkId;

mod pattern;

/// Chunks that one task takes.
pub const BATCH_CHUNKS: usize = 20;
/// Letters of an answer that are kept.
const ANSWER_CHARS_MAX: usize = 300;
/// Letters of a question; a longer one would quote rather than ask.
const QUESTION_CHARS_MAX: usize = 160;

/// How much is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Questions a chunk. Default 3, at most 10.
    pub per_chunk: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { per_chunk: 3 }
    }
}

/// A chunk to ask about.
#[derive(Debug, Clone, Copy)]
pub struct Passage<'a> {
    /// The chunk.
    pub chunk: &'a ChunkId,
    /// The headings above it.
    pub heading: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// A question and the passage that answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// Where the answer is.
    pub chunk: ChunkId,
    /// Ends with a question mark.
    pub text: String,
    /// A sentence of the chunk.
    pub answer: String,
}

/// The questions of one batch, chunk by chunk.
#[must_use]
pub fn ask(batch: &[Passage<'_>], options: &Options) -> Vec<Question> {
    let per_chunk = options.per_chunk.min(10);
    let mut asked = BTreeSet::new();
    let mut questions = Vec::new();
    for passage in batch {
        let fresh = candidates(passage)
            .into_iter()
            .filter(|(text, _)| text.chars().count() <= QUESTION_CHARS_MAX)
            .filter(|(text, _)| asked.insert(text.to_lowercase()))
            .take(per_chunk)
            .map(|(text, answer)| Question {
                chunk: passage.chunk.clone(),
                text,
                answer: shorten(answer, ANSWER_CHARS_MAX),
            });
        questions.extend(fresh);
    }
    questions
}

/// Everything that could be asked, the most telling first.
fn candidates<'a>(passage: &Passage<'a>) -> Vec<(String, &'a str)> {
    let text = passage.text;
    let all: Vec<&str> = sentences(text).map(bare).take(200).collect();
    let first = all.iter().copied().find(|sentence| sentence.chars().count() >= 20).unwrap_or(text);
    let mut found: Vec<(String, &str)> = Vec::new();
    found.extend(all.iter().filter_map(|sentence| Some((pattern::definition(sentence, text)?, *sentence))));
    found.extend(all.iter().filter_map(|sentence| Some((pattern::reason(sentence, text)?, *sentence))));
    found.extend(heading(passage.heading).map(|question| (question, first)));
    let records: Vec<_> =
        text.split("\n\n").filter_map(|block| Some((pattern::record(block)?, block))).take(3).collect();
    // The columns of a table meet in every row; that connects nothing.
    let is_table = !records.is_empty();
    found.extend(records);
    found.extend(all.iter().filter_map(|sentence| Some((pattern::rule(sentence, text)?, *sentence))));
    found.extend(connection(&all).filter(|_| !is_table));
    found
}

/// A list item or quote without its mark.
fn bare(sentence: &str) -> &str {
    let sentence = sentence.trim_start_matches(['-', '*', '>', ' ']);
    let digits = sentence.bytes().take_while(u8::is_ascii_digit).count();
    sentence[digits..].strip_prefix(". ").filter(|_| digits > 0).unwrap_or(sentence)
}

/// What the innermost heading asks.
fn heading(path: &str) -> Option<String> {
    let mut levels = path.rsplit(PATH_MARK);
    let heading = levels.next()?.trim().trim_end_matches([':', '.']);
    let above = levels.next();
    let first = words(heading).next()?.to_lowercase();
    if heading.ends_with('?') {
        return Some(heading.to_owned());
    }
    let topic = || match above {
        Some(above) => format!("What should one know about “{heading}” ({above})?"),
        None => format!("What is “{heading}” about?"),
    };
    match first.as_str() {
        // A place in a table is no topic.
        "rows" => None,
        "how" | "why" | "when" | "where" => Some(format!("{heading}?")),
        _ => Some(topic()),
    }
}

/// The two terms that meet most often inside a sentence; nothing when no two meet twice. Pairs of signs are parts of
/// words rather than words, and rows and code are no sentences.
fn connection<'a>(all: &[&'a str]) -> Option<(String, &'a str)> {
    let all: Vec<&str> = all.iter().copied().filter(|sentence| is_prose(sentence)).take(40).collect();
    let sets: Vec<BTreeSet<String>> =
        all.iter().map(|sentence| terms(sentence).map(|term| term.into_owned()).take(24).collect()).collect();
    let mut meetings = std::collections::BTreeMap::new();
    for set in &sets {
        for (at, one) in set.iter().enumerate() {
            for other in set.iter().skip(at + 1) {
                *meetings.entry((one, other)).or_insert(0_u32) += 1;
            }
        }
    }
    // Of equals the first by name wins, so that the choice repeats.
    let ((one, other), times) = meetings.into_iter().rev().max_by_key(|(_, times)| *times)?;
    let place = sets.iter().position(|set| set.contains(one) && set.contains(other))?;
    (times >= 2).then(|| (format!("How are “{one}” and “{other}” connected?"), all[place]))
}

fn is_prose(sentence: &str) -> bool {
    let chars = sentence.chars().count();
    let wordy = sentence.chars().filter(|char| char.is_alphabetic() || *char == ' ').count();
    wordy * 10 >= chars * 9 && !is_row(sentence) && !sentence.chars().any(is_ideograph)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{DocumentId, SourceId};

    fn questions(passages: &[(&str, &str)], per_chunk: usize) -> Vec<(String, String)> {
        let document = DocumentId::of(&SourceId::from("s".to_owned()), "a.md");
        let ids: Vec<ChunkId> =
            (0_u32..).map(|at| ChunkId::of(&document, at, "")).take(passages.len()).collect();
        let batch: Vec<Passage<'_>> = passages
            .iter()
            .zip(&ids)
            .map(|((heading, text), chunk)| Passage { chunk, heading, text })
            .collect();
        ask(&batch, &Options { per_chunk })
            .into_iter()
            .map(|question| (question.text, question.answer))
            .collect()
    }

    fn texts(heading: &str, text: &str) -> Vec<String> {
        questions(&[(heading, text)], 10).into_iter().map(|(text, _)| text).collect()
    }

    #[test]
    fn a_chunk_is_asked_what_it_answers() {
        let text = "A slipway is a ramp into the water. The crane is painted last because rain spoils wet paint. \
                    Every boat must carry two fenders.";
        let asked = questions(&[("Yard › The slipway", text)], 10);
        let expected = [
            ("What is a slipway?", "A slipway is a ramp into the water."),
            ("Why is the crane painted last?", "The crane is painted last because rain spoils wet paint."),
            ("What should one know about “The slipway” (Yard)?", "A slipway is a ramp into the water."),
            ("What is required of every boat?", "Every boat must carry two fenders."),
        ];
        let expected: Vec<_> = expected.map(|(text, answer)| (text.to_owned(), answer.to_owned())).into();
        assert_eq!(asked, expected);
    }

    #[test]
    fn headings_that_ask_are_taken_as_they_are() {
        assert_eq!(texts("Why do boats leak?", "Wood shrinks in the sun."), ["Why do boats leak?"]);
        assert_eq!(texts("How to haul a boat", "Pull the boat slowly."), ["How to haul a boat?"]);
        assert_eq!(texts("Rows 1 to 50", "Nothing of note."), Vec::<String>::new());
    }

    #[test]
    fn records_are_asked_by_their_first_value() {
        let text = "boat: Heron; yard: North; days: 3\n\nboat: Tern; yard: South";
        assert_eq!(
            texts("Rows 1 to 2", text),
            ["What is recorded about “Heron” (boat)?", "What is recorded about “Tern” (boat)?"]
        );
    }

    #[test]
    fn terms_that_meet_twice_are_asked_for_their_connection() {
        let text = "Wind moves tides here. Tides follow wind again.";
        assert_eq!(texts("Rows", text), ["How are “tide” and “wind” connected?"]);
    }

    #[test]
    fn a_batch_asks_nothing_twice_and_keeps_to_its_number() {
        let text = "A slipway is a ramp. A crane is a machine. A buoy is a float.";
        let asked = questions(&[("Rows", text), ("Rows", text)], 2);
        assert_eq!(
            asked.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>(),
            ["What is a slipway?", "What is a crane?", "What is a buoy?"]
        );
    }
}
