//! What a value may be: the alphabet in which `keys` describes the file.

use std::time::Duration;

use crate::path::Use;
use crate::size;
use crate::suggest;
use crate::words::Word;
use crate::{duration, schedule, template};

/// A table of the file.
#[derive(Debug)]
pub(crate) struct Table {
    /// How it is written: `[pools.NAME]`.
    pub(crate) title: &'static str,
    /// What it is for.
    pub(crate) doc: &'static str,
    /// Its own keys.
    pub(crate) own: &'static [Key],
    /// Keys that it shares with the table of its defaults.
    pub(crate) shared: &'static [Key],
}

impl Table {
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static Key> {
        self.own.iter().chain(self.shared)
    }

    pub(crate) fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys().find(|key| key.name == name)
    }
}

/// One key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// What holds when the key is absent; the only place where it is written down.
    pub(crate) default: Option<Literal>,
    pub(crate) required: bool,
    /// What it means, in a sentence or two.
    pub(crate) doc: &'static str,
}

impl Key {
    pub(crate) const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, default: None, required: false, doc }
    }

    pub(crate) const fn or(mut self, default: Literal) -> Self {
        self.default = Some(default);
        self
    }

    pub(crate) const fn required(mut self) -> Self {
        self.required = true;
        self
    }
}

/// A default.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Literal {
    Text(&'static str),
    Integer(u64),
    Number(f64),
    Bool(bool),
    Words(&'static [&'static str]),
}

/// What a name in the file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noun {
    Pool,
    Queue,
    Retry,
    Type,
    Subject,
    Scope,
    Class,
}

impl Noun {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Pool => "pool",
            Self::Queue => "queue",
            Self::Retry => "retry policy",
            Self::Type => "task type",
            Self::Subject => "subject kind",
            Self::Scope => "scope kind",
            Self::Class => "error class",
        }
    }
}

/// A table whose keys depend on the word under its tag.
#[derive(Debug)]
pub(crate) struct Tagged {
    pub(crate) tag: Key,
    pub(crate) variants: &'static [(&'static str, Table)],
}

impl Tagged {
    /// The keys that go with a word.
    pub(crate) fn variant(&'static self, word: &str) -> Option<&'static Table> {
        self.variants.iter().find(|(variant, _)| *variant == word).map(|(_, table)| table)
    }
}

/// The kinds of values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Bool,
    /// `noun` says what is counted: `an integer`, `a weight`.
    Integer {
        noun: &'static str,
        min: u64,
        max: u64,
    },
    Number {
        min: f64,
        max: f64,
    },
    /// From `min` to `max`; `zero` says what `0s` means where it is allowed.
    Duration {
        zero: Option<&'static str>,
        min: Duration,
        max: Duration,
    },
    /// At least one and at most so many durations.
    Durations {
        most: usize,
    },
    Size,
    /// Text for people.
    Label,
    /// The key of a setting.
    Setting,
    /// The name of an environment variable.
    Variable,
    /// A new name.
    Name(Noun),
    /// The name of something that the file declares elsewhere.
    Reference(Noun),
    Word(&'static [Word]),
    Words(&'static [Word]),
    Path(Use),
    /// One path or a list of them.
    Paths(Use),
    Template,
    Schedule,
    /// Names of one's own, each with a value.
    Map(Noun, &'static Kind),
    Table(&'static Table),
    Tagged(&'static Tagged),
}

impl Kind {
    /// What was expected, for a message.
    pub(crate) fn expected(&self) -> String {
        match self {
            Self::Bool => "`true` or `false`".to_owned(),
            Self::Integer { noun, min, max } if min == max => format!("{noun} {min}"),
            Self::Integer { noun, min, max } => format!("{noun} from {min} to {max}"),
            Self::Number { min, max } => format!("a number from {min} to {max}"),
            Self::Duration { .. } => "a duration such as `\"90s\"`".to_owned(),
            Self::Durations { most } => {
                format!("a list of 1 to {most} durations such as `[\"30s\", \"2m\"]`")
            }
            Self::Size => "a size such as `\"1MiB\"`".to_owned(),
            Self::Label => "a text".to_owned(),
            Self::Setting => "the key of a setting (a text)".to_owned(),
            Self::Variable => "the name of an environment variable (a text)".to_owned(),
            Self::Name(noun) => format!("a {} name (a text)", noun.as_str()),
            Self::Reference(noun) => format!("the name of a {} (a text)", noun.as_str()),
            Self::Word(words) => format!("one of {}", suggest::list(words.iter().map(|word| word.text))),
            Self::Words(words) => {
                format!("a list of words out of {}", suggest::list(words.iter().map(|word| word.text)))
            }
            Self::Path(_) => "a payload path (a text)".to_owned(),
            Self::Paths(_) => "a payload path or a list of them".to_owned(),
            Self::Template => "an id template (a text)".to_owned(),
            Self::Schedule => "a cron text".to_owned(),
            Self::Map(noun, _) => format!("a table of {} names", noun.as_str()),
            Self::Table(_) | Self::Tagged(_) => "a table".to_owned(),
        }
    }

    /// How such a value is written, for a help line; empty when `expected` has said it all.
    pub(crate) fn cure(&self) -> String {
        match self {
            Self::Duration { .. } | Self::Durations { .. } => duration::CURE.to_owned(),
            Self::Size => size::CURE.to_owned(),
            Self::Template => template::CURE.to_owned(),
            Self::Schedule => schedule::CURE.to_owned(),
            Self::Word(words) | Self::Words(words) => meanings(words),
            Self::Table(table) => {
                format!("its keys: {}", suggest::list(table.keys().map(|key| key.name)))
            }
            Self::Map(_, Kind::Integer { .. }) => "for example `{ default = 1, urgent = 3 }`".to_owned(),
            _ => String::new(),
        }
    }

    /// The range of a duration, for a message.
    pub(crate) fn duration_range(zero: Option<&str>, min: Duration, max: Duration) -> String {
        let zero = zero.map_or_else(String::new, |meaning| format!(", or 0s ({meaning})"));
        format!("from {} to {}{zero}", duration::show(min), duration::show(max))
    }
}

/// Every word with what it means.
pub(crate) fn meanings(words: &[Word]) -> String {
    let each = words.iter().map(|word| format!("`{}`:{}", word.text, word.doc.trim_end_matches('.')));
    each.collect::<Vec<_>>().join("; ")
}
