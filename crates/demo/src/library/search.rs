//! Full-text search over the chunks.
//!
//! Invariant: nothing a person types is ever a syntax error of the index: only quoted words reach it.

use rusqlite::Connection;
use serde::Serialize;

use super::Library;
use crate::Error;
use crate::id::SourceId;
use crate::stage::words::{clip, is_ideograph};

/// Stands around each word that matched, in a snippet.
pub const MARK: &str = "**";

/// Words of a query that count.
const WORDS_MAX: usize = 24;
/// Letters of a word.
const WORD_CHARS_MAX: usize = 64;
/// Words of a snippet.
const SNIPPET_WORDS: u32 = 24;
/// How much more a match in a heading weighs than one in the text.
const HEADING_WEIGHT: f64 = 3.0;
/// Hits at most.
const HITS_MAX: u32 = 1_000;

/// Nothing to see, but an end of a word to the index.
const SEAM: char = '\u{200b}';

/// A chunk that matched.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// The folder.
    pub source: SourceId,
    /// The file, below its folder.
    pub path: String,
    /// The document's title.
    pub title: String,
    /// The headings above the chunk.
    pub heading: String,
    /// Words around the match, on one line, matches between [`MARK`]s.
    pub snippet: String,
    /// Higher is better; only to be compared within one search.
    pub score: f64,
}

impl Library {
    /// The chunks that hold all words, or, when none does, the chunks that hold any, the best first. A part in double
    /// quotes is looked for as a phrase; a `*` behind a word stands for any ending. Case makes no difference.
    /// At most `limit` hits, and 1,000.
    ///
    /// # Errors
    /// [`Error::Library`]; never for what was typed.
    pub fn search(&self, words: &str, limit: u32) -> Result<Vec<Hit>, Error> {
        let phrases = phrases(words);
        if phrases.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        self.read(|connection| {
            let all = find(connection, &phrases.join(" AND "), limit)?;
            if !all.is_empty() || phrases.len() == 1 {
                return Ok(all);
            }
            find(connection, &phrases.join(" OR "), limit)
        })
    }
}

fn find(connection: &Connection, query: &str, limit: u32) -> Result<Vec<Hit>, Error> {
    let sql = "SELECT d.source, d.path, coalesce(d.title, d.path), c.heading,
                      snippet(chunk_words, 1, ?2, ?2, '…', ?3), -bm25(chunk_words, ?4, 1.0) AS score
               FROM chunk_words JOIN chunks c ON c.place = chunk_words.rowid JOIN documents d ON d.id = c.document
               WHERE chunk_words MATCH ?1
               ORDER BY score DESC, d.source, d.path, c.ordinal LIMIT ?5";
    let mut statement = connection.prepare_cached(sql)?;
    let limit = limit.min(HITS_MAX);
    let hits = statement.query_map((query, MARK, SNIPPET_WORDS, HEADING_WEIGHT, limit), |row| {
        Ok(Hit {
            source: row.get(0)?,
            path: row.get(1)?,
            title: row.get(2)?,
            heading: row.get(3)?,
            snippet: line(&row.get::<_, String>(4)?),
            score: row.get(5)?,
        })
    })?;
    Ok(hits.collect::<Result<_, _>>()?)
}

/// One line without seams; marks that met at a seam are one mark.
fn line(snippet: &str) -> String {
    let joined = snippet.replace(&format!("{MARK}{SEAM}{MARK}"), "").replace(SEAM, "");
    joined.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What was typed, as quoted strings for the index. A word of several parts (`re-use`, `任务`) is a phrase of them.
fn phrases(typed: &str) -> Vec<String> {
    let mut phrases = Vec::new();
    for (at, part) in typed.split('"').enumerate() {
        // Every second part stood between quotes; one that was never closed counts as if it were.
        if at % 2 == 1 {
            phrases.extend(phrase(part, false));
        } else {
            phrases.extend(part.split_whitespace().filter_map(|word| phrase(word, word.ends_with('*'))));
        }
    }
    phrases.truncate(WORDS_MAX);
    phrases
}

fn phrase(text: &str, is_prefix: bool) -> Option<String> {
    let spread = spread(clip(text, WORD_CHARS_MAX * 4));
    let words = spread.split(|char: char| !char.is_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.take(WORDS_MAX).map(|word| clip(word, WORD_CHARS_MAX)).collect();
    if words.is_empty() {
        return None;
    }
    let end = if is_prefix { "*" } else { "" };
    let forms: Vec<String> =
        forms(&words.join(" ")).into_iter().map(|words| format!("\"{words}\"{end}")).collect();
    Some(match forms.as_slice() {
        [form] => form.clone(),
        several => format!("({})", several.join(" OR ")),
    })
}

/// The spellings of some words that differ in nothing but case, each once. The index compares letter by letter;
/// where another case has another number of letters, as `straße` and `STRASSE` have, it takes the two for different words.
fn forms(words: &str) -> Vec<String> {
    let typed = words.to_lowercase();
    let folded = typed.to_uppercase().to_lowercase();
    let short = folded.replace("ss", "ß");
    let mut forms = vec![words.to_owned()];
    let others = [&folded, &short].into_iter().filter(|form| **form != typed);
    forms.extend(others.cloned());
    forms.dedup();
    forms
}

/// Text as the index should see it: scripts that part no words get a seam between signs, so that a search for a few
/// signs finds them as a phrase.
pub(super) fn spread(text: &str) -> String {
    let mut spread = String::with_capacity(text.len());
    let mut before = false;
    for char in text.chars() {
        let ideographic = is_ideograph(char);
        if (before || ideographic) && !spread.is_empty() {
            spread.push(SEAM);
        }
        spread.push(char);
        before = ideographic;
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_quoted_words_reach_the_index() {
        assert_eq!(
            phrases("boat AND (tide* OR -x) NEAR"),
            ["\"boat\"", "\"AND\"", "\"tide\"*", "\"OR\"", "\"x\"", "\"NEAR\""]
        );
        assert_eq!(
            phrases("say \"high  water\" re-use \"open"),
            ["\"say\"", "\"high water\"", "\"re use\"", "\"open\""]
        );
        assert_eq!(phrases(" * \" ' ; -- \0 ^ : "), Vec::<String>::new());
        assert_eq!(phrases(&"word ".repeat(1_000)).len(), WORDS_MAX);
    }

    #[test]
    fn words_whose_other_case_is_longer_are_looked_for_in_both_lengths() {
        assert_eq!(phrases("Straße"), ["(\"Straße\" OR \"strasse\")"]);
        assert_eq!(phrases("STRAS* GRÖSSE*"), ["\"STRAS\"*", "(\"GRÖSSE\"* OR \"größe\"*)"]);
        assert_eq!(phrases("\"Große Gasse\""), ["(\"Große Gasse\" OR \"grosse gasse\" OR \"große gaße\")"]);
        assert_eq!(phrases("ÄRGER"), ["\"ÄRGER\""], "the index folds what keeps its length");
    }

    #[test]
    fn signs_are_parted_and_put_together_again() {
        let spread = spread("a 任务b");
        assert_eq!(spread.chars().filter(|char| *char == SEAM).count(), 3);
        assert_eq!(line(&spread), "a 任务b");
        assert_eq!(line(&format!("**任**{SEAM}**务**")), "**任务**");
    }
}
