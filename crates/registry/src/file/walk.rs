//! Holds a parsed file against the key tables: everything that can be said of a value by itself.
//!
//! Invariant: every value that is not understood leaves a fault, and nothing stops the walk.

use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::kind::{Key, Kind, Noun, Table, Tagged};
use super::node::{Entry, Node, Span};
use super::{keys, text};
use crate::problem::Fault;
use crate::suggest::{list, nearest, quote};

type Value<'t> = Spanned<DeValue<'t>>;
type Name<'t> = Spanned<std::borrow::Cow<'t, str>>;

/// The walk, and the faults it met.
#[derive(Debug)]
struct Walk {
    faults: Vec<Fault>,
    /// Whether the whole file was parsed; of a part, nobody can say what it lacks.
    whole: bool,
}

/// What a value should be.
#[derive(Debug, Clone, Copy)]
struct Slot<'k> {
    key: &'k str,
    kind: Kind,
    /// What the key means; the help of last resort.
    doc: &'static str,
}

impl Slot<'_> {
    fn help(&self, cure: String) -> String {
        if cure.is_empty() { format!("{}: {}", quote(self.key), self.doc) } else { cure }
    }
}

/// The table that is being walked: how it is called, and where it begins.
#[derive(Debug, Clone)]
struct Place {
    path: String,
    span: Span,
}

impl Place {
    fn inside(&self, name: &Name<'_>, value: &Value<'_>) -> Self {
        Self { path: join(&self.path, name.get_ref()), span: value.span() }
    }

    fn shown(&self) -> String {
        if self.path.is_empty() {
            "at the top of the file".to_owned()
        } else {
            format!("in `[{}]`", self.path)
        }
    }
}

/// A dotted key with one more part, quoted where TOML wants it.
pub(crate) fn join(path: &str, name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let name = if bare { name.to_owned() } else { toml::Value::from(name).to_string() };
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

/// Walks a file, `whole` or what a parser could save of it.
pub(crate) fn file(found: &DeTable<'_>, whole: bool) -> (Vec<Entry>, Vec<Fault>) {
    let mut walk = Walk { faults: Vec::new(), whole };
    let entries = walk.table(&keys::ROOT, found, &Place { path: String::new(), span: 0..0 });
    (entries, walk.faults)
}

impl Walk {
    fn table(&mut self, table: &'static Table, found: &DeTable<'_>, place: &Place) -> Vec<Entry> {
        let entries = self.known(table, found.iter(), place);
        self.missing(table.keys(), found, place);
        entries
    }

    fn known<'a, 't: 'a>(
        &mut self,
        table: &'static Table,
        found: impl Iterator<Item = (&'a Name<'t>, &'a Value<'t>)>,
        place: &Place,
    ) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (name, value) in found {
            match table.key(name.get_ref()) {
                Some(key) => {
                    let slot = Slot { key: key.name, kind: key.kind, doc: key.doc };
                    entries.push(self.entry(slot, name, value, place));
                }
                None => self.unknown_key(table, name, place),
            }
        }
        entries
    }

    fn missing(&mut self, keys: impl Iterator<Item = &'static Key>, found: &DeTable<'_>, place: &Place) {
        for key in keys.filter(|key| self.whole && key.required && !found.contains_key(key.name)) {
            let message = format!("missing `{}` {}", key.name, place.shown());
            self.faults.push(Fault::new(&place.span, message).help(format!("`{}`: {}", key.name, key.doc)));
        }
    }

    fn unknown_key(&mut self, table: &Table, name: &Name<'_>, place: &Place) {
        let word: &str = name.get_ref();
        let moved = || keys::MISPLACED.iter().filter(|(title, ..)| *title == table.title);
        let known = || table.keys().map(|key| key.name);
        let near = nearest(word, known().chain(moved().map(|(_, key, _)| *key)));
        let message = match near {
            Some(near) if near != word => format!("unknown key {}, did you mean `{near}`?", quote(word)),
            _ => format!("unknown key {} {}", quote(word), place.shown()),
        };
        let moved_to = near.and_then(|near| moved().find(|(_, key, _)| *key == near));
        let help = match (moved_to, near.and_then(|near| table.key(near))) {
            (Some((.., where_it_is)), _) => (*where_it_is).to_owned(),
            (None, Some(key)) => format!("`{}`: {}", key.name, key.doc),
            (None, None) => elsewhere(word).unwrap_or_else(|| format!("known keys: {}", list(known()))),
        };
        self.faults.push(Fault::new(&name.span(), message).help(help));
    }

    fn entry(&mut self, slot: Slot<'_>, name: &Name<'_>, value: &Value<'_>, place: &Place) -> Entry {
        let node = self.value(slot, value, &place.inside(name, value));
        Entry { name: Arc::from(&**name.get_ref()), name_span: name.span(), node, span: value.span() }
    }

    fn value(&mut self, slot: Slot<'_>, value: &Value<'_>, place: &Place) -> Node {
        match (slot.kind, value.get_ref()) {
            (Kind::Table(table), DeValue::Table(found)) => Node::Table(self.table(table, found, place)),
            (Kind::Tagged(tagged), DeValue::Table(found)) => self.tagged(tagged, found, place),
            (Kind::Map(noun, kind), DeValue::Table(found)) => {
                Node::Table(self.map(noun, Slot { kind: *kind, ..slot }, found, place))
            }
            (Kind::Words(_) | Kind::Paths(_) | Kind::Durations { .. }, DeValue::Array(items)) => {
                self.items(slot, items, value)
            }
            // One path may stand without brackets.
            (Kind::Paths(_), DeValue::String(_)) => {
                Node::List(vec![(self.scalar(slot, value), value.span())])
            }
            (Kind::Words(_) | Kind::Durations { .. }, DeValue::String(_)) => self.mismatch(slot, value),
            _ => self.scalar(slot, value),
        }
    }

    fn scalar(&mut self, slot: Slot<'_>, value: &Value<'_>) -> Node {
        let node = match (slot.kind, value.get_ref()) {
            (Kind::Bool, DeValue::Boolean(value)) => Some(Node::Bool(*value)),
            (Kind::Integer { min, max, .. }, DeValue::Integer(number)) => {
                let number = u64::from_str_radix(number.as_str(), number.radix()).ok();
                number.filter(|n| (min..=max).contains(n)).map(Node::Integer)
            }
            (Kind::Number { min, max }, DeValue::Integer(number)) => {
                let number = u32::from_str_radix(number.as_str(), number.radix()).ok().map(f64::from);
                number.filter(|n| (min..=max).contains(n)).map(Node::Number)
            }
            (Kind::Number { min, max }, DeValue::Float(number)) => {
                let number = number.as_str().parse::<f64>().ok();
                number.filter(|n| (min..=max).contains(n)).map(Node::Number)
            }
            (_, DeValue::String(found)) => match text::read(slot.key, slot.kind, found) {
                Ok(node) => Some(node),
                Err((message, cure)) => {
                    self.faults.push(Fault::new(&value.span(), message).help(slot.help(cure)));
                    return Node::Bad;
                }
            },
            _ => None,
        };
        node.unwrap_or_else(|| self.mismatch(slot, value))
    }

    fn mismatch(&mut self, slot: Slot<'_>, value: &Value<'_>) -> Node {
        let (expected, found) = (slot.kind.expected(), describe(value.get_ref()));
        let message = format!("expected {expected} for {}, found {found}", quote(slot.key));
        self.faults.push(Fault::new(&value.span(), message).help(slot.help(slot.kind.cure())));
        Node::Bad
    }

    /// A list of words, paths or durations; nothing may stand in it twice, except a duration.
    fn items(&mut self, slot: Slot<'_>, items: &[Value<'_>], list: &Value<'_>) -> Node {
        let mut nodes: Vec<(Node, Span)> = Vec::new();
        for item in items {
            let node =
                if item.get_ref().is_str() { self.scalar(slot, item) } else { self.mismatch(slot, item) };
            let shown = node.to_string();
            let twice =
                nodes.iter().find(|(other, _)| !matches!(other, Node::Bad) && other.to_string() == shown);
            match twice {
                Some((_, first)) if !matches!(slot.kind, Kind::Durations { .. }) => {
                    let message = format!("{} stands twice in {}", quote(&shown), quote(slot.key));
                    let fault = Fault::new(&item.span(), message).related(first, "here already");
                    self.faults.push(fault.help("remove one of them"));
                }
                _ => nodes.push((node, item.span())),
            }
        }
        match slot.kind {
            Kind::Durations { most } if nodes.is_empty() || nodes.len() > most => self.mismatch(slot, list),
            _ => Node::List(nodes),
        }
    }

    fn map(&mut self, noun: Noun, slot: Slot<'_>, found: &DeTable<'_>, place: &Place) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (name, value) in found {
            let entry = self.entry(Slot { key: name.get_ref(), ..slot }, name, value, place);
            let Err((message, cure)) = text::name(noun, name.get_ref()) else {
                entries.push(entry);
                continue;
            };
            self.faults.push(Fault::new(&name.span(), message).help(cure));
            if matches!(slot.kind, Kind::Table(_) | Kind::Tagged(_)) {
                entries.push(Entry { node: Node::Bad, ..entry });
            }
        }
        entries
    }

    fn tagged(&mut self, tagged: &'static Tagged, found: &DeTable<'_>, place: &Place) -> Node {
        let tag = &tagged.tag;
        let Some((name, value)) = found.iter().find(|(name, _)| *name.get_ref() == tag.name) else {
            self.missing(std::iter::once(tag), found, place);
            return Node::Bad;
        };
        let slot = Slot { key: tag.name, kind: tag.kind, doc: tag.doc };
        let tag_entry = self.entry(slot, name, value, place);
        let Node::Word(word) = tag_entry.node else { return Node::Bad };
        let table = tagged.variant(word).expect("every word of a tag has its table; a test compares them");
        let mut entries = vec![tag_entry];
        let rest = found.iter().filter(|(name, _)| *name.get_ref() != tag.name);
        entries.extend(self.known(table, rest, place));
        self.missing(table.keys(), found, place);
        Node::Table(entries)
    }
}

/// Where a key is known, when not here.
fn elsewhere(word: &str) -> Option<String> {
    let titles = all_tables().into_iter().filter(|table| table.key(word).is_some()).map(|table| table.title);
    let titles: Vec<&str> = titles.collect();
    (!titles.is_empty()).then(|| format!("`{word}` is a key of {}", list(titles.iter().copied())))
}

/// Every table of the file.
pub(crate) fn all_tables() -> Vec<&'static Table> {
    fn of_kind(kind: Kind, tables: &mut Vec<&'static Table>) {
        match kind {
            Kind::Table(table) => of_table(table, tables),
            Kind::Tagged(tagged) => tagged.variants.iter().for_each(|(_, table)| of_table(table, tables)),
            Kind::Map(_, kind) => of_kind(*kind, tables),
            _ => {}
        }
    }
    fn of_table(table: &'static Table, tables: &mut Vec<&'static Table>) {
        tables.push(table);
        table.keys().for_each(|key| of_kind(key.kind, tables));
    }
    let mut tables = Vec::new();
    of_table(&keys::ROOT, &mut tables);
    tables
}

/// What was found, for a message.
fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text {}", quote(text)),
        DeValue::Integer(number) => quote(&number.to_string()),
        DeValue::Float(number) => quote(&number.to_string()),
        DeValue::Boolean(value) => format!("`{value}`"),
        DeValue::Datetime(value) => format!("the date `{value}`"),
        DeValue::Array(items) if items.is_empty() => "an empty list".to_owned(),
        DeValue::Array(items) => format!("a list of {}", items.len()),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::node;

    #[test]
    fn every_default_is_a_value_that_its_key_accepts() {
        let keys = all_tables().into_iter().flat_map(Table::keys).filter(|key| key.default.is_some());
        let mut checked = 0;
        for key in keys {
            let shown = node::default(key).unwrap().to_string();
            let text = match key.kind {
                Kind::Bool | Kind::Integer { .. } | Kind::Number { .. } => shown,
                Kind::Words(_) => format!(
                    "[{}]",
                    shown
                        .trim_matches(['[', ']'])
                        .split(", ")
                        .map(|w| format!("{w:?}"))
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
                _ => format!("{shown:?}"),
            };
            let mut walk = Walk { faults: Vec::new(), whole: true };
            let source = format!("x = {text}");
            let file = DeTable::parse(&source).unwrap();
            let (name, value) = file.get_ref().iter().next().unwrap();
            let slot = Slot { key: key.name, kind: key.kind, doc: key.doc };
            walk.value(slot, value, &Place { path: name.get_ref().to_string(), span: 0..0 });
            assert!(walk.faults.is_empty(), "{}: {:?}", key.name, walk.faults);
            checked += 1;
        }
        assert!(checked > 20, "only {checked} defaults were found");
    }

    #[test]
    fn every_word_of_a_tag_has_its_table() {
        let Kind::Word(words) = keys::RETRY.tag.kind else { panic!("the tag is a word") };
        let words: Vec<&str> = words.iter().map(|word| word.text).collect();
        let variants: Vec<&str> = keys::RETRY.variants.iter().map(|(word, _)| *word).collect();
        assert_eq!(words, variants);
    }
}
