//! What can be measured on Redis: a scenario with its parameters, without the system that it is done to.

use std::fmt;

use clap::ValueEnum;

use crate::system::System;

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

/// In which order tasks that run at once are finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
pub(crate) enum Order {
    /// The oldest first.
    InOrder,
    /// Any.
    Random,
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
    /// The first tasks of a long queue are worked off.
    Backlog {
        /// How many are pending.
        pending: usize,
        /// Workers.
        workers: u32,
    },
    /// Tasks are sent and run at a rate.
    Steady {
        /// Tasks a second.
        rate: u32,
    },
    /// The largest rate that is carried.
    Peak,
    /// Tasks are sent one by one to an idle worker.
    Pickup {
        /// By whom.
        producer: System,
    },
    /// Many tasks are due at one time.
    Due,
    /// Single tasks are due, each in a second of its own.
    DueLone,
    /// Many tasks run, and some of them end.
    Long {
        /// How many run.
        active: u32,
        /// In which order they end.
        order: Order,
    },
    /// Six pools have nothing to do.
    Idle,
    /// Tasks are pending.
    Memory,
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
            Self::Backlog { pending, .. } => write!(f, "drain from {pending} pending"),
            Self::Steady { rate } => write!(f, "steady, {rate} a second"),
            Self::Peak => write!(f, "most that steady carries"),
            Self::Pickup { producer } => write!(f, "pick-up, producer {producer}"),
            Self::Due => write!(f, "due in one second"),
            Self::DueLone => write!(f, "due alone"),
            Self::Long { active, order: Order::InOrder } => write!(f, "{active} active, ending in order"),
            Self::Long { active, order: Order::Random } => write!(f, "{active} active, ending at random"),
            Self::Idle => write!(f, "idle, six pools"),
            Self::Memory => write!(f, "memory"),
        }
    }
}
