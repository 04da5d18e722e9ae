//! asynq's own command line as operators use it: found, run against one server or cluster, and its tables read.
//!
//! Invariant: it reads no settings and no variables of whoever runs the tests, and the times it prints are UTC.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command as Once, Output};
use std::sync::OnceLock;

use poolwright_testbed::{RedisCluster, RedisServer};
use tokio::process::Command;

use crate::go::SAFETY;

/// Names the program; where it is not set, `asynq` is looked for on the PATH.
const NAMED: &str = "POOLWRIGHT_ASYNQ_CLI";

const CURE: &str = "get it with `go install github.com/hibiken/asynq/tools/asynq@latest`";

/// A row of a table, by the heads of its columns.
pub(crate) type Row = BTreeMap<String, String>;

/// The program with the options by which it reaches a server or a cluster.
pub(crate) struct Asynq {
    program: &'static Path,
    reach: Vec<String>,
}

/// What a call printed.
pub(crate) struct Said(pub(crate) String);

/// The program; none where nobody has it, which is said once.
pub(crate) fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(find).as_deref()
}

fn find() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(NAMED).map(PathBuf::from) {
        assert!(answers(&named), "{NAMED} names {}, which is not asynq's command line", named.display());
        return Some(named);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join("asynq")).find(|program| answers(program));
    if found.is_none() {
        let said =
            format!("skipped: asynq's command line is not on the PATH and {NAMED} is not set; {CURE}\n");
        // Past what the test harness captures of a test that passes.
        std::io::stderr().write_all(said.as_bytes()).unwrap();
    }
    found
}

/// It runs and says that it is asynq.
fn answers(program: &Path) -> bool {
    let said = Once::new(program).arg("version").env_clear().env("HOME", home()).output();
    said.is_ok_and(|said| said.stdout.starts_with(b"asynq version "))
}

/// A directory without its settings file.
const fn home() -> &'static str {
    env!("CARGO_TARGET_TMPDIR")
}

impl Asynq {
    /// On this server; none where nobody has the program.
    pub(crate) fn on(server: &RedisServer) -> Option<Self> {
        let address = format!("127.0.0.1:{}", server.port());
        program().map(|program| Self { program, reach: vec!["--uri".to_owned(), address] })
    }

    /// On this cluster.
    pub(crate) fn on_cluster(cluster: &RedisCluster) -> Option<Self> {
        let nodes: Vec<_> = cluster.nodes().iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        let reach = ["--cluster", "--cluster_addrs", &nodes.join(",")].map(str::to_owned).to_vec();
        program().map(|program| Self { program, reach })
    }

    /// Runs a command, its words divided by blanks, that has to succeed.
    pub(crate) async fn say(&self, command: &str) -> Said {
        let (said, code) = self.run(command).await;
        assert_eq!(code, Some(0), "{command}: {said}");
        Said(said)
    }

    /// Runs a command that has to fail; what it says of that, without the end of the line.
    pub(crate) async fn refuses(&self, command: &str) -> String {
        let (said, code) = self.run(command).await;
        assert_eq!(code, Some(1), "{command}: {said}");
        said.trim_end().to_owned()
    }

    /// The lines of what a command says.
    pub(crate) async fn lines(&self, command: &str) -> Vec<String> {
        self.say(command).await.0.lines().map(str::to_owned).collect()
    }

    /// The only table of what a command says.
    pub(crate) async fn rows(&self, command: &str) -> Vec<Row> {
        let said = self.say(command).await;
        let mut tables = said.tables();
        assert_eq!(tables.len(), 1, "{command}: {}", said.0);
        tables.remove(0)
    }

    async fn run(&self, command: &str) -> (String, Option<i32>) {
        let mut program = Command::new(self.program);
        program.args(&self.reach).args(command.split(' ')).kill_on_drop(true);
        program.env_clear().envs([("HOME", home()), ("TZ", "UTC")]);
        let ended = tokio::time::timeout(SAFETY, program.output()).await.expect("the program hangs");
        let Output { status, stdout, stderr } = ended.unwrap();
        assert!(stderr.is_empty(), "{command}: {}", String::from_utf8_lossy(&stderr));
        (String::from_utf8(stdout).unwrap(), status.code())
    }
}

impl Said {
    /// The value behind a name at the beginning of a line.
    pub(crate) fn value(&self, name: &str) -> &str {
        let found = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        found.unwrap_or_else(|| panic!("it says nothing of {name}: {}", self.0)).trim()
    }

    /// The number that it begins with.
    pub(crate) fn count(&self) -> u64 {
        let first = self.0.split(' ').next().and_then(|word| word.parse().ok());
        first.unwrap_or_else(|| panic!("it begins with no number: {}", self.0))
    }

    /// All tables: a line of heads, one of dashes below each head, and rows until an empty line.
    pub(crate) fn tables(&self) -> Vec<Vec<Row>> {
        let lines: Vec<_> = self.0.lines().collect();
        let rules = (1..lines.len()).filter(|at| is_rule(lines[*at]));
        rules.map(|at| table(lines[at - 1], lines[at], &lines[at + 1..])).collect()
    }
}

fn is_rule(line: &str) -> bool {
    line.starts_with('-') && line.chars().all(|char| char == '-' || char == ' ')
}

fn table(heads: &str, rule: &str, below: &[&str]) -> Vec<Row> {
    let starts: Vec<_> = rule.char_indices().filter(|(at, char)| *char == '-' && begins(rule, *at)).collect();
    let starts: Vec<_> = starts.into_iter().map(|(at, _)| at).collect();
    let heads = cells(heads, &starts);
    let rows = below.iter().take_while(|line| !line.is_empty());
    rows.map(|line| heads.iter().cloned().zip(cells(line, &starts)).collect()).collect()
}

fn begins(rule: &str, at: usize) -> bool {
    at == 0 || rule.as_bytes()[at - 1] == b' '
}

/// The cells of a line, whose columns begin at these characters.
fn cells(line: &str, starts: &[usize]) -> Vec<String> {
    let chars: Vec<char> = line.chars().collect();
    let ends = starts.iter().skip(1).copied().chain([usize::MAX]);
    let cell = |(start, end): (&usize, usize)| {
        let end = end.min(chars.len());
        chars.get(*start..end).unwrap_or_default().iter().collect::<String>().trim().to_owned()
    };
    starts.iter().zip(ends).map(cell).collect()
}

/// A row of these cells.
pub(crate) fn row<const N: usize>(cells: [(&str, &str); N]) -> Row {
    cells.map(|(head, cell)| (head.to_owned(), cell.to_owned())).into()
}

/// The seconds of a span as Go writes it, `1h0m5s`, wherever it stands in the text as a word.
pub(crate) fn seconds(text: &str) -> i64 {
    let words = text.split([' ', '(', ')']);
    words.filter_map(span).next().unwrap_or_else(|| panic!("there is no span in {text:?}"))
}

fn span(word: &str) -> Option<i64> {
    let mut left = word.strip_suffix('s')?;
    let mut sum = 0;
    for (unit, seconds) in [('h', 3_600), ('m', 60)] {
        if let Some((number, rest)) = left.split_once(unit) {
            sum += number.parse::<i64>().ok()? * seconds;
            left = rest;
        }
    }
    Some(sum + left.parse::<i64>().ok()?)
}

/// `Tue Dec  1 12:38:00 UTC 2026` as `2026-12-01T12:38:00`.
pub(crate) fn rfc_3339(text: &str) -> String {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let words: Vec<_> = text.split_whitespace().collect();
    let [_, month, day, time, "UTC", year] = words[..] else { panic!("this is no time in UTC: {text:?}") };
    let month = MONTHS.find(month).expect("a month") / 3 + 1;
    format!("{year}-{month:02}-{day:0>2}T{time}")
}
