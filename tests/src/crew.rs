//! Worker and producer processes: started, listened to, stopped and killed, each by its own pid.
//!
//! Invariant: no process outlives its story. It is killed when it is dropped, and ends by itself when its standard input
//! closes, which also happens when the test program is killed.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use crate::journal::Journal;
use crate::place::Place;
use crate::plan::{Line, Plan, Role};
use crate::stage::Part;

/// Starts processes at one place; all write one journal.
pub struct Crew {
    program: PathBuf,
    config: PathBuf,
    broker: String,
    ledger: Option<String>,
    /// What all of them told.
    pub journal: Journal,
}

impl Crew {
    /// A crew that runs this program, which is `env!("CARGO_BIN_EXE_story_worker")` of the test.
    #[must_use]
    pub fn new(program: &str, place: &Place) -> Self {
        Self::with_journal(program, place, Journal::default())
    }

    /// The same, writing another journal.
    #[must_use]
    pub fn with_journal(program: &str, place: &Place, journal: Journal) -> Self {
        Self {
            program: program.into(),
            config: place.config(),
            broker: place.url(),
            ledger: place.ledger(),
            journal,
        }
    }

    /// A worker process that knows all types, once it is up.
    pub async fn worker(&self) -> Process {
        self.worker_with(&[], &[]).await
    }

    /// A worker process that knows these types (none: all) and has these variables in its environment.
    pub async fn worker_with(&self, types: &[&str], variables: &[(&str, &str)]) -> Process {
        let types = types.iter().map(|name| (*name).to_owned()).collect();
        let process = self.start(Role::Work { types }, variables);
        let pid = process.pid;
        self.journal.until(|log| log.server(pid).is_some() || log.is_gone(pid)).await;
        assert!(!self.journal.look(|log| log.is_gone(pid)), "a worker process ended at its start");
        process
    }

    /// A process that enqueues tasks and ends.
    #[must_use]
    pub fn producer(&self, task_type: &str, prefix: &str, count: usize, part: Part) -> Process {
        self.producer_with((task_type, prefix), count, part, Duration::ZERO, &[])
    }

    /// A process that enqueues tasks of this type and prefix, due after so long, has these variables in its environment, and
    /// ends.
    #[must_use]
    pub fn producer_with(
        &self,
        (task_type, prefix): (&str, &str),
        count: usize,
        part: Part,
        delay: Duration,
        variables: &[(&str, &str)],
    ) -> Process {
        let (task_type, prefix) = (task_type.to_owned(), prefix.to_owned());
        self.start(Role::Produce { task_type, prefix, count, part, delay }, variables)
    }

    fn start(&self, role: Role, variables: &[(&str, &str)]) -> Process {
        let plan = Plan {
            config: self.config.clone(),
            broker: self.broker.clone(),
            ledger: self.ledger.clone(),
            role,
        };
        let mut child = Command::new(&self.program)
            .arg(serde_json::to_string(&plan).unwrap())
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", self.program.display()));
        let pid = child.id().expect("it was not awaited yet");
        let (words, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let listening = tokio::spawn(listen(stdout, pid, self.journal.clone()));
        Process { child, pid, words, listening }
    }
}

/// Writes down all that a process says, until its output closes.
async fn listen(stdout: ChildStdout, pid: u32, journal: Journal) {
    let mut lines = BufReader::new(stdout);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).await.unwrap() > 0 {
        // A line without an end is the last one of a process that was killed while it wrote.
        if line.ends_with(b"\n") {
            let text = String::from_utf8_lossy(&line);
            let said: Line = serde_json::from_slice(&line).unwrap_or_else(|why| panic!("{why}: {text}"));
            journal.hear(pid, said);
        }
        line.clear();
    }
    journal.gone(pid);
}

/// A process of the crew. Dropping it kills it.
pub struct Process {
    child: Child,
    /// Its pid.
    pub pid: u32,
    words: ChildStdin,
    listening: JoinHandle<()>,
}

impl Process {
    /// Lets everything on its stage come to its end, now and later.
    pub async fn open_all(&mut self) {
        self.say("open\n").await;
    }

    /// Lets one task on its stage come to its end.
    pub async fn open(&mut self, id: &str) {
        self.say(&format!("open {id}\n")).await;
    }

    async fn say(&mut self, words: &str) {
        self.words.write_all(words.as_bytes()).await.unwrap();
        self.words.flush().await.unwrap();
    }

    /// Asks it to end, as a service manager does.
    pub async fn terminate(&self) {
        // The shell's own `kill`: the standard library sends no signal but SIGKILL.
        let kill = Command::new("sh").arg("-c").arg(format!("kill -TERM {}", self.pid)).status().await;
        assert!(kill.unwrap().success(), "process {} cannot be asked to end", self.pid);
    }

    /// Waits for its end, and until everything that it said is in the journal.
    pub async fn ended(mut self) -> ExitStatus {
        let status = self.child.wait().await.unwrap();
        self.listening.await.unwrap();
        status
    }

    /// Kills it with SIGKILL, and waits until everything that it said before is in the journal.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
        self.listening.await.unwrap();
    }
}
