//! A directory to run the program in, what it said there, and a door to its store for what no command can bring about.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use poolwright::Stores;
use poolwright::broker::{ClaimId, ClaimRequest, Demand, Held, WeightedQueue};
use poolwright::core::{Chance, QueueName, Settlement, TaskId, TaskKey, TaskRecord};
use serde_json::Value;
use tempfile::TempDir;

/// Where the program keeps tasks when nobody says.
pub(crate) const STORE: &str = ".poolwright/tasks.db";

/// A directory of its own.
pub(crate) struct Stage {
    dir: TempDir,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Stage {
    /// An empty directory: the built-in preset holds.
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// The names of what is in the directory.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program with these arguments and no variable of the tester's own.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_poolwright"));
        command.args(args).current_dir(self.dir.path()).env_clear().stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        ran(self.command(args).output().unwrap())
    }

    /// With these variables.
    pub(crate) fn run_in(&self, variables: &[(&str, &str)], args: &[&str]) -> Ran {
        ran(self.command(args).envs(variables.iter().copied()).output().unwrap())
    }

    /// With this on its stdin.
    pub(crate) fn run_on(&self, stdin: impl AsRef<[u8]>, args: &[&str]) -> Ran {
        let mut command = self.command(args);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let bytes = stdin.as_ref().to_vec();
        let writer = std::thread::spawn(move || input.write_all(&bytes));
        let output = child.wait_with_output().unwrap();
        // The program may have seen enough before it has read all.
        let _ = writer.join().unwrap();
        ran(output)
    }

    /// What it prints with `--json`, when it ends well.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        self.run(&[&["--json"], args].concat()).ok().json()
    }

    /// A task under this id in the state in which its type begins.
    pub(crate) fn enqueue(&self, task_type: &str, id: &str) {
        self.run(&["enqueue", task_type, "--payload", r#"{"knowledge_id":"kn_1"}"#, "--id", id]).ok();
    }

    /// The store, as another process would open it.
    pub(crate) fn store<T>(&self, work: impl AsyncFnOnce(&Stores) -> T) -> T {
        self.store_at(&self.path(STORE), work)
    }

    pub(crate) fn store_at<T>(&self, file: &Path, work: impl AsyncFnOnce(&Stores) -> T) -> T {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let stores = Stores::open(&format!("sqlite:{}", file.display()), None).await.unwrap();
            let done = work(&stores).await;
            stores.broker.close().await.unwrap();
            done
        })
    }

    /// The task as it is stored.
    pub(crate) fn record(&self, queue: &str, id: &str) -> Option<TaskRecord> {
        self.store(async |stores| stores.broker.get(key(queue, id)).await.unwrap())
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// It failed: code 1.
    #[track_caller]
    pub(crate) fn failed(self) -> Self {
        assert_eq!(self.code, 1, "{self:?}");
        self
    }

    /// It was used wrongly: code 2, and nothing on stdout.
    #[track_caller]
    pub(crate) fn misused(self) -> Self {
        assert_eq!((self.code, self.stdout.as_str()), (2, ""), "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn says(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "expected `{text}` in {self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn prints(self, text: &str) -> Self {
        assert!(self.stdout.contains(text), "expected `{text}` in {self:?}");
        self
    }

    /// Stdout is one JSON value and nothing else.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }
}

pub(crate) fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn key(queue: &str, id: &str) -> TaskKey {
    TaskKey::new(QueueName::new(queue).unwrap(), TaskId::new(id).unwrap())
}

/// Claims the first pending task of a queue, as a worker does.
pub(crate) async fn claim(stores: &Stores, queue: &str) -> TaskRecord {
    let demand = Demand {
        pool: "core".to_owned().try_into().unwrap(),
        slots: 1,
        queues: vec![WeightedQueue { queue: QueueName::new(queue).unwrap(), weight: 1 }],
        seed: 1,
    };
    let request = ClaimRequest {
        id: ClaimId::fresh(&Chance::seeded(1)),
        resent: false,
        lease: Duration::from_secs(3_600),
        demands: vec![demand],
    };
    stores.broker.claim(request).await.unwrap().claims.pop().expect("a pending task").task
}

/// Claims the first pending task of a queue and ends its attempt so.
pub(crate) async fn settle(stores: &Stores, queue: &str, settlement: Settlement) {
    let task = claim(stores, queue).await;
    let held = Held::of(&task).unwrap();
    stores.broker.settle(vec![(held, settlement)]).await.unwrap().remove(0).unwrap();
}

/// The keys of an object, in their order.
#[track_caller]
pub(crate) fn keys(object: &Value) -> Vec<&str> {
    let object = object.as_object().unwrap_or_else(|| panic!("no object: {object}"));
    object.keys().map(String::as_str).collect()
}
