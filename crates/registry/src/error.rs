//! The crate's one error.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use poolwright_core::error::describe;
use poolwright_core::{NameError, TypeName};

use crate::problem::Problem;
use crate::render;

/// Why there is no topology, or no id for a task.
#[derive(thiserror::Error)]
pub enum Error {
    /// The file cannot be read. Nothing is known about its content.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file has mistakes; its text is all of them, each with its place and its cure.
    #[error("{0}")]
    Refused(Box<Refused>),
    /// The topology has no such pool, queue or task type.
    #[error("unknown {what} `{name}`{hint}")]
    Unknown {
        /// What was looked for: `pool`, `queue` or `task type`.
        what: &'static str,
        /// The name that was given.
        name: String,
        /// `, did you mean ...?`, or nothing.
        hint: String,
    },
    /// The payload lacks a field that the type's id template needs. The task must not be enqueued.
    #[error(
        "the payload of a `{task_type}` has no usable `{field}`, which its id template `{template}` needs"
    )]
    MissingField {
        /// The type.
        task_type: TypeName,
        /// The first field that is absent, empty, or no text and no whole number.
        field: String,
        /// The template.
        template: String,
    },
    /// The id template gives a text that is no id. The task must not be enqueued.
    #[error("the id template of `{task_type}` gives no id: {source}")]
    InvalidId {
        /// The type.
        task_type: TypeName,
        /// What is wrong with it.
        source: NameError,
    },
}

impl Error {
    /// The mistakes of a refused file, in its order; nothing for other errors.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Refused(refused) => &refused.problems,
            _ => &[],
        }
    }

    /// The text for a terminal: as `Display`, with colours.
    #[must_use]
    pub fn coloured(&self) -> String {
        match self {
            Self::Refused(refused) => render::problems(refused, true),
            other => other.to_string(),
        }
    }

    pub(crate) fn refused(name: &str, text: &str, problems: Vec<Problem>) -> Self {
        Self::Refused(Box::new(Refused { name: name.to_owned(), text: text.into(), problems }))
    }
}

/// The text, with its causes: a `main` that returns an error shows it by `Debug`, and only the text names line and cure.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&describe(self))
    }
}

/// A file with mistakes, and its text to show them in.
#[derive(Debug, Clone)]
pub struct Refused {
    pub(crate) name: String,
    pub(crate) text: Arc<str>,
    pub(crate) problems: Vec<Problem>,
}

/// All problems, each underlined in the text, without colours.
impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render::problems(self, false))
    }
}
