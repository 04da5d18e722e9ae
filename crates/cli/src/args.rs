//! What the program accepts on its command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, value_parser};
use poolwright::core::{Class, State, Timestamp};

use crate::value;

const EVERYWHERE: &str = "Everywhere";

/// Background tasks in isolated pools: check the file of queues, enqueue, look, act.
#[derive(Debug, Parser)]
#[command(
    name = "poolwright",
    version,
    after_help = "Results go to stdout and everything else to stderr.\nExit status: 0 done, 1 failed, 2 used wrongly."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Print one JSON value instead of text.
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    pub(crate) json: bool,
    /// The store of tasks [default: sqlite://.poolwright/tasks.db].
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "POOLWRIGHT_BROKER_URL",
        hide_env_values = true,
        help_heading = EVERYWHERE
    )]
    pub(crate) broker: Option<String>,
    /// The store of dead letters and settings [default: the same as the broker; with tasks on Redis sqlite://poolwright.db].
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "POOLWRIGHT_LEDGER_URL",
        hide_env_values = true,
        help_heading = EVERYWHERE
    )]
    pub(crate) ledger: Option<String>,
    /// The file of queues [default: queues.toml, and where there is none the built-in preset].
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "POOLWRIGHT_CONFIG",
        hide_env_values = true,
        help_heading = EVERYWHERE
    )]
    pub(crate) config: Option<OsString>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Say what is wrong with the file of queues, or each value in force and where it came from.
    Check,
    /// Print the JSON schema of the file of queues, for editors.
    Schema,
    /// Let six pools work through folders of files, or search what they found.
    ///
    /// Runs on the built-in preset, with shorter delays, unless a file of queues is named.
    Demo(Demo),
    /// Enqueue a task, or many from a file.
    Enqueue(Box<Enqueue>),
    /// Show all queues in numbers.
    Queues,
    /// List the tasks of a queue in one state.
    Tasks(Tasks),
    /// Show one task.
    Task(TaskAt),
    /// Make a task that waits or has ended pending now.
    RunNow(TaskAt),
    /// Ask for the end of a task: one that waits is gone, one that runs is told.
    Cancel(TaskAt),
    /// Set a waiting task aside; workers write its dead letter.
    Archive(Archive),
    /// Remove a task that does not run.
    Delete(TaskAt),
    /// Stop workers from taking tasks of a queue; what runs goes on.
    Pause(Pause),
    /// Let workers take tasks of a paused queue again.
    Resume(QueueAt),
    /// Show the pools over all live processes.
    Pools,
    /// Show the live worker processes and what they run.
    Servers,
    /// Show the last days of a queue.
    History(History),
    /// Look at what failed for good, run it again, or remove it.
    DeadLetters {
        /// What to do with them.
        #[command(subcommand)]
        command: DeadLetters,
    },
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Demo {
    #[command(subcommand)]
    pub(crate) command: Option<DemoCommand>,
    /// Folders to work through [default: docs/ if it is here, and a small sample].
    #[arg(value_name = "DIR")]
    pub(crate) folders: Vec<PathBuf>,
    /// Try files again whose work failed for good.
    #[arg(long)]
    pub(crate) retry_failed: bool,
    /// Run only these pools in this process.
    #[arg(long, value_name = "POOL,...", value_delimiter = ',')]
    pub(crate) pools: Option<Vec<String>>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DemoCommand {
    /// Search what the demo has read.
    Search(Search),
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Words that must all occur.
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// Show so many places at most.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = value_parser!(u32).range(1..=1000), allow_negative_numbers = true)]
    pub(crate) limit: u32,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "poolwright enqueue [OPTIONS] --payload <JSON> <TYPE>\n       poolwright enqueue --from <FILE.jsonl>"
)]
pub(crate) struct Enqueue {
    /// Its type, as the file of queues declares it.
    #[arg(value_name = "TYPE", required_unless_present = "from")]
    pub(crate) task_type: Option<String>,
    /// Its payload as JSON; `-` reads it from stdin.
    #[arg(long, value_name = "JSON", required_unless_present = "from", allow_negative_numbers = true)]
    pub(crate) payload: Option<String>,
    #[command(flatten)]
    pub(crate) options: TaskOptions,
    /// Enqueue a task for each line of this file, or of stdin with `-`: a JSON object with `type`, `payload` and the
    /// options above by their names, `header` as an object.
    #[arg(long, value_name = "FILE.jsonl", conflicts_with_all = ["task_type", "payload", "TaskOptions"])]
    pub(crate) from: Option<PathBuf>,
}

/// What is said of a task beyond the rules of its type.
#[derive(Debug, Default, PartialEq, Args)]
pub(crate) struct TaskOptions {
    /// Run it so long from now at the earliest, such as `90s` or `1h10m`.
    #[arg(long, value_name = "DURATION", value_parser = value::duration, conflicts_with = "at")]
    pub(crate) delay: Option<Duration>,
    /// Run it at this time at the earliest, such as `2026-12-01T08:00:00Z`.
    #[arg(long, value_name = "TIME", value_parser = value::time)]
    pub(crate) at: Option<Timestamp>,
    /// Give it this id, unique in its queue.
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Refuse it while an equal task waits or runs, for so long at most; `0s` takes no lock, also where its type asks for
    /// one.
    #[arg(long, value_name = "DURATION", value_parser = value::duration)]
    pub(crate) unique_for: Option<Duration>,
    /// Keep it so long after success.
    #[arg(long, value_name = "DURATION", value_parser = value::duration)]
    pub(crate) retention: Option<Duration>,
    /// Text beside the payload; may be given again.
    #[arg(long, value_name = "KEY=VALUE", value_parser = value::header)]
    pub(crate) header: Vec<(String, String)>,
    /// Try it again so often after a failure.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) max_retry: Option<u32>,
    /// Let one attempt take so long at most; `0s` sets no limit.
    #[arg(long, value_name = "DURATION", value_parser = value::duration)]
    pub(crate) timeout: Option<Duration>,
    /// Put it into this queue instead of its type's.
    #[arg(long)]
    pub(crate) queue: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Tasks {
    /// Its name in the file of queues, or in the store.
    pub(crate) queue: String,
    /// Their state.
    #[arg(long, value_parser = PossibleValuesParser::new(State::ALL.map(State::as_str)).try_map(|word| word.parse::<State>()))]
    pub(crate) state: State,
    /// Show so many at most.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value_parser!(u32).range(1..=1000), allow_negative_numbers = true)]
    pub(crate) limit: u32,
    /// Go on where an earlier page ended.
    #[arg(long)]
    pub(crate) cursor: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct TaskAt {
    /// Its queue, as the file of queues or the store calls it.
    pub(crate) queue: String,
    /// Its id.
    pub(crate) id: String,
}

#[derive(Debug, Args)]
pub(crate) struct Archive {
    #[command(flatten)]
    pub(crate) at: TaskAt,
    /// Why; its dead letter says so.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct QueueAt {
    /// Its name in the file of queues, or in the store.
    pub(crate) queue: String,
}

#[derive(Debug, Args)]
pub(crate) struct Pause {
    #[command(flatten)]
    pub(crate) at: QueueAt,
    /// Why; shown with the queue.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reason: String,
}

#[derive(Debug, Args)]
pub(crate) struct History {
    #[command(flatten)]
    pub(crate) at: QueueAt,
    /// So many days (UTC), today first.
    #[arg(long, value_name = "N", default_value_t = 14, value_parser = value_parser!(u32).range(1..=366), allow_negative_numbers = true)]
    pub(crate) days: u32,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetters {
    /// List dead letters, newest first.
    List(ListLetters),
    /// Show one dead letter.
    Show {
        /// Its number.
        #[arg(value_parser = value_parser!(i64).range(1..))]
        id: i64,
    },
    /// Enqueue the work of dead letters again.
    Replay(Replay),
    /// Remove dead letters; the failed tasks stay in the archive.
    Delete {
        /// Their numbers.
        #[arg(required = true, value_name = "ID", value_parser = value_parser!(i64).range(1..))]
        ids: Vec<i64>,
    },
}

/// Which dead letters; all that is said must hold.
#[derive(Debug, Default, Args)]
pub(crate) struct LetterFilter {
    /// Of tasks of this type.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) task_type: Option<String>,
    /// Of work for this one, such as `knowledge_base/kb_7`.
    #[arg(long, value_name = "KIND/ID", value_parser = value::reach)]
    pub(crate) scope: Option<(String, String)>,
    /// Of work for this tenant.
    #[arg(long, value_name = "ID")]
    pub(crate) tenant: Option<String>,
    /// Of this class of trouble.
    #[arg(long, value_parser = PossibleValuesParser::new(Class::ALL.map(Class::as_str)).try_map(|word| word.parse::<Class>()))]
    pub(crate) class: Option<Class>,
    /// Of tasks of this queue.
    #[arg(long)]
    pub(crate) queue: Option<String>,
    /// Only those that were never replayed.
    #[arg(long)]
    pub(crate) unreplayed: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListLetters {
    #[command(flatten)]
    pub(crate) filter: LetterFilter,
    /// Show so many at most.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = value_parser!(u32).range(1..=200), allow_negative_numbers = true)]
    pub(crate) limit: u32,
    /// Only those older than this one.
    #[arg(long, value_name = "ID", value_parser = value_parser!(i64).range(1..))]
    pub(crate) before: Option<i64>,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "poolwright dead-letters replay [--again] <ID>...\n       poolwright dead-letters replay --all [OPTIONS]"
)]
pub(crate) struct Replay {
    /// Their numbers.
    #[arg(
        value_name = "ID",
        required_unless_present = "all",
        conflicts_with_all = ["all", "LetterFilter"],
        value_parser = value_parser!(i64).range(1..)
    )]
    pub(crate) ids: Vec<i64>,
    /// All that were not replayed yet and match what is said below.
    #[arg(long)]
    pub(crate) all: bool,
    /// Also those that were replayed before.
    #[arg(long, conflicts_with = "all")]
    pub(crate) again: bool,
    #[command(flatten)]
    pub(crate) filter: LetterFilter,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_folder_that_is_called_search_can_be_named() {
        let parsed = |words: &[&str]| match Arguments::try_parse_from(words).unwrap().command {
            Command::Demo(demo) => demo,
            other => panic!("not a demo: {other:?}"),
        };
        assert_eq!(parsed(&["poolwright", "demo", "./search"]).folders, [PathBuf::from("./search")]);
        let Some(DemoCommand::Search(search)) = parsed(&["poolwright", "demo", "search", "a", "b"]).command
        else {
            panic!("not a search");
        };
        assert_eq!(search.words, ["a", "b"]);
    }
}
