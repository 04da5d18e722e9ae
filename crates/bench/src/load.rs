//! What can be measured on Redis: a scenario with its parameters, without the system that it is done to.

use std::fmt;

use clap::ValueEnum;

/// How tasks are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
pub(crate) enum Shape {
    /// One caller, one task a call.
    One,
    /// 50 callers, one task a call.
    Callers,
    /// One caller, 100 tasks at a time.
    Batches,
}

/// A scenario with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Load {
    /// Tasks are sent; every answer is awaited.
    Enqueue {
        /// How.
        shape: Shape,
    },
    /// A filled queue is emptied by one process.
    Drain {
        /// Its workers.
        workers: u32,
        /// Each task has a subject of its own.
        subjects: bool,
    },
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enqueue { shape: Shape::One } => write!(f, "enqueue, one caller"),
            Self::Enqueue { shape: Shape::Callers } => write!(f, "enqueue, 50 callers"),
            Self::Enqueue { shape: Shape::Batches } => write!(f, "enqueue, batches of 100"),
            Self::Drain { workers, subjects: false } => write!(f, "drain, {workers} workers"),
            Self::Drain { workers, subjects: true } => {
                write!(f, "drain, {workers} workers, a subject a task")
            }
        }
    }
}
