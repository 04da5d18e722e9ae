//! Reads values by key: the file's, else those of a table of defaults, else the built-in ones.
//!
//! Invariant: every value that is read becomes a row of the report, with where it came from.

use std::cell::RefCell;

use super::kind::{Kind, Table};
use super::node::{self, Entry, FromNode, Node, Span};
use super::walk::join;
use crate::problem::{Fault, Lines, Warning};
use crate::report::Row;
use crate::resolve::{Loader, Origin};

/// What is being learned from one file.
pub(crate) struct Session<'s> {
    /// The file's name, for messages.
    pub(crate) name: &'s str,
    pub(crate) lines: &'s Lines<'s>,
    pub(crate) loader: &'s Loader<'s>,
    faults: RefCell<Vec<Fault>>,
    warnings: RefCell<Vec<Warning>>,
    rows: RefCell<Vec<Row>>,
}

impl<'s> Session<'s> {
    pub(crate) fn new(
        name: &'s str,
        lines: &'s Lines<'s>,
        loader: &'s Loader<'s>,
        faults: Vec<Fault>,
    ) -> Self {
        Self {
            name,
            lines,
            loader,
            faults: RefCell::new(faults),
            warnings: RefCell::default(),
            rows: RefCell::default(),
        }
    }

    pub(crate) fn fault(&self, fault: Fault) {
        self.faults.borrow_mut().push(fault);
    }

    pub(crate) fn warn(&self, message: String) {
        self.warnings.borrow_mut().push(Warning { message });
    }

    /// Writes a row; a value that overrides the one just written replaces its row.
    pub(crate) fn row(&self, path: String, value: String, origin: &Origin) {
        let mut rows = self.rows.borrow_mut();
        if rows.last().is_some_and(|last| last.path == path) {
            rows.pop();
        }
        rows.push(Row { path, value, origin: origin.clone() });
    }

    /// Where a place of the file is.
    pub(crate) fn origin(&self, span: &Span) -> Origin {
        Origin::File { line: self.lines.line(span.start) }
    }

    pub(crate) fn finish(self) -> (Vec<Fault>, Vec<Warning>, Vec<Row>) {
        (self.faults.into_inner(), self.warnings.into_inner(), self.rows.into_inner())
    }
}

/// A value, and where it came from.
#[derive(Debug, Clone)]
pub(crate) struct Got<T> {
    pub(crate) value: T,
    pub(crate) origin: Origin,
    /// Where it stands; the table's header when it does not.
    pub(crate) span: Span,
    /// Its path in the report.
    pub(crate) path: String,
}

/// One table of the file, as its checks read it.
#[derive(Clone)]
pub(crate) struct View<'v> {
    pub(crate) session: &'v Session<'v>,
    table: &'static Table,
    entries: &'v [Entry],
    /// Where its header stands.
    pub(crate) span: Span,
    pub(crate) path: String,
    below: Option<&'v View<'v>>,
}

impl<'v> View<'v> {
    pub(crate) fn new(session: &'v Session<'v>, table: &'static Table, entries: &'v [Entry]) -> Self {
        Self { session, table, entries, span: 0..0, path: String::new(), below: None }
    }

    /// The same table, with another below it for what it does not say.
    pub(crate) fn over(self, below: &'v Self) -> Self {
        Self { below: Some(below), ..self }
    }

    /// The table under a key; empty when the file has none or it was refused.
    pub(crate) fn table(&self, name: &str) -> View<'v> {
        let Some(Kind::Table(table)) = self.table.key(name).map(|key| key.kind) else {
            unreachable!("`{name}` holds no table in {}", self.table.title)
        };
        let (entries, span): (&[Entry], Span) = match self.own(name) {
            Some(Entry { node: Node::Table(entries), span, .. }) => (entries, span.clone()),
            _ => (&[], self.span.clone()),
        };
        View { session: self.session, table, entries, span, path: join(&self.path, name), below: None }
    }

    /// The tables under a key that holds a map of tables, with their names; those that were refused are left out.
    pub(crate) fn children(&self, name: &str) -> Vec<(&'v Entry, View<'v>)> {
        let Some(Kind::Map(_, kind)) = self.table.key(name).map(|key| key.kind) else {
            unreachable!("`{name}` holds no map in {}", self.table.title)
        };
        let path = join(&self.path, name);
        let child = |entry: &'v Entry| {
            let Node::Table(entries) = &entry.node else { return None };
            let table = match kind {
                Kind::Table(table) => *table,
                Kind::Tagged(tagged) => tagged.variant(word_of(entries, tagged.tag.name)?)?,
                _ => unreachable!("`{name}` holds no tables in {}", self.table.title),
            };
            let (span, path) = (entry.span.clone(), join(&path, &entry.name));
            Some((entry, View { session: self.session, table, entries, span, path, below: None }))
        };
        self.entries(name).iter().filter_map(child).collect()
    }

    /// The table that the file does not have under such a key: all defaults.
    pub(crate) fn absent_child(&self, name: &str, child: &str) -> View<'v> {
        let Some(Kind::Map(_, Kind::Table(table))) = self.table.key(name).map(|key| key.kind) else {
            unreachable!("`{name}` holds no map of tables in {}", self.table.title)
        };
        let path = join(&join(&self.path, name), child);
        View { session: self.session, table, entries: &[], span: self.span.clone(), path, below: None }
    }

    /// The word under a tag, which is no key of the table that it chose.
    pub(crate) fn tag<T: FromNode>(&self, name: &str) -> Option<T> {
        let entry = self.own(name)?;
        self.row(name, entry.node.to_string(), Some(&entry.span));
        T::from_node(&entry.node)
    }

    /// The named entries under a key that holds a map. Its row is written by the caller, who knows what they mean.
    pub(crate) fn entries(&self, name: &str) -> &'v [Entry] {
        debug_assert!(self.table.key(name).is_some(), "`{name}` is no key of {}", self.table.title);
        match self.own(name).map(|entry| &entry.node) {
            Some(Node::Table(entries)) => entries,
            _ => &[],
        }
    }

    /// The entry of this very table.
    pub(crate) fn own(&self, name: &str) -> Option<&'v Entry> {
        self.entries.iter().find(|entry| &*entry.name == name)
    }

    /// The elements of a list in this very table, with their places; those of its defaults are read from them.
    pub(crate) fn list<T: FromNode>(&self, name: &str) -> Vec<(T, Span)> {
        debug_assert!(self.table.key(name).is_some(), "`{name}` is no key of {}", self.table.title);
        match self.own(name).map(|entry| &entry.node) {
            Some(Node::List(items)) => {
                items.iter().filter_map(|(node, span)| Some((T::from_node(node)?, span.clone()))).collect()
            }
            _ => Vec::new(),
        }
    }

    fn find(&self, name: &str) -> Option<&'v Entry> {
        self.own(name).or_else(|| self.below.and_then(|below| below.find(name)))
    }

    /// A value that may be absent.
    pub(crate) fn option<T: FromNode>(&self, name: &str) -> Option<Got<T>> {
        let key = self
            .table
            .key(name)
            .expect("checks read keys that the tables have; every check runs in every test");
        let path = join(&self.path, name);
        let built_in;
        let (node, origin, span) = match self.find(name) {
            Some(Entry { node: Node::Bad, .. }) | None => {
                built_in = node::default(key)?;
                (&built_in, Origin::Default, self.span.clone())
            }
            Some(entry) => (&entry.node, self.session.origin(&entry.span), entry.span.clone()),
        };
        let value = T::from_node(node)?;
        self.session.row(path.clone(), node.to_string(), &origin);
        Some(Got { value, origin, span, path })
    }

    /// A value that has a default.
    pub(crate) fn value<T: FromNode>(&self, name: &str) -> Got<T> {
        self.option(name)
            .expect("a key that is read this way has a default in the tables; every check runs in every test")
    }

    /// A row for something that is no plain value.
    pub(crate) fn row(&self, name: &str, value: String, span: Option<&Span>) {
        let origin = span.map_or(Origin::Default, |span| self.session.origin(span));
        self.session.row(join(&self.path, name), value, &origin);
    }

    pub(crate) fn fault(&self, fault: Fault) {
        self.session.fault(fault);
    }
}

fn word_of(entries: &[Entry], name: &str) -> Option<&'static str> {
    entries.iter().find(|entry| &*entry.name == name).and_then(|entry| match entry.node {
        Node::Word(word) => Some(word),
        _ => None,
    })
}
