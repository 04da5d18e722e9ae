//! The demo through the real program: killed five times and run again, it ends with the counts of a calm run.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use acceptance::program::{poolwright, root};
use acceptance::safely;
use poolwright::core::Chance;
use poolwright::prelude::*;
use poolwright_testbed::RedisServer;
use serde_json::Value;
use tokio::process::Command;

use crate::{WORKER, server};

const DOCUMENTS: usize = 60;
const KILLS: u64 = 5;

const WORDS: [&str; 12] = [
    "harbour", "tide", "varnish", "mooring", "lantern", "compass", "keel", "storm", "ledger", "anchor",
    "pilot", "rope",
];

/// A folder with the sample's good and broken files and many more documents.
fn folder(at: &Path) -> PathBuf {
    let folder = at.join("folder");
    copy(&root().join("crates/demo/sample"), &folder);
    let chance = Chance::seeded(42);
    let word = || WORDS[(chance.next() % WORDS.len() as u64) as usize];
    for document in 0..DOCUMENTS {
        let mut text = format!("# The {} of the {}\n", word(), word());
        for part in 0..4 {
            write!(text, "\n## Part {part}: {}\n\n", word()).unwrap();
            for _ in 0..5 {
                let (a, b, c) = (word(), word(), word());
                write!(text, "The {a} and the {b} were kept by the Captain for {c}. ").unwrap();
            }
            text.push('\n');
        }
        std::fs::write(folder.join(format!("document-{document}.md")), text).unwrap();
    }
    std::fs::write(folder.join("empty.md"), "").unwrap();
    std::fs::write(folder.join("no-text.md"), b"\xff\xfe\x00\xd8binary").unwrap();
    std::fs::write(folder.join("mislabelled.png"), "this is no picture").unwrap();
    folder
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

/// A place where the demo runs: its home and its store lie below it.
struct Home {
    program: PathBuf,
    at: PathBuf,
    folder: PathBuf,
    server: Option<RedisServer>,
}

impl Home {
    fn new(program: &Path, at: PathBuf, folder: &Path) -> Self {
        std::fs::create_dir_all(&at).unwrap();
        Self { program: program.to_owned(), at, folder: folder.to_owned(), server: server() }
    }

    /// The URL of its tasks, as the demo takes it or chooses it.
    fn broker(&self) -> String {
        let file = || format!("sqlite://{}", self.at.join(".poolwright/tasks.db").display());
        self.server.as_ref().map_or_else(file, RedisServer::unix_url)
    }

    fn demo(&self) -> Command {
        let mut demo = Command::new(&self.program);
        demo.args(["--json", "demo"]).arg(&self.folder).current_dir(&self.at).kill_on_drop(true);
        for variable in ["POOLWRIGHT_BROKER_URL", "POOLWRIGHT_LEDGER_URL", "POOLWRIGHT_CONFIG"] {
            demo.env_remove(variable);
        }
        if self.server.is_some() {
            demo.args(["--broker", &self.broker()]);
        }
        demo
    }

    /// Runs it to its end.
    async fn run(&self) -> Value {
        let ended = self.demo().output().await.unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{said}");
        serde_json::from_slice(&ended.stdout).unwrap_or_else(|why| panic!("{why}: {said}"))
    }

    /// Kills it when so many attempts have ended in the store, counted over all its lives.
    async fn kill_at(&self, inspector: &TaskInspector, attempts: u64) {
        let mut demo = self.demo().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        loop {
            let ended: u64 =
                inspector.queues().await.unwrap().iter().map(|queue| queue.processed_total).sum();
            if ended >= attempts {
                break;
            }
            let status = demo.try_wait().unwrap();
            assert!(
                status.is_none(),
                "it was over ({status:?}) after {ended} attempts, before its death at {attempts}"
            );
            tokio::task::yield_now().await;
        }
        demo.kill().await.unwrap();
    }
}

/// What a run came to, without what differs from run to run.
fn counts(summary: &Value) -> Value {
    let names = [
        "documents",
        "chunks",
        "images",
        "summaries",
        "questions",
        "terms",
        "wiki_pages",
        "dead_letters",
        "skipped",
        "unfinished",
        "interrupted",
        "dead",
        "left_out",
    ];
    names
        .iter()
        .map(|name| ((*name).to_owned(), summary[*name].clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[tokio::test]
async fn the_demo_killed_five_times_ends_with_the_counts_of_a_calm_run() {
    safely(async {
        let program = poolwright(WORKER);
        let place = tempfile::tempdir().unwrap();
        let folder = folder(place.path());
        let calm = Home::new(&program, place.path().join("calm"), &folder).run().await;
        assert!(
            calm["documents"].as_u64().unwrap() > DOCUMENTS as u64 && calm["images"].as_u64().unwrap() > 0
        );
        assert!(calm["dead_letters"].as_u64().unwrap() >= 3, "{}", calm["dead"]);
        let tasks = calm["tasks"].as_u64().unwrap();

        let wild = Home::new(&program, place.path().join("wild"), &folder);
        let (topology, _) = Topology::load(root().join("queues.toml")).unwrap();
        let inspector = TaskInspector::connect(&wild.broker(), &topology).await.unwrap();
        let chance = Chance::seeded(5);
        for kill in 1..=KILLS {
            let moment = tasks * kill / 8 + chance.next() % (tasks / 16);
            wild.kill_at(&inspector, moment).await;
        }
        let survivor = wild.run().await;
        assert_eq!(counts(&survivor), counts(&calm));

        // Once more: there is nothing left to do.
        let idle = wild.run().await;
        assert_eq!(counts(&idle), counts(&calm));
        let seen = |name: &str| idle[name].as_u64().unwrap();
        assert_eq!((seen("new"), seen("changed"), seen("resumed"), seen("removed")), (0, 0, 0, 0));
    })
    .await;
}
