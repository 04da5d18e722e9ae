//! Reads the values that the file writes as text: durations, sizes, names, words, paths, templates, schedules.

use poolwright_core::{Class, NameError, PoolName, QueueName, TypeName};

use super::kind::{Kind, Noun};
use super::node::Node;
use crate::path::{Path, Use};
use crate::suggest::{did_you_mean, list, quote};
use crate::template::Template;
use crate::words::Word;
use crate::{duration, size};

/// A message and, where there is one, its cure.
pub(crate) type Refusal = (String, String);

/// The longest text for people, in bytes.
const LABEL_BYTES_MAX: usize = 1_000;

/// Reads the text under `key`.
pub(crate) fn read(key: &str, kind: Kind, text: &str) -> Result<Node, Refusal> {
    let refused = |noun: &str, why: String| (format!("{} is no {noun}: {why}", quote(text)), kind.cure());
    match kind {
        Kind::Duration { zero, min, max } => {
            let value = duration::parse(text).map_err(|why| refused("duration", why.to_string()))?;
            if (min..=max).contains(&value) || (value.is_zero() && zero.is_some()) {
                return Ok(Node::Duration(value));
            }
            let range = Kind::duration_range(zero, min, max);
            Err((
                format!("expected a duration {range} for {}, found {}", quote(key), quote(text)),
                String::new(),
            ))
        }
        Kind::Durations { .. } => read(
            key,
            Kind::Duration {
                zero: None,
                min: std::time::Duration::from_millis(1),
                max: poolwright_core::retry::DELAY_MAX,
            },
            text,
        ),
        Kind::Size => match size::parse(text) {
            Ok(0) => {
                Err((format!("{} must be at least `1B`, found {}", quote(key), quote(text)), String::new()))
            }
            Ok(bytes) => Ok(Node::Size(bytes)),
            Err(why) => Err(refused("size", why.to_string())),
        },
        Kind::Label => match plain(text, LABEL_BYTES_MAX) {
            Ok(()) => Ok(Node::Text(text.into())),
            Err(why) => Err((format!("{} {why}", quote(key)), String::new())),
        },
        Kind::Setting => match plain(text, poolwright_core::name::NAME_BYTES_MAX) {
            Ok(()) => Ok(Node::Text(text.into())),
            Err(why) => Err((format!("the setting under {} {why}", quote(key)), String::new())),
        },
        Kind::Variable => variable(text),
        Kind::Name(noun) => name(noun, text).map(|()| Node::Text(text.into())),
        Kind::Reference(noun) if text.trim().is_empty() => {
            Err((format!("{} names no {}, it is empty", quote(key), noun.as_str()), String::new()))
        }
        Kind::Reference(_) => Ok(Node::Text(text.into())),
        Kind::Word(words) | Kind::Words(words) => word(key, words, text),
        Kind::Path(place) | Kind::Paths(place) => path(place, text),
        Kind::Template => match Template::parse(text) {
            Ok(template) => Ok(Node::Template(template)),
            Err(why) => Err(refused("id template", why.to_string())),
        },
        Kind::Schedule => match text.parse() {
            Ok(schedule) => Ok(Node::Schedule(schedule)),
            Err(why) => Err(refused("cron text", why.to_string())),
        },
        Kind::Bool | Kind::Integer { .. } | Kind::Number { .. } => Err(wrong_type(key, kind, text)),
        Kind::Map(..) | Kind::Table(_) | Kind::Tagged(_) => Err(wrong_type(key, kind, text)),
    }
}

/// A text where something else belongs; the cure is often to take the quotes away.
fn wrong_type(key: &str, kind: Kind, text: &str) -> Refusal {
    let bare = match kind {
        Kind::Bool => text.parse::<bool>().is_ok(),
        Kind::Integer { .. } => text.parse::<u64>().is_ok(),
        Kind::Number { .. } => text.parse::<f64>().is_ok(),
        _ => false,
    };
    let cure = if bare { format!("write it without quotes: `{text}`") } else { kind.cure() };
    (format!("expected {} for {}, found the text {}", kind.expected(), quote(key), quote(text)), cure)
}

fn plain(text: &str, bytes_max: usize) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err("must not be empty".to_owned());
    }
    if text.len() > bytes_max {
        return Err(format!("has at most {bytes_max} bytes, this one has {}", text.len()));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(found) => Err(format!("must not contain control characters, this one has {found:?}")),
        None => Ok(()),
    }
}

fn variable(text: &str) -> Result<Node, Refusal> {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Ok(Node::Text(text.into()));
    }
    let message = format!("{} is no name of an environment variable", quote(text));
    Err((message, "write letters, digits and `_`, not beginning with a digit: `MY_APP_WORKERS`".to_owned()))
}

/// Whether the text may be such a name.
pub(crate) fn name(noun: Noun, text: &str) -> Result<(), Refusal> {
    let checked = match noun {
        Noun::Class => return class(text),
        Noun::Pool => PoolName::new(text).map(drop),
        Noun::Queue => QueueName::new(text).map(drop),
        Noun::Type => TypeName::new(text).map(drop),
        Noun::Retry | Noun::Subject | Noun::Scope => QueueName::new(text).map(drop),
    };
    let kind = match noun {
        Noun::Type => "task type".to_owned(),
        other => format!("{} name", other.as_str()),
    };
    let message = match checked {
        Err(NameError::Empty { .. }) => format!("a {kind} must not be empty"),
        Err(NameError::TooLong { bytes, .. }) => {
            let most = poolwright_core::name::NAME_BYTES_MAX;
            format!("a {kind} has at most {most} bytes, this one has {bytes}")
        }
        Err(NameError::Control { found, .. }) => {
            format!("a {kind} must not contain control characters, this one has {found:?}")
        }
        // `kind/id` is how a subject or scope is written on the command line.
        Ok(()) if matches!(noun, Noun::Subject | Noun::Scope) && text.contains('/') => {
            format!("a {kind} must not contain `/`, found {}", quote(text))
        }
        Ok(()) => return Ok(()),
    };
    Err((message, String::new()))
}

fn class(text: &str) -> Result<(), Refusal> {
    let known: Vec<&str> =
        Class::ALL.into_iter().filter(|class| class.takes_policy()).map(Class::as_str).collect();
    let cure = format!("classes with a policy: {}", list(known.iter().copied()));
    match text.parse::<Class>() {
        Ok(class) if class.takes_policy() => Ok(()),
        Ok(class) => Err((format!("error class `{class}` takes no retry policy: {}", why_none(class)), cure)),
        Err(_) => Err((
            format!("unknown error class {}{}", quote(text), did_you_mean(text, known.iter().copied())),
            cure,
        )),
    }
}

fn why_none(class: Class) -> &'static str {
    match class {
        Class::Permanent | Class::Undecodable => "such a task is archived at once",
        Class::Snoozed => "the handler itself says for how long",
        Class::Revoked => "such a task is gone",
        Class::NeedsOperator => "its queue is paused until a person resumes it",
        Class::Cancelled => "`on_cancel` says what becomes of it",
        _ => "it is never retried",
    }
}

fn word(key: &str, words: &'static [Word], text: &str) -> Result<Node, Refusal> {
    match words.iter().find(|word| word.text == text) {
        Some(word) => Ok(Node::Word(word.text)),
        None => {
            let near = did_you_mean(text, words.iter().map(|word| word.text));
            Err((
                format!("unknown word {} for {}{near}", quote(text), quote(key)),
                super::kind::meanings(words),
            ))
        }
    }
}

fn path(place: Use, text: &str) -> Result<Node, Refusal> {
    Path::parse(text, place).map(Node::Path).map_err(|why| {
        let cure = why.cure(place).to_owned();
        (format!("{} is no payload path here: {why}", quote(text)), cure)
    })
}
