//! How documents hang together: the terms they share, the documents near them, who links to whom.

use std::collections::{BTreeMap, BTreeSet};

use crate::Kind;
use crate::id::{DocumentId, SourceId};
use crate::stage::graph::NodeKind;

/// Terms of one document that count.
const TERMS_PER_DOCUMENT_MAX: usize = 40;
/// Pages of terms.
const TERM_PAGES_MAX: usize = 200;
/// Documents that must share a term before it has a page.
const SHARING_MIN: usize = 2;
/// Documents that are named as near.
const RELATED_MAX: usize = 5;
/// A term that more documents share brings no two of them near.
const TELLING_MAX: usize = 200;

/// What the atlas wants to know of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The document.
    pub id: DocumentId,
    /// The folder it came from; links stay inside it.
    pub source: SourceId,
    /// Below the folder.
    pub path: String,
    /// Its kind.
    pub kind: Kind,
    /// Its title.
    pub title: String,
    /// Terms of its graph, with the times they come in the whole document.
    pub mentions: Vec<Mention>,
    /// Paths that its links and pictures lead to, resolved.
    pub targets: Vec<String>,
}

/// A term in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// In lower case.
    pub term: String,
    /// As written.
    pub label: String,
    /// Name, code or term.
    pub kind: NodeKind,
    /// Times in the document.
    pub count: u32,
}

/// A term that has a page.
#[derive(Debug, Default)]
pub(super) struct Topic {
    pub(super) label: String,
    /// Places of entries and the times it comes there, the most first.
    pub(super) places: Vec<(usize, u32)>,
}

/// All documents of a wiki and what joins them.
#[derive(Debug, Default)]
pub struct Atlas {
    pub(super) entries: Vec<Entry>,
    by_id: BTreeMap<DocumentId, usize>,
    topics: BTreeMap<String, Topic>,
    /// Terms with a page, for each entry, the weightiest first.
    terms: Vec<Vec<String>>,
    leads_to: Vec<BTreeSet<usize>>,
    led_from: Vec<BTreeSet<usize>>,
}

impl Atlas {
    /// From the documents in any order.
    #[must_use]
    pub fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by(|a, b| (&a.source, &a.path).cmp(&(&b.source, &b.path)));
        for entry in &mut entries {
            entry.mentions.sort_by(|a, b| weight(b).cmp(&weight(a)).then(a.term.cmp(&b.term)));
            entry.mentions.truncate(TERMS_PER_DOCUMENT_MAX);
        }
        let topics = topics(&entries);
        let own = |entry: &Entry| {
            let terms = entry.mentions.iter().map(|mention| mention.term.clone());
            terms.filter(|term| topics.contains_key(term)).collect()
        };
        let terms = entries.iter().map(own).collect();
        let by_id = entries.iter().enumerate().map(|(at, entry)| (entry.id.clone(), at)).collect();
        let leads_to = leads(&entries);
        let mut led_from = vec![BTreeSet::new(); entries.len()];
        for (from, targets) in leads_to.iter().enumerate() {
            for to in targets {
                led_from[*to].insert(from);
            }
        }
        Self { entries, by_id, topics, terms, leads_to, led_from }
    }

    /// The terms that have a page, in order.
    pub fn terms(&self) -> impl Iterator<Item = &str> {
        self.topics.keys().map(String::as_str)
    }

    /// The documents, by folder and path.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(super) fn place(&self, id: &DocumentId) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    pub(super) fn topic(&self, term: &str) -> Option<&Topic> {
        self.topics.get(term)
    }

    pub(super) fn terms_of(&self, place: usize) -> &[String] {
        &self.terms[place]
    }

    pub(super) fn leads_to(&self, place: usize) -> &BTreeSet<usize> {
        &self.leads_to[place]
    }

    pub(super) fn led_from(&self, place: usize) -> &BTreeSet<usize> {
        &self.led_from[place]
    }

    /// The nearest documents and the terms they share. A term counts the less the more documents have it.
    pub(super) fn related(&self, place: usize) -> Vec<(usize, Vec<&str>)> {
        let mut near: BTreeMap<usize, (usize, Vec<&str>)> = BTreeMap::new();
        for term in &self.terms[place] {
            let places = &self.topics[term].places;
            if places.len() > TELLING_MAX {
                continue;
            }
            for (other, _) in places.iter().filter(|(other, _)| *other != place) {
                let (score, shared) = near.entry(*other).or_default();
                *score += 1_000 / places.len();
                shared.push(term);
            }
        }
        let mut ranked: Vec<_> = near.into_iter().collect();
        ranked.sort_by(|(a, (one, _)), (b, (other, _))| other.cmp(one).then(a.cmp(b)));
        ranked.into_iter().take(RELATED_MAX).map(|(other, (_, shared))| (other, shared)).collect()
    }
}

/// A name or identifier says more than a plain word.
fn weight(mention: &Mention) -> u32 {
    if mention.kind == NodeKind::Term { mention.count } else { mention.count.saturating_mul(2) }
}

fn topics(entries: &[Entry]) -> BTreeMap<String, Topic> {
    let mut all: BTreeMap<&str, Topic> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate() {
        for mention in &entry.mentions {
            let topic = all.entry(&mention.term).or_default();
            // Written as where it comes most.
            if topic.places.iter().all(|(_, count)| *count < mention.count) {
                topic.label.clone_from(&mention.label);
            }
            topic.places.push((at, mention.count));
        }
    }
    let mut shared: Vec<(&str, Topic)> =
        all.into_iter().filter(|(_, topic)| topic.places.len() >= SHARING_MIN).collect();
    let times = |topic: &Topic| topic.places.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
    shared.sort_by_key(|(term, topic)| (std::cmp::Reverse((topic.places.len(), times(topic))), *term));
    shared.truncate(TERM_PAGES_MAX);
    let ranked = |mut topic: Topic| {
        topic.places.sort_by_key(|(at, count)| (std::cmp::Reverse(*count), *at));
        topic
    };
    shared.into_iter().map(|(term, topic)| (term.to_owned(), ranked(topic))).collect()
}

/// Which entries each entry points to.
fn leads(entries: &[Entry]) -> Vec<BTreeSet<usize>> {
    let by_path: BTreeMap<(&SourceId, &str), usize> =
        entries.iter().enumerate().map(|(at, entry)| ((&entry.source, entry.path.as_str()), at)).collect();
    let targets = |(at, entry): (usize, &Entry)| {
        let found = entry.targets.iter().filter_map(|target| by_path.get(&(&entry.source, target.as_str())));
        found.copied().filter(|other| *other != at).collect()
    };
    entries.iter().enumerate().map(targets).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &str, terms: &[(&str, u32)], targets: &[&str]) -> Entry {
        let source = SourceId::from("s".to_owned());
        let mention = |(term, count): &(&str, u32)| Mention {
            term: (*term).to_owned(),
            label: term.to_uppercase(),
            kind: NodeKind::Term,
            count: *count,
        };
        Entry {
            id: DocumentId::of(&source, path),
            source,
            path: path.to_owned(),
            kind: Kind::Markdown,
            title: path.to_owned(),
            mentions: terms.iter().map(mention).collect(),
            targets: targets.iter().map(|&target| target.to_owned()).collect(),
        }
    }

    fn yard() -> Vec<Entry> {
        vec![
            entry("c.md", &[("boat", 1), ("wind", 9)], &["a.md", "gone.md", "c.md"]),
            entry("a.md", &[("boat", 4), ("tide", 2), ("oak", 1)], &[]),
            entry("b.md", &[("boat", 2), ("tide", 1)], &["a.md"]),
        ]
    }

    #[test]
    fn shared_terms_become_topics_and_bring_documents_near() {
        let atlas = Atlas::new(yard());
        assert_eq!(atlas.terms().collect::<Vec<_>>(), ["boat", "tide"]);
        assert_eq!(atlas.topic("boat").expect("a topic").places, [(0, 4), (1, 2), (2, 1)]);
        assert_eq!(atlas.related(0), [(1, vec!["boat", "tide"]), (2, vec!["boat"])]);
    }

    #[test]
    fn links_are_known_from_both_ends() {
        let atlas = Atlas::new(yard());
        assert_eq!(atlas.leads_to(2).iter().copied().collect::<Vec<_>>(), [0]);
        assert_eq!(atlas.led_from(0).iter().copied().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn the_order_of_arrival_changes_nothing() {
        let mut turned = yard();
        turned.reverse();
        turned.iter_mut().for_each(|entry| entry.mentions.reverse());
        assert_eq!(format!("{:?}", Atlas::new(turned)), format!("{:?}", Atlas::new(yard())));
    }

    #[test]
    fn there_are_no_more_topics_than_pages() {
        let terms: Vec<String> = (0..300).map(|at| format!("term{at}")).collect();
        let entries: Vec<Entry> = (0..20)
            .flat_map(|part| ["x", "y"].map(|side| (part, side)))
            .map(|(part, side)| {
                let own: Vec<(&str, u32)> =
                    terms[part * 15..(part + 1) * 15].iter().map(|term| (term.as_str(), 1)).collect();
                entry(&format!("{side}{part}.md"), &own, &[])
            })
            .collect();
        assert_eq!(Atlas::new(entries).terms().count(), TERM_PAGES_MAX);
    }
}
