//! What a run came to: the counts of its folders, what failed and why, and how quick it was.

use std::fmt;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};
use std::time::Duration;

use poolwright::worker::Counts as WorkerCounts;
use serde::Serialize;

use crate::Error;
use crate::desk::Desk;
use crate::id::SourceId;
use crate::library::Counts;
use crate::stage::wiki::LeftOut;
use crate::view::text;

/// What a run came to. Its text is the closing report; as JSON it is one object.
///
/// The counts are of the folders of the run as the library holds them at its end, whoever did the work: a run that was
/// killed and begun again ends with the counts of a calm one. What this process did itself stands beside them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Files with text that were read.
    pub documents: u64,
    /// Pieces they were cut into.
    pub chunks: u64,
    /// Pictures that were decoded.
    pub images: u64,
    /// Documents with a summary.
    pub summaries: u64,
    /// Questions that chunks answer.
    pub questions: u64,
    /// Terms of all graphs, each once.
    pub terms: u64,
    /// Pages of the wiki, which holds every folder that was ever read into this home.
    pub wiki_pages: u64,
    /// Tasks that failed for good; their reasons are in `dead`.
    pub dead_letters: u64,
    /// Files that are of no kind that is read; their reasons are in `left_out`.
    pub skipped: u64,
    /// Files whose work has not ended: the run was interrupted, or their tasks were cancelled.
    pub unfinished: u64,
    /// Files that this run saw for the first time.
    pub new: u64,
    /// Files that this run found with other content.
    pub changed: u64,
    /// Files that an interrupted run left behind, or that `retry_failed` began again.
    pub resumed: u64,
    /// Files that this run found gone.
    pub removed: u64,
    /// Files that this run found as they were.
    pub unchanged: u64,
    /// Tasks that this process ended, well or badly.
    pub tasks: u64,
    /// Attempts of this process that failed and were tried again.
    pub retries: u64,
    /// From the first task to the end of the last one.
    pub seconds: f64,
    /// `tasks / seconds`.
    pub tasks_per_second: f64,
    /// It was stopped before its end. The next run goes on.
    pub interrupted: bool,
    /// Tasks of others that stay in the queues.
    pub other_tasks: u64,
    /// The folders.
    pub folders: Vec<SourceId>,
    /// The first page of the wiki.
    pub wiki: PathBuf,
    /// What failed, by path.
    pub dead: Vec<Dead>,
    /// What was left out, by reason.
    pub left_out: Vec<LeftOut>,
}

/// A task that failed for good.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Dead {
    /// The file, or the folder; the task where it is about neither.
    pub path: String,
    /// The type of the task.
    pub task_type: String,
    /// The class of the error.
    pub class: String,
    /// What it said.
    pub reason: String,
}

/// What syncs of this process found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) new: u64,
    pub(crate) changed: u64,
    /// Known, but the work on them had not ended.
    pub(crate) unfinished: u64,
    pub(crate) removed: u64,
    pub(crate) unchanged: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, more: Self) {
        self.new += more.new;
        self.changed += more.changed;
        self.unfinished += more.unfinished;
        self.removed += more.removed;
        self.unchanged += more.unchanged;
    }
}

/// What the end of a run adds to what the library holds.
pub(crate) struct End {
    pub(crate) counts: WorkerCounts,
    pub(crate) took: Duration,
    pub(crate) interrupted: bool,
    pub(crate) other_tasks: u64,
}

impl Summary {
    /// Asks the library.
    ///
    /// # Errors
    /// [`Error::Library`].
    pub(crate) fn gather(desk: &Desk, folders: Vec<SourceId>, end: &End) -> Result<Self, Error> {
        let counts: Counts = desk.library().counts_of(&folders)?;
        let left_out = desk.library().left_out_of(&folders)?;
        let failed = desk.library().failed(&folders)?.into_iter().map(|failed| Dead {
            path: Path::new(failed.source.as_str()).join(&failed.path).display().to_string(),
            task_type: failed.trouble.task_type,
            class: failed.trouble.class,
            reason: failed.trouble.reason,
        });
        let mut dead: Vec<Dead> = failed.chain(desk.mourned()).collect();
        dead.sort();
        let tally = desk.tally();
        let tasks = end.counts.completed + end.counts.archived + end.counts.discarded;
        let seconds = end.took.as_secs_f64();
        Ok(Self {
            documents: counts.documents,
            chunks: counts.chunks,
            images: counts.images,
            summaries: counts.summaries,
            questions: counts.questions,
            terms: counts.terms,
            wiki_pages: counts.wiki_pages,
            dead_letters: dead.len() as u64,
            skipped: counts.skipped,
            unfinished: counts.unfinished,
            new: tally.new,
            changed: tally.changed,
            resumed: tally.unfinished,
            removed: tally.removed,
            unchanged: tally.unchanged,
            tasks,
            retries: end.counts.retried,
            seconds,
            tasks_per_second: if seconds > 0.0 { tasks as f64 / seconds } else { 0.0 },
            interrupted: end.interrupted,
            other_tasks: end.other_tasks,
            folders,
            wiki: desk.wiki().join("index.md"),
            dead,
            left_out,
        })
    }
}

/// The closing report, for a person.
impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::report(self))
    }
}
