//! A process that plays a part: it says what happens in lines of JSON and does as it is told in lines of one word.
//!
//! ```text
//!   it ─► {"event":"ready"}      it is connected and waits
//!   we ─► go                     the measurement begins
//!   it ─► {"event":"done", …}    the work is done
//!   we ─► end of its input       it stops and goes
//! ```
//!
//! Our processes and those of other systems speak alike, so a scenario is written once.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child as Process, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Longer than any part takes; a process that is silent for so long hangs.
const PATIENCE: Duration = Duration::from_secs(900);

/// A process that ends when this is dropped.
pub(crate) struct Child {
    process: Process,
    pid: u32,
    words: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    what: String,
}

impl Child {
    /// Starts it and waits until it is ready.
    pub(crate) async fn start(mut command: Command, what: impl Into<String>) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let what = what.into();
        let mut process = command.spawn().with_context(|| format!("cannot start {what}"))?;
        let pid = process.id().context("it has just been started")?;
        let words = process.stdin.take().context("its input was asked for")?;
        let stdout = process.stdout.take().context("its output was asked for")?;
        let mut child = Self { process, pid, words, lines: BufReader::new(stdout).lines(), what };
        child.hear("ready").await?;
        Ok(child)
    }

    /// Its process id.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Tells it something.
    pub(crate) async fn say(&mut self, word: &str) -> Result<()> {
        let said = self.words.write_all(format!("{word}\n").as_bytes()).await;
        said.with_context(|| format!("{} does not listen", self.what))
    }

    /// Waits until it says this.
    pub(crate) async fn hear(&mut self, event: &str) -> Result<Value> {
        loop {
            let line = timeout(PATIENCE, self.lines.next_line()).await;
            let line = line.with_context(|| format!("{} hangs before it is {event}", self.what))??;
            let Some(line) = line else { bail!("{} ended before it was {event}", self.what) };
            let said: Value =
                serde_json::from_str(&line).with_context(|| format!("{} said {line}", self.what))?;
            if said["event"] == event {
                return Ok(said);
            }
        }
    }

    /// Says go, and waits until it is done: how long that took, as it says itself.
    pub(crate) async fn run(&mut self) -> Result<Duration> {
        self.say("go").await?;
        self.done().await
    }

    /// Waits until it is done.
    pub(crate) async fn done(&mut self) -> Result<Duration> {
        let said = self.hear("done").await?;
        let secs = said["secs"].as_f64().with_context(|| format!("{} told no time", self.what))?;
        Ok(Duration::from_secs_f64(secs))
    }

    /// Lets it stop.
    pub(crate) async fn end(mut self) -> Result<()> {
        drop(self.words);
        let ended = timeout(PATIENCE, self.process.wait()).await;
        let status = ended.with_context(|| format!("{} does not end", self.what))??;
        ensure!(status.success(), "{} failed: {status}", self.what);
        Ok(())
    }
}
