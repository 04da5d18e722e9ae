//! A worker that notes how late each task began, and is there before the first one comes.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use tempfile::TempDir;

use super::Case;
use crate::child::Child;
use crate::lateness::Lateness;

/// After this a worker that has just started is idle.
const SETTLED: Duration = Duration::from_secs(2);

/// A running worker, and where it writes.
pub(crate) struct Watched {
    child: Child,
    file: PathBuf,
    _dir: TempDir,
}

impl Watched {
    /// Starts it for so many tasks, and waits until it is idle.
    pub(crate) async fn start(case: Case<'_>, tasks: usize) -> Result<Self> {
        let dir = TempDir::new()?;
        let file = dir.path().join("late");
        let args = [
            ("workers", case.workers.to_string()),
            ("tasks", tasks.to_string()),
            ("late", file.display().to_string()),
        ];
        let mut child = case.system.start("work", case.server, &args).await?;
        child.say("go").await?;
        child.hear("started").await?;
        tokio::time::sleep(SETTLED).await;
        Ok(Self { child, file, _dir: dir })
    }

    /// Its process id.
    pub(crate) const fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Waits until all tasks have begun.
    pub(crate) async fn done(&mut self) -> Result<Lateness> {
        self.child.done().await?;
        Lateness::read(&self.file)
    }

    /// Lets it stop.
    pub(crate) async fn end(self) -> Result<()> {
        self.child.end().await
    }
}
