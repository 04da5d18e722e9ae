//! The co-occurrence graph of a chunk: names, identifiers and frequent terms, joined when a sentence holds both.
//!
//! Invariant: nodes and edges come in an order that depends on the text alone, and every edge joins two of the nodes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::words::{is_stop_word, sentences, terms, words};

/// Nodes of one chunk that are kept, the most frequent first.
const NODES_MAX: usize = 40;
/// Edges of one chunk that are kept, the heaviest first.
const EDGES_MAX: usize = 80;
/// Nodes of one sentence that are joined; a list of a hundred names says little about any two.
const JOINED_MAX: usize = 12;
/// Words of a name.
const NAME_WORDS_MAX: usize = 4;
/// Letters of a node.
const NODE_CHARS_MAX: usize = 64;

/// What a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NodeKind {
    /// A capitalised phrase: a person, a place, a product.
    Name,
    /// An identifier of a program: `task_id`, `document:process`, `TaskType`.
    Code,
    /// A word that comes at least twice.
    Term,
}

impl NodeKind {
    /// The word in rows.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Code => "code",
            Self::Term => "term",
        }
    }
}

/// Something a chunk speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// What makes two mentions the same: in lower case, a single word also in the singular.
    pub term: String,
    /// As first written; a plain term as its `term`.
    pub label: String,
    /// Name, code or term.
    pub kind: NodeKind,
    /// Times in the chunk.
    pub count: u32,
}

/// Two nodes that share sentences.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// The `term` that comes first in the alphabet.
    pub from: String,
    /// The other.
    pub to: String,
    /// Sentences that hold both.
    pub weight: u32,
}

/// A chunk's graph.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    /// The most frequent first.
    pub nodes: Vec<Node>,
    /// The heaviest first.
    pub edges: Vec<Edge>,
}

/// The graph of one chunk's text.
#[must_use]
pub fn extract(text: &str) -> Graph {
    let sentences: Vec<&str> = sentences(text).collect();
    let inside = capitals_inside(&sentences);
    let mut named: BTreeMap<String, Node> = BTreeMap::new();
    let mut plain: BTreeMap<String, u32> = BTreeMap::new();
    let mut members: Vec<Vec<String>> = Vec::new();
    for sentence in &sentences {
        let mut member = Vec::new();
        for (label, kind) in mentions(sentence, &inside) {
            let term = key_of(label);
            member.push(term.clone());
            let fresh = || Node { term: term.clone(), label: label.to_owned(), kind, count: 0 };
            named.entry(term.clone()).or_insert_with(fresh).count += 1;
        }
        for term in terms(sentence) {
            member.push(term.clone().into_owned());
            *plain.entry(term.into_owned()).or_default() += 1;
        }
        members.push(member);
    }
    let mut ranked = merge(named, plain);
    ranked.sort_by(|a, b| b.count.cmp(&a.count).then(a.kind.cmp(&b.kind)).then(a.term.cmp(&b.term)));
    ranked.truncate(NODES_MAX);
    let edges = join(&ranked, &members);
    Graph { nodes: ranked, edges }
}

/// What makes two mentions the same: a single word as a term, so that `Boats` and `boat` meet; a phrase in lower case.
fn key_of(label: &str) -> String {
    let mut found = terms(label);
    match (found.next(), found.next()) {
        (Some(term), None) if !label.contains(' ') => term.into_owned(),
        _ => label.to_lowercase(),
    }
}

/// Names and plain words as one list. The plain counts include every mention, also of names. A word that is mostly
/// written small is no name, though a title may write it large; a word that comes only inside phrases is no node.
fn merge(mut named: BTreeMap<String, Node>, plain: BTreeMap<String, u32>) -> Vec<Node> {
    let mut in_phrases: BTreeMap<String, u32> = BTreeMap::new();
    for phrase in named.values().filter(|node| node.label.contains(' ')) {
        for word in terms(&phrase.label) {
            *in_phrases.entry(word.into_owned()).or_default() += phrase.count;
        }
    }
    let mut nodes = Vec::new();
    for (term, count) in plain {
        let alone = count.saturating_sub(in_phrases.get(&term).copied().unwrap_or(0));
        match named.remove(&term) {
            Some(node) if node.kind == NodeKind::Code || alone <= node.count * 2 => nodes.push(node),
            None if alone < 2 => {}
            _ => nodes.push(Node { label: term.clone(), term, kind: NodeKind::Term, count: alone }),
        }
    }
    nodes.extend(named.into_values());
    nodes
}

fn join(nodes: &[Node], members: &[Vec<String>]) -> Vec<Edge> {
    let kept: BTreeSet<&str> = nodes.iter().map(|node| node.term.as_str()).collect();
    let mut weights: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for member in members {
        let present: BTreeSet<&str> =
            member.iter().map(String::as_str).filter(|term| kept.contains(term)).take(JOINED_MAX).collect();
        let present: Vec<&str> = present.into_iter().collect();
        for (at, from) in present.iter().enumerate() {
            for to in &present[at + 1..] {
                *weights.entry((from, to)).or_default() += 1;
            }
        }
    }
    let mut edges: Vec<Edge> = weights
        .into_iter()
        .map(|((from, to), weight)| Edge { from: from.to_owned(), to: to.to_owned(), weight })
        .collect();
    // The sort is stable and the map was in order, so equals stay in the order of their names.
    edges.sort_by_key(|edge| std::cmp::Reverse(edge.weight));
    edges.truncate(EDGES_MAX);
    edges
}

/// Words that are capital somewhere else than at the beginning of a sentence.
fn capitals_inside<'a>(sentences: &[&'a str]) -> BTreeSet<&'a str> {
    sentences.iter().flat_map(|sentence| words(sentence).skip(1)).filter(|word| is_capital(word)).collect()
}

/// Names and identifiers of a sentence, in order.
fn mentions<'a>(sentence: &'a str, inside: &BTreeSet<&str>) -> Vec<(&'a str, NodeKind)> {
    let mut found = Vec::new();
    let mut run: Option<Run> = None;
    let mut at = 0;
    let mut is_first = true;
    for piece in sentence.split_inclusive(char::is_whitespace) {
        let token = piece.trim_end();
        let bare = bare(token);
        let from = at + token.find(bare).unwrap_or(0);
        let to = from + bare.len();
        let ends_phrase = to < at + token.len();
        at += piece.len();
        if is_code(bare) {
            end_run(sentence, run.take(), &mut found);
            found.push((bare, NodeKind::Code));
        } else if names(bare, is_first, inside) {
            let longer = run.take().map(|run| (run.fits(to), run));
            run = Some(match longer {
                Some((true, run)) => Run { to, words: run.words + 1, ..run },
                other => {
                    end_run(sentence, other.map(|(_, run)| run), &mut found);
                    Run { from, to, words: 1 }
                }
            });
        } else if !bare.is_empty() {
            end_run(sentence, run.take(), &mut found);
        }
        if ends_phrase {
            end_run(sentence, run.take(), &mut found);
        }
        is_first &= bare.is_empty();
    }
    end_run(sentence, run, &mut found);
    found
}

/// Capital words in a row.
struct Run {
    from: usize,
    to: usize,
    words: usize,
}

impl Run {
    fn fits(&self, to: usize) -> bool {
        self.words < NAME_WORDS_MAX && to - self.from <= NODE_CHARS_MAX
    }
}

fn end_run<'a>(sentence: &'a str, run: Option<Run>, found: &mut Vec<(&'a str, NodeKind)>) {
    if let Some(run) = run {
        found.push((&sentence[run.from..run.to], NodeKind::Name));
    }
}

/// A token without the marks around it; a call loses its brackets.
fn bare(token: &str) -> &str {
    token.trim_matches(|char: char| !(char.is_alphanumeric() || char == '_'))
}

/// Whether a word names something. A capital that only begins the sentence does not, unless the word is capital
/// elsewhere too or is all capitals.
fn names(word: &str, is_first: bool, inside: &BTreeSet<&str>) -> bool {
    is_capital(word)
        && !is_stop_word(&word.to_lowercase())
        && (!is_first || inside.contains(word) || is_acronym(word))
}

/// Begins with a capital and has a second letter.
fn is_capital(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(char::is_uppercase)
        && chars.next().is_some_and(char::is_alphanumeric)
        && word.chars().all(|char| char.is_alphanumeric() || matches!(char, '-' | '\'' | '’'))
        && word.chars().count() <= NODE_CHARS_MAX
}

fn is_acronym(word: &str) -> bool {
    word.chars().filter(|char| char.is_uppercase()).count() >= 2 && !word.chars().any(char::is_lowercase)
}

/// An identifier: parts joined by `_`, `::`, `:` or `.` without spaces, or a capital inside a word.
fn is_code(word: &str) -> bool {
    if !(3..=NODE_CHARS_MAX).contains(&word.len()) || !word.is_ascii() || word.contains("//") {
        return false;
    }
    let is_part = |part: &str| {
        part.len() >= 2
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && has_letter(part)
    };
    let joined = |mark: &str| word.contains(mark) && word.split(mark).all(is_part);
    let camel =
        word.as_bytes().windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    joined("_")
        || joined("::")
        || joined(":")
        || (camel && word.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn has_letter(part: &str) -> bool {
    part.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(text: &str) -> Vec<(String, NodeKind, u32)> {
        extract(text).nodes.into_iter().map(|node| (node.label, node.kind, node.count)).collect()
    }

    fn named(text: &str) -> Vec<String> {
        nodes(text)
            .into_iter()
            .filter(|(_, kind, _)| *kind == NodeKind::Name)
            .map(|(label, _, _)| label)
            .collect()
    }

    #[test]
    fn names_are_capitals_that_do_not_only_begin_a_sentence() {
        assert_eq!(
            named("Boats leave. The Heron sails with Ann Lee, Bo and NASA."),
            ["Ann Lee", "Bo", "Heron", "NASA"]
        );
        assert_eq!(named("Heron is old. We like Heron."), ["Heron"]);
        assert!(named("Wood is dear. Paint is not.").is_empty());
    }

    #[test]
    fn identifiers_are_found_as_written() {
        let found = nodes(
            "The type document:process takes task_id and gives a TaskType from core::verdict (see run_again()).",
        );
        let code: Vec<_> = found
            .iter()
            .filter(|(_, kind, _)| *kind == NodeKind::Code)
            .map(|(label, _, _)| label.as_str())
            .collect();
        assert_eq!(code, ["core::verdict", "document:process", "run_again", "task_id", "TaskType"]);
        assert!(!is_code("12:30") && !is_code("https://a.b/c_d") && !is_code("note:") && !is_code("e.g"));
    }

    #[test]
    fn terms_need_to_come_twice() {
        assert_eq!(nodes("wind and tide. strong wind."), [("wind".to_owned(), NodeKind::Term, 2)]);
    }

    #[test]
    fn a_word_that_is_mostly_small_is_a_term_and_parts_of_phrases_are_none() {
        let text = "The Pool of a pool is a pool. Old Gull and a pool meet Old Gull.";
        assert_eq!(
            nodes(text),
            [("pool".to_owned(), NodeKind::Term, 4), ("Old Gull".to_owned(), NodeKind::Name, 2)]
        );
    }

    #[test]
    fn edges_join_what_shares_a_sentence_and_count_the_sentences() {
        let graph =
            extract("The Heron meets the Tern. Then Heron and Tern race. The Heron wins; the Gull sleeps.");
        assert_eq!(graph.edges[0], Edge { from: "heron".into(), to: "tern".into(), weight: 2 });
        assert!(graph.edges.contains(&Edge { from: "gull".into(), to: "heron".into(), weight: 1 }));
        let terms: BTreeSet<_> = graph.nodes.iter().map(|node| node.term.as_str()).collect();
        assert!(
            graph
                .edges
                .iter()
                .all(|edge| terms.contains(edge.from.as_str()) && terms.contains(edge.to.as_str()))
        );
    }

    #[test]
    fn a_crowded_chunk_keeps_to_its_bounds() {
        let text: String =
            (0..400).map(|at| format!("Boat Name{at} meets name_{at} and thing{at} thing{at}. ")).collect();
        let graph = extract(&text);
        assert_eq!((graph.nodes.len(), graph.edges.len() <= EDGES_MAX), (NODES_MAX, true));
        assert_eq!(graph, extract(&text));
    }
}
