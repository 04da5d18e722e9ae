//! A value of the file that was understood, and how it turns into a Rust value.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::kind::Key;
use crate::path::Path;
use crate::schedule::Schedule;
use crate::template::Template;
use crate::words::{Borrow, CancelBy, OnExhausted, Producers, RetryKind, Vocabulary};
use crate::{duration, size};

/// Where something stands, in bytes.
pub(crate) type Span = Range<usize>;

/// One key and its value.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Arc<str>,
    pub(crate) name_span: Span,
    pub(crate) node: Node,
    pub(crate) span: Span,
}

/// A checked value.
#[derive(Debug)]
pub(crate) enum Node {
    /// Something that was refused; its problem is already written down.
    Bad,
    Bool(bool),
    Integer(u64),
    Number(f64),
    Duration(Duration),
    Size(usize),
    Text(Arc<str>),
    Word(&'static str),
    Path(Path),
    Template(Template),
    Schedule(Schedule),
    List(Vec<(Node, Span)>),
    Table(Vec<Entry>),
}

/// As TOML would write it.
impl std::fmt::Display for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bad => f.write_str("?"),
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Duration(value) => f.write_str(&duration::show(*value)),
            Self::Size(value) => f.write_str(&size::show(*value)),
            Self::Text(value) => f.write_str(value),
            Self::Word(value) => f.write_str(value),
            Self::Path(value) => value.fmt(f),
            Self::Template(value) => value.fmt(f),
            Self::Schedule(value) => value.fmt(f),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(|(node, _)| node.to_string()).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Self::Table(entries) => {
                let entries: Vec<String> =
                    entries.iter().map(|entry| format!("{} = {}", entry.name, entry.node)).collect();
                write!(f, "{{ {} }}", entries.join(", "))
            }
        }
    }
}

/// A Rust value that a node may hold.
pub(crate) trait FromNode: Sized {
    /// None when the node is bad; the kind of its key rules out every other mismatch.
    fn from_node(node: &Node) -> Option<Self>;
}

macro_rules! from_node {
    ($($type:ty: $pattern:pat => $value:expr,)+) => {
        $(impl FromNode for $type {
            fn from_node(node: &Node) -> Option<Self> {
                match node { $pattern => $value, _ => None }
            }
        })+
    };
}

from_node! {
    bool: Node::Bool(value) => Some(*value),
    u32: Node::Integer(value) => u32::try_from(*value).ok(),
    usize: Node::Integer(value) => usize::try_from(*value).ok(),
    f64: Node::Number(value) => Some(*value),
    Duration: Node::Duration(value) => Some(*value),
    Size: Node::Size(value) => Some(Size(*value)),
    Arc<str>: Node::Text(value) => Some(value.clone()),
    Path: Node::Path(value) => Some(value.clone()),
    Template: Node::Template(value) => Some(value.clone()),
    Schedule: Node::Schedule(value) => Some(value.clone()),
    Borrow: Node::Word(word) => Self::from_word(word),
    Producers: Node::Word(word) => Self::from_word(word),
    OnExhausted: Node::Word(word) => Self::from_word(word),
    CancelBy: Node::Word(word) => Self::from_word(word),
    RetryKind: Node::Word(word) => Self::from_word(word),
    poolwright_core::OnCancel: Node::Word(word) => Self::from_word(word),
    poolwright_core::OnConflict: Node::Word(word) => Self::from_word(word),
}

/// Bytes; a type of its own because a size and a count are written differently.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size(pub(crate) usize);

/// What could be read of a list.
impl<T: FromNode> FromNode for Vec<T> {
    fn from_node(node: &Node) -> Option<Self> {
        match node {
            Node::List(items) => Some(items.iter().filter_map(|(node, _)| T::from_node(node)).collect()),
            _ => None,
        }
    }
}

/// The default of a key as a node.
pub(crate) fn default(key: &Key) -> Option<Node> {
    use super::kind::Literal;
    let node = match key.default? {
        Literal::Bool(value) => Node::Bool(value),
        Literal::Integer(value) => Node::Integer(value),
        Literal::Number(value) => Node::Number(value),
        Literal::Text(text) => super::text::read(key.name, key.kind, text)
            .expect("a default in the key tables is valid; a test reads each"),
        Literal::Words(words) => Node::List(words.iter().map(|word| (Node::Word(word), 0..0)).collect()),
    };
    Some(node)
}
