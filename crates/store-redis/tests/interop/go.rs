//! Go's asynq as processes: the program of `tests/interop`, built once a test run and spoken to by lines of JSON.
//!
//! Invariant: no process outlives its test. It is killed when it is dropped, and its standard input closes with the test.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

/// In this variable's environment a missing Go is a failure.
const REQUIRED: &str = "POOLWRIGHT_REQUIRE_GO";

/// In this variable's environment what asynq logs is shown.
const LOGGED: &str = "POOLWRIGHT_GO_LOG";

/// Longer than anything here takes; only a failing test waits so long.
pub(crate) const SAFETY: Duration = Duration::from_secs(150);

/// The program; none where Go is not installed, which is said once.
pub(crate) fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(build).as_deref()
}

fn build() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // Two test programs of one run may want it at the same time.
    let lock = File::create(target.join("interop.lock")).unwrap();
    lock.lock().unwrap();
    let program = target.join("interop");
    let mut go = std::process::Command::new("go");
    go.args(["build", "-trimpath", "-o"]).arg(&program).arg(".").current_dir(source());
    match go.output() {
        Ok(built) if built.status.success() => Some(program),
        Ok(built) => panic!("tests/interop does not build:\n{}", String::from_utf8_lossy(&built.stderr)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            assert!(std::env::var_os(REQUIRED).is_none(), "Go is not installed, and {REQUIRED} is set");
            // Past what the test harness captures of a test that passes.
            std::io::stderr().write_all(b"skipped: Go is not installed\n").unwrap();
            None
        }
        Err(error) => panic!("cannot run go: {error}"),
    }
}

/// Where the program's sources are.
pub(crate) fn source() -> PathBuf {
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|dir| dir.join("tests/interop"));
    above.find(|dir| dir.join("go.mod").exists()).expect("the sources lie beside this crate")
}

/// The program with the server that all its processes work on.
#[derive(Clone)]
pub(crate) struct Go {
    program: &'static Path,
    url: String,
}

impl Go {
    /// On the server of this URL, as asynq reads it; none where Go is not installed.
    pub(crate) fn on(url: String) -> Option<Self> {
        program().map(|program| Self { program, url })
    }

    fn spawn(&self, command: &str, args: &[&str]) -> Child {
        let mut child = Command::new(self.program);
        child.arg(command).args(["--redis", &self.url]).args(args);
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        if std::env::var_os(LOGGED).is_none() {
            child.stderr(Stdio::null());
        }
        child.spawn().unwrap()
    }

    /// Runs a command to its end over these lines.
    pub(crate) async fn run(&self, command: &str, args: &[&str], lines: &[Value]) -> Vec<Value> {
        let mut child = self.spawn(command, args);
        let mut words = child.stdin.take().unwrap();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let say = async move { words.write_all(text.as_bytes()).await.unwrap() };
        let run = async { tokio::join!(say, child.wait_with_output()).1.unwrap() };
        let output = tokio::time::timeout(SAFETY, run).await.expect("the program hangs");
        let answers = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{command} {args:?} failed: {answers}");
        answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Enqueues as a producer in Go, which all have to take.
    pub(crate) async fn enqueue(&self, tasks: &[Value]) -> Vec<Value> {
        let answers = self.run("enqueue", &[], tasks).await;
        for (answer, task) in answers.iter().zip(tasks) {
            assert!(answer["error"].is_null(), "{task} was refused: {answer}");
        }
        answers
    }

    /// A call that answers once for each line, for as long as it is kept: `inspect` or `enqueue`.
    pub(crate) fn talk(&self, command: &str) -> Talk {
        let mut child = self.spawn(command, &[]);
        let words = child.stdin.take().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        Talk { _child: child, words, answers }
    }

    /// asynq's inspector.
    pub(crate) fn inspector(&self) -> Inspector {
        Inspector(self.talk("inspect"))
    }

    /// An asynq server, once it is seen by inspectors.
    pub(crate) async fn worker(&self, args: &[&str]) -> Process {
        self.worker_into(&Heard::default(), args).await
    }

    /// The same, whose lines go where those of others go.
    pub(crate) async fn worker_into(&self, heard: &Heard, args: &[&str]) -> Process {
        let args: Vec<&str> = ["--until-eof"].iter().chain(args).copied().collect();
        self.process(heard, "work", &args).await
    }

    /// A command that goes on until it is stopped, once it says `ready`.
    pub(crate) async fn process(&self, heard: &Heard, command: &str, args: &[&str]) -> Process {
        let mut child = self.spawn(command, args);
        let pid = child.id().unwrap();
        let (words, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let listening = tokio::spawn(listen(stdout, heard.clone()));
        let process = Process { child, pid, words, heard: heard.clone(), listening };
        process.heard.line(|line| line["event"] == "ready" && line["pid"] == pid).await;
        process
    }

    /// Every key with its type and contents as text, in order.
    pub(crate) async fn keys(&self) -> Vec<Value> {
        self.run("keys", &["--text"], &[]).await
    }
}

async fn listen(stdout: ChildStdout, heard: Heard) {
    let mut lines = BufReader::new(stdout);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).await.unwrap() > 0 {
        // A line without an end is the last one of a process that was killed while it wrote.
        if line.ends_with(b"\n") {
            let line = serde_json::from_slice(&line).unwrap();
            heard.0.send_modify(|lines| lines.push(line));
        }
        line.clear();
    }
}

/// What processes said, in order; cloning shares it.
#[derive(Clone)]
pub(crate) struct Heard(Arc<watch::Sender<Vec<Value>>>);

impl Default for Heard {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Vec::new())))
    }
}

impl Heard {
    /// Hears of every further line.
    pub(crate) fn subscribe(&self) -> watch::Receiver<Vec<Value>> {
        self.0.subscribe()
    }

    /// Looks at all lines.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&[Value]) -> T) -> T {
        look(&self.0.borrow())
    }

    /// Waits until the lines are like that.
    pub(crate) async fn until(&self, mut holds: impl FnMut(&[Value]) -> bool) {
        let mut news = self.0.subscribe();
        let held = tokio::time::timeout(SAFETY, news.wait_for(|lines| holds(lines))).await;
        if held.is_err() {
            self.look(|lines| panic!("this is not all that was to be said: {lines:#?}"));
        }
    }

    /// Waits for the first line like that.
    pub(crate) async fn line(&self, mut like: impl FnMut(&Value) -> bool) -> Value {
        let mut found = Value::Null;
        self.until(|lines| {
            found = lines.iter().find(|line| like(line)).cloned().unwrap_or_default();
            !found.is_null()
        })
        .await;
        found
    }
}

/// A process that goes on until it is stopped or killed.
pub(crate) struct Process {
    child: Child,
    pub(crate) pid: u32,
    words: ChildStdin,
    /// What it said.
    pub(crate) heard: Heard,
    listening: JoinHandle<()>,
}

impl Process {
    /// Waits for its first event of this name on this task.
    pub(crate) async fn event(&self, event: &str, id: &str) -> Value {
        let pid = self.pid;
        self.heard.line(|line| line["event"] == event && line["id"] == id && line["pid"] == pid).await
    }

    /// How often it said this of a task.
    pub(crate) fn count(&self, event: &str, id: &str) -> usize {
        let is = |line: &&Value| line["event"] == event && line["id"] == id && line["pid"] == self.pid;
        self.heard.look(|lines| lines.iter().filter(is).count())
    }

    /// Tells it something.
    pub(crate) async fn say(&mut self, line: Value) {
        self.words.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Stops it as by TERM, and waits for its end.
    pub(crate) async fn stop(self) {
        let Self { mut child, pid, words, heard, listening } = self;
        drop(words);
        let ended = tokio::time::timeout(SAFETY, child.wait()).await.expect("it hangs at its end");
        listening.await.unwrap();
        assert!(ended.unwrap().success());
        assert!(
            heard.look(|lines| lines.iter().any(|line| line["event"] == "stopped" && line["pid"] == pid))
        );
    }

    /// Kills it with SIGKILL, and waits until all that it said is heard.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
        self.listening.await.unwrap();
    }
}

/// Lines in, answers out.
pub(crate) struct Talk {
    _child: Child,
    words: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Talk {
    pub(crate) async fn ask(&mut self, line: Value) -> Value {
        self.words.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        let answer = tokio::time::timeout(SAFETY, self.answers.next_line()).await.expect("no answer comes");
        serde_json::from_str(&answer.unwrap().expect("it answers every line")).unwrap()
    }
}

/// asynq's inspector, a call a line.
pub(crate) struct Inspector(Talk);

impl Inspector {
    /// The answer, or asynq's refusal: its kind and text.
    pub(crate) async fn ask(&mut self, call: Value) -> Result<Value, Value> {
        let answer = self.0.ask(call).await;
        if answer["error"].is_null() { Ok(answer["result"].clone()) } else { Err(answer) }
    }

    /// The answer to a call that has to succeed.
    pub(crate) async fn get(&mut self, call: Value) -> Value {
        self.ask(call.clone()).await.unwrap_or_else(|error| panic!("{call} was refused: {error}"))
    }

    /// A call on a queue or one of its tasks that has to succeed.
    pub(crate) async fn act(&mut self, op: &str, queue: &str, id: &str) -> Value {
        let call = match id {
            "" => json!({"op": op, "queue": queue}),
            id => json!({"op": op, "queue": queue, "id": id}),
        };
        self.get(call).await
    }

    /// The ids of a queue's tasks in a state, as asynq lists them.
    pub(crate) async fn ids(&mut self, queue: &str, state: &str) -> Vec<String> {
        self.list(queue, state).await.iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
    }

    /// A queue's tasks in a state.
    pub(crate) async fn list(&mut self, queue: &str, state: &str) -> Vec<Value> {
        let tasks = self.get(json!({"op": "list", "queue": queue, "state": state, "size": 100})).await;
        tasks.as_array().unwrap().clone()
    }

    /// The state of a task, or the kind of the refusal.
    pub(crate) async fn state(&mut self, queue: &str, id: &str) -> String {
        let answer = self.ask(json!({"op": "task", "queue": queue, "id": id})).await;
        let word = answer.map_or_else(|error| error["kind"].clone(), |task| task["state"].clone());
        word.as_str().unwrap().to_owned()
    }

    /// Waits until a task is in this state.
    pub(crate) async fn until_state(&mut self, queue: &str, id: &str, state: &str) {
        let what = format!("{queue}/{id} is {state}");
        until(&what, async || (self.state(queue, id).await == state).then_some(())).await;
    }
}

/// Looks until it is so, for up to [`SAFETY`].
pub(crate) async fn until<T>(what: &str, look: impl AsyncFnMut() -> Option<T>) -> T {
    let look = Mutex::new(look);
    let looks = async {
        loop {
            // Its patience ends earlier than ours.
            let seen = poolwright_testbed::until(what, async || {
                let mut look = look.lock().await;
                look().await.ok_or("not yet")
            });
            if let Ok(seen) = seen.await {
                return seen;
            }
        }
    };
    tokio::time::timeout(SAFETY, looks).await.unwrap_or_else(|_| panic!("it does not come to this: {what}"))
}
