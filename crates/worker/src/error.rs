//! Why a worker does not start.

use poolwright_core::{NameError, PoolName, QueueName, TypeName};

/// A worker that could not start. Nothing was claimed and nothing runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It was described wrongly: everything that is wrong, at once.
    #[error("the worker cannot start:{}", list(problems))]
    Refused {
        /// At least one.
        problems: Vec<Problem>,
    },
    /// The system gave no thread.
    #[error("could not start the threads of {what}: {source}")]
    Threads {
        /// Whose.
        what: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The system does not pass signals on.
    #[error("could not listen for signals: {source}")]
    Signals {
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
}

/// One thing that is wrong with a worker's description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// Nothing to do.
    #[error("no pool was given, expected at least one")]
    NoPools,
    /// Two pools with one name.
    #[error("pool {pool} was given twice")]
    PoolTwice {
        /// Its name.
        pool: PoolName,
    },
    /// A pool with nothing to take tasks from.
    #[error("pool {pool} neither owns nor borrows a queue")]
    NoQueues {
        /// Its name.
        pool: PoolName,
    },
    /// A pool that could never run anything.
    #[error("pool {pool} has no {what}, expected at least 1")]
    Zero {
        /// Its name.
        pool: PoolName,
        /// Workers or threads.
        what: &'static str,
    },
    /// A pool that would be asked for twice the tasks of a queue.
    #[error("pool {pool} names queue {queue} twice")]
    QueueTwice {
        /// Its name.
        pool: PoolName,
        /// The queue.
        queue: QueueName,
    },
    /// An option out of range.
    #[error("option {option} {rule}")]
    BadOption {
        /// Its name.
        option: &'static str,
        /// What must hold.
        rule: &'static str,
    },
    /// No services at all.
    #[error("no handlers were given: set `services`")]
    NoServices,
    /// Two handlers for one type.
    #[error("task type {task_type} has two handlers: {first} and {second}")]
    HandlerTwice {
        /// The type.
        task_type: TypeName,
        /// The one that was there.
        first: &'static str,
        /// The one that came later.
        second: &'static str,
    },
    /// A handler of raw payloads that was registered without a name.
    #[error("handler {handler} takes any payload: say for which task type, with `handle_as`")]
    NoName {
        /// The handler.
        handler: &'static str,
    },
    /// A type whose name no store would take.
    #[error("handler {handler} is for `{name}`, which is no task type: {why}")]
    BadName {
        /// The handler.
        handler: &'static str,
        /// What it said.
        name: String,
        /// Why not.
        why: NameError,
    },
    /// A handler for a type that the file does not declare: a typing error, most likely.
    #[error("handler {handler} is for task type {task_type}, which is not declared")]
    UnknownType {
        /// The handler.
        handler: &'static str,
        /// The type.
        task_type: TypeName,
    },
    /// A handler wants a value that nobody set.
    #[error("handler {handler} takes `State<{state}>`, but no state of that type was set")]
    MissingState {
        /// The handler.
        handler: &'static str,
        /// The state's type.
        state: &'static str,
    },
    /// A type that must have a handler has none.
    #[error("task type {task_type} has no handler")]
    MissingHandler {
        /// The type.
        task_type: TypeName,
    },
}

fn list(problems: &[Problem]) -> String {
    match problems {
        [one] => format!(" {one}"),
        many => many.iter().map(|problem| format!("\n  - {problem}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_problem_is_a_line_and_several_are_a_list() {
        let one = Error::Refused { problems: vec![Problem::NoPools] };
        assert_eq!(one.to_string(), "the worker cannot start: no pool was given, expected at least one");
        let two = Error::Refused { problems: vec![Problem::NoPools, Problem::NoServices] };
        assert_eq!(
            two.to_string(),
            "the worker cannot start:\n  - no pool was given, expected at least one\n  - no handlers were given: \
             set `services`"
        );
    }
}
