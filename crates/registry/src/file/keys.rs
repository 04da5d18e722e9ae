//! Every key of the file: what it may hold, what holds without it, and what it means.
//!
//! Invariant: the checker, the JSON schema and the defaults all read these tables and nothing else, so they cannot
//! tell different stories. A default is written here once.

use std::time::Duration;

use poolwright_core::retry::DELAY_MAX;
use poolwright_core::{OnCancel, OnConflict};

use super::kind::Literal::{Bool, Integer, Number, Text, Words};
use super::kind::{Key, Kind, Noun, Table, Tagged};
use crate::duration;
use crate::path::Use;
use crate::words::{Borrow, CancelBy, OnExhausted, Producers, RetryKind, Vocabulary};

/// The version of the format that this release reads.
pub(crate) const VERSION: u64 = 1;

const MS: Duration = Duration::from_millis(1);
const SEC: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

/// A worker is a task and a slot, not a thread; a process that wants more of them than this has lost its way.
pub(crate) const WORKERS: Kind = Kind::Integer { noun: "a number of workers", min: 1, max: 10_000 };
/// The bounds of a type's `timeout` where it is overridden; only the file may lift the limit.
pub(crate) const TIMEOUT_MIN: Duration = MS;
const WEIGHT: Kind = Kind::Integer { noun: "a weight", min: 1, max: 1_000 };

const fn count(max: u64) -> Kind {
    Kind::Integer { noun: "an integer", min: 0, max }
}

const fn within(min: Duration, max: Duration) -> Kind {
    Kind::Duration { zero: None, min, max }
}

const fn within_or_zero(zero: &'static str, min: Duration, max: Duration) -> Kind {
    Kind::Duration { zero: Some(zero), min, max }
}

/// The whole file.
pub(crate) static ROOT: Table = Table {
    title: "the file",
    doc: "Queues, pools, task types and their rules.",
    own: &[
        Key::new(
            "version",
            Kind::Integer { noun: "the version", min: VERSION, max: VERSION },
            "The version of this format.",
        )
        .required(),
        Key::new("limits", Kind::Table(&LIMITS), "Bounds that hold for every task."),
        Key::new("runtime", Kind::Table(&RUNTIME), "The times by which workers live."),
        Key::new("pools", Kind::Map(Noun::Pool, &Kind::Table(&POOL)), "Groups of workers.").required(),
        Key::new(
            "queue_defaults",
            Kind::Table(&QUEUE_DEFAULTS),
            "What holds for a queue that does not say otherwise.",
        ),
        Key::new(
            "queues",
            Kind::Map(Noun::Queue, &Kind::Table(&QUEUE)),
            "What differs from the defaults, by queue.",
        ),
        Key::new(
            "retry",
            Kind::Map(Noun::Retry, &Kind::Tagged(&RETRY)),
            "Retry policies by name; `asynq` is built in.",
        ),
        Key::new(
            "task_defaults",
            Kind::Table(&TASK_DEFAULTS),
            "What holds for a task type that does not say otherwise.",
        ),
        Key::new(
            "tasks",
            Kind::Map(Noun::Type, &Kind::Table(&TASK)),
            "Task types; a type that is not here is refused.",
        ),
        Key::new("housekeeping", Kind::Table(&HOUSEKEEPING), "The sweep that ends what got stuck."),
    ],
    shared: &[],
};

static LIMITS: Table = Table {
    title: "[limits]",
    doc: "Bounds that hold for every task.",
    own: &[Key::new("payload", Kind::Size, "The largest payload; the client refuses larger ones.")
        .or(Text("1MiB"))],
    shared: &[],
};

static RUNTIME: Table = Table {
    title: "[runtime]",
    doc: "The times by which workers live.",
    own: &[
        Key::new(
            "lease",
            within(SEC, HOUR),
            "How long a claimed task stays its worker's without a sign of life; extended at a third. A dead worker's \
             task is taken over that much later.",
        )
        .or(Text("10s")),
        Key::new(
            "heartbeat",
            within(Duration::from_millis(100), Duration::from_secs(10)),
            "How often a process says that it lives, and how busy its pools are.",
        )
        .or(Text("5s")),
        Key::new(
            "grace",
            within_or_zero("stop at once", MS, HOUR),
            "At a stop, how long running tasks may go on before they are cancelled and given back.",
        )
        .or(Text("8s")),
        Key::new(
            "stop_grace",
            within_or_zero("drop at once", MS, HOUR),
            "How long a handler has to return after its cancel or timeout, before it is dropped.",
        )
        .or(Text("5s")),
        Key::new(
            "max_stall",
            within(SEC, duration::MAX),
            "How long a handler that cannot be dropped (a blocked thread) keeps its slot and its lease. Afterwards its \
             task may run elsewhere while the old attempt still does.",
        )
        .or(Text("10m")),
    ],
    shared: &[],
};

static POOL: Table = Table {
    title: "[pools.NAME]",
    doc: "A group of workers. No pool can use another's workers.",
    own: &[
        Key::new("label", Kind::Label, "Its name for people; its key when absent."),
        Key::new("workers", WORKERS, "How many tasks it runs at the same time, in each process.").required(),
        Key::new("setting", Kind::Setting, "The setting that overrides `workers`, before any variable."),
        Key::new(
            "env",
            Kind::Variable,
            "The variable that overrides `workers`, after `POOLWRIGHT_POOL_<NAME>_WORKERS`.",
        ),
        Key::new(
            "threads",
            Kind::Integer { noun: "a number of threads", min: 1, max: 512 },
            "Threads of the pool's own runtime: fewer than workers bound what its handlers take of the processors. \
             Default: one for each worker, at most 32.",
        ),
        Key::new("queues", Kind::Map(Noun::Queue, &WEIGHT), "The queues it owns, with their weights."),
        Key::new(
            "borrows",
            Kind::Map(Noun::Queue, &WEIGHT),
            "Queues of other pools that it takes from too, with weights.",
        ),
        Key::new("borrow", Kind::Word(Borrow::WORDS), "When it takes from them.").or(Text("always")),
    ],
    shared: &[],
};

static QUEUE_DEFAULTS: Table = Table {
    title: "[queue_defaults]",
    doc: "What holds for a queue that does not say otherwise.",
    own: &[],
    shared: QUEUE_RULES,
};

static QUEUE: Table = Table {
    title: "[queues.NAME]",
    doc: "What differs from the defaults.",
    own: &[
        Key::new("label", Kind::Label, "Its name for people; its key when absent."),
        Key::new("description", Kind::Label, "What goes through it, for people."),
        Key::new(
            "stored",
            Kind::Name(Noun::Queue),
            "Its name on the broker; its key when absent. A queue that is renamed keeps the old one here, so that old \
             and new releases share it.",
        ),
    ],
    shared: QUEUE_RULES,
};

const QUEUE_RULES: &[Key] = &[
    Key::new("producers", Kind::Word(Producers::WORDS), "Who enqueues into it.").or(Text("any")),
    Key::new(
        "archive_max",
        Kind::Integer { noun: "an integer", min: 1, max: 10_000_000 },
        "How many archived tasks it keeps; the oldest go first.",
    )
    .or(Integer(10_000)),
    Key::new("archive_for", within(SEC, duration::MAX), "How long it keeps an archived task.")
        .or(Text("90d")),
];

/// A retry policy.
pub(crate) static RETRY: Tagged = Tagged {
    tag: Key::new(
        "kind",
        Kind::Word(RetryKind::WORDS),
        "How the delay grows; n counts the retries already used.",
    )
    .required(),
    variants: &[
        (
            "asynq",
            Table { title: "[retry.NAME] with kind asynq", doc: "asynq's own.", own: &[], shared: &[] },
        ),
        (
            "exponential",
            Table {
                title: "[retry.NAME] with kind exponential",
                doc: "`base * factor^n`, at most `max`, spread by `± jitter`.",
                own: &[
                    Key::new("base", within(MS, DELAY_MAX), "The delay before the first retry.").required(),
                    Key::new(
                        "factor",
                        Kind::Number { min: 1.0, max: 100.0 },
                        "Growth from one retry to the next.",
                    )
                    .or(Number(2.0)),
                    Key::new(
                        "jitter",
                        Kind::Number { min: 0.0, max: 1.0 },
                        "Share of the delay by which it is spread to both sides.",
                    )
                    .or(Number(0.1)),
                    Key::new("max", within(MS, DELAY_MAX), "Upper bound before the spread.").or(Text("1h")),
                ],
                shared: &[],
            },
        ),
        (
            "linear",
            Table {
                title: "[retry.NAME] with kind linear",
                doc: "`step * (n + 1)`, at most `max`.",
                own: &[
                    Key::new(
                        "step",
                        within(MS, DELAY_MAX),
                        "The delay before the first retry, and its growth.",
                    )
                    .required(),
                    Key::new("max", within(MS, DELAY_MAX), "Upper bound.").or(Text("1h")),
                ],
                shared: &[],
            },
        ),
        (
            "steps",
            Table {
                title: "[retry.NAME] with kind steps",
                doc: "The listed delays one after another.",
                own: &[Key::new(
                    "delays",
                    Kind::Durations { most: 100 },
                    "The last one holds for all later retries.",
                )
                .required()],
                shared: &[],
            },
        ),
        (
            "fixed",
            Table {
                title: "[retry.NAME] with kind fixed",
                doc: "Always the same delay.",
                own: &[Key::new("delay", within(MS, DELAY_MAX), "The delay.").required()],
                shared: &[],
            },
        ),
    ],
};

static TASK_DEFAULTS: Table = Table {
    title: "[task_defaults]",
    doc: "What holds for a task type that does not say otherwise.",
    own: &[],
    shared: TASK_RULES,
};

static TASK: Table = Table {
    title: "[tasks.\"TYPE\"]",
    doc: "A task type and its rules.",
    own: &[
        Key::new("queue", Kind::Reference(Noun::Queue), "The queue its tasks wait in.").required(),
        Key::new("label", Kind::Label, "Its name for people; the type when absent."),
        Key::new("description", Kind::Label, "What it does, for people."),
        Key::new(
            "id",
            Kind::Template,
            "The id of a task, made from its payload, for work that must not be enqueued twice; without it every task \
             gets an id of its own.",
        ),
        Key::new(
            "timeout_setting",
            Kind::Setting,
            "The setting that overrides `timeout`, before the variable.",
        ),
        Key::new("timeout_env", Kind::Variable, "The variable that overrides `timeout`."),
        Key::new("protected", Kind::Bool, "No cancel by subject or scope reaches it.").or(Bool(false)),
    ],
    shared: TASK_RULES,
};

const TASK_RULES: &[Key] = &[
    Key::new("max_retry", count(10_000), "How often a task is tried again after its first failure.")
        .or(Integer(25)),
    Key::new("timeout", within_or_zero("no limit", MS, duration::MAX), "How long one attempt may take.")
        .or(Text("30m")),
    Key::new(
        "deadline",
        within(SEC, duration::MAX),
        "How long after its enqueue a task is still tried; without it, forever.",
    ),
    Key::new(
        "delay",
        within_or_zero("at once", MS, DELAY_MAX),
        "How long after its enqueue a task is tried first.",
    )
    .or(Text("0s")),
    Key::new(
        "retention",
        within_or_zero("not at all", SEC, duration::MAX),
        "How long a task is kept after success.",
    )
    .or(Text("0s")),
    Key::new(
        "unique_for",
        within_or_zero("no lock", SEC, duration::MAX),
        "How long an equal task (same type and payload) is refused at most; the end of the first lets it in.",
    )
    .or(Text("0s")),
    Key::new("payload", Kind::Size, "Its largest payload; `limits.payload` when absent."),
    Key::new("retry", Kind::Reference(Noun::Retry), "The policy for errors that `on_error` does not name.")
        .or(Text("asynq")),
    Key::new(
        "on_error",
        Kind::Map(Noun::Class, &Kind::Reference(Noun::Retry)),
        "Policies by error class; a type's entries replace those of the defaults one by one.",
    ),
    Key::new("on_cancel", Kind::Word(OnCancel::WORDS), "What becomes of a running task that is cancelled.")
        .or(Text("discard")),
    Key::new(
        "on_conflict",
        Kind::Word(OnConflict::WORDS),
        "What happens when a task with the same id exists.",
    )
    .or(Text("reject")),
    Key::new(
        "on_exhausted",
        Kind::Word(OnExhausted::WORDS),
        "What the application's records learn when a task has failed for good.",
    )
    .or(Text("nothing")),
    Key::new(
        "max_crashes",
        count(1_000),
        "How many expired leases a task survives; they use no retry. 0: never run again after one.",
    )
    .or(Integer(3)),
    Key::new(
        "max_deferrals",
        count(1_000_000),
        "How many rate limits, lock conflicts and snoozes in a row use no retry.",
    )
    .or(Integer(100)),
    Key::new("cancel", Kind::Words(CancelBy::WORDS), "Which cancels reach it.")
        .or(Words(&["subject", "scope"])),
    Key::new("tenant", Kind::Path(Use::One), "Where in the payload the customer stands."),
    Key::new(
        "subject",
        Kind::Map(Noun::Subject, &Kind::Paths(Use::Many)),
        "Where in the payload stands what a task works for, by kind; a type adds its own.",
    ),
    Key::new(
        "scopes",
        Kind::Map(Noun::Scope, &Kind::Paths(Use::Many)),
        "Where in the payload stands what a task belongs to, by kind, largest first; a type adds its own.",
    ),
    Key::new(
        "shows",
        Kind::Paths(Use::Shown),
        "The only payload fields that an operator is ever shown; a type adds its own.",
    ),
    Key::new(
        "fields",
        Kind::Paths(Use::Field),
        "Further payload fields that `id` may use; a type adds its own.",
    ),
];

static HOUSEKEEPING: Table = Table {
    title: "[housekeeping]",
    doc: "The sweep that ends what got stuck.",
    own: &[
        Key::new("enabled", Kind::Bool, "Whether it runs.").or(Bool(true)),
        Key::new(
            "enabled_setting",
            Kind::Setting,
            "The setting that overrides `enabled`, before the variable.",
        ),
        Key::new("enabled_env", Kind::Variable, "The variable that overrides `enabled`."),
        Key::new(
            "schedule",
            Kind::Schedule,
            "When it runs: cron, five fields or six with seconds first, in UTC.",
        )
        .or(Text("0 */5 * * * *")),
        Key::new(
            "stale_after",
            Kind::Table(&STALE_AFTER),
            "When a subject without a sign of life is stuck; without it, never.",
        ),
    ],
    shared: &[],
};

static STALE_AFTER: Table = Table {
    title: "stale_after",
    doc: "The threshold: the type's timeout and `plus`, but `at_least` so much.",
    own: &[
        Key::new("of", Kind::Reference(Noun::Type), "The type whose timeout the threshold must outlast.")
            .required(),
        Key::new("plus", within_or_zero("nothing", SEC, duration::MAX), "What is added to its timeout.")
            .or(Text("10m")),
        Key::new("at_least", within_or_zero("no bound", SEC, duration::MAX), "The smallest threshold.")
            .or(Text("0s")),
    ],
    shared: &[],
};

/// Keys that people look for where they are not, and where they are.
pub(crate) const MISPLACED: &[(&str, &str, &str)] = &[
    (
        "[queues.NAME]",
        "weight",
        "a queue's weight stands where its pool lists it: `queues = { default = 3 }`",
    ),
    ("[queues.NAME]", "pool", "a queue's home is the pool that lists it under `queues`"),
    ("[pools.NAME]", "weight", "weights stand beside the queues: `queues = { default = 3 }`"),
    ("[pools.NAME]", "concurrency", "the number of workers is called `workers`"),
    ("[tasks.\"TYPE\"]", "retries", "the number of retries is called `max_retry`"),
    ("[tasks.\"TYPE\"]", "pool", "a type names its queue; the pool that owns the queue runs it"),
];
