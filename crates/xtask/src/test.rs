//! The one test command: format, tidy, lints, docs and every test, in the order in which they fail fastest.
//!
//! No step builds what another has built. Clippy and rustdoc share the checked dependencies, the tests build the
//! only real artefacts, and all take the whole workspace with the same features and no flags that cargo would count
//! as another build (`-D warnings` reaches clippy and rustdoc, not rustc).

use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use crate::child::Child;
use crate::tally::Tally;
use crate::{setup, tidy};

/// One step of the run.
struct Step {
    name: &'static str,
    work: Work,
}

enum Work {
    Setup,
    Tidy,
    Run(Child),
    /// Like `Run`; its closing lines are counted.
    Tests(Child),
}

fn steps(with_setup: bool) -> Vec<Step> {
    let step = |name, work| Step { name, work };
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let doc = Child::cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    let mut steps = vec![
        step("fmt", Work::Run(Child::cargo(&["fmt", "--all", "--check"]))),
        step("tidy", Work::Tidy),
        step("clippy", Work::Run(Child::cargo(&clippy))),
        step("doc", Work::Run(doc)),
        // A failure in one program hides none in the next.
        step("test", Work::Tests(Child::cargo(&["test", "--workspace", "--no-fail-fast"]))),
    ];
    if with_setup {
        steps.insert(0, step("setup", Work::Setup));
    }
    steps
}

impl Step {
    /// The command that repeats this step alone.
    fn command(&self) -> String {
        match &self.work {
            Work::Setup => "cargo xtask test --setup".to_owned(),
            Work::Tidy => "cargo xtask tidy".to_owned(),
            Work::Run(child) | Work::Tests(child) => child.to_string(),
        }
    }

    fn perform(&self, root: &Path, tally: &mut Tally) -> Result<()> {
        match &self.work {
            Work::Setup => setup::run(root),
            Work::Tidy => tidy::run(root),
            Work::Run(child) => child.run(root),
            Work::Tests(child) => {
                child.watch(root, |line| tally.add(line))?;
                ensure!(tally.passed > 0, "expected tests to run, found no closing line of the runner");
                Ok(())
            }
        }
    }
}

/// Runs every step in the workspace at `root` and prints a summary on stdout.
///
/// # Errors
/// At the first step that fails, naming the command that repeats it.
pub(crate) fn run(root: &Path, with_setup: bool) -> Result<()> {
    run_steps(root, &steps(with_setup))
}

fn run_steps(root: &Path, steps: &[Step]) -> Result<()> {
    let mut summary = Summary::default();
    for step in steps {
        println!("==> {}: {}", step.name, step.command());
        let started = Instant::now();
        let outcome = step.perform(root, &mut summary.tally);
        let took = started.elapsed();
        println!("<== {}: {:.1} s", step.name, took.as_secs_f64());
        summary.steps.push(Row { name: step.name, passed: outcome.is_ok(), took });
        if let Err(error) = outcome {
            print!("{summary}");
            bail!("step {} failed: {error:#}\nto repeat it: {}", step.name, step.command());
        }
    }
    print!("{summary}");
    Ok(())
}

/// What came of a run.
#[derive(Default)]
struct Summary {
    steps: Vec<Row>,
    tally: Tally,
}

struct Row {
    name: &'static str,
    passed: bool,
    took: Duration,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f)?;
        for Row { name, passed, took } in &self.steps {
            let outcome = if *passed { "ok" } else { "FAILED" };
            writeln!(f, "{name:<8} {outcome:<6} {:>8.1} s", took.as_secs_f64())?;
        }
        let whole: Duration = self.steps.iter().map(|row| row.took).sum();
        let outcome = if self.steps.iter().all(|row| row.passed) { "ok" } else { "FAILED" };
        writeln!(f, "{:<8} {outcome:<6} {:>8.1} s", "all", whole.as_secs_f64())?;
        if self.tally.programs > 0 { writeln!(f, "tests: {}", self.tally) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(with_setup: bool) -> Vec<&'static str> {
        steps(with_setup).iter().map(|step| step.name).collect()
    }

    #[test]
    fn the_steps_come_in_the_order_of_the_readme() {
        assert_eq!(names(false), ["fmt", "tidy", "clippy", "doc", "test"]);
        assert_eq!(names(true)[0], "setup");
        assert_eq!(names(true)[1..], names(false));
    }

    #[test]
    fn every_step_can_be_repeated_by_a_command() {
        let commands: Vec<String> = steps(true).iter().map(Step::command).collect();
        assert_eq!(
            commands,
            [
                "cargo xtask test --setup",
                "cargo fmt --all --check",
                "cargo xtask tidy",
                "cargo clippy --workspace --all-targets -- -D warnings",
                "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps",
                "cargo test --workspace --no-fail-fast",
            ]
        );
    }

    #[test]
    fn a_run_stops_at_the_first_failure_and_names_the_step() {
        // There is no workspace here for tidy to read, and no such program for the step after it.
        let dir = tempfile::tempdir().unwrap();
        let steps = [
            Step { name: "tidy", work: Work::Tidy },
            Step { name: "next", work: Work::Run(Child::new("no-such-program", &[])) },
        ];
        let error = run_steps(dir.path(), &steps).unwrap_err().to_string();
        let expected =
            "step tidy failed: expected Cargo.toml, found no such file\nto repeat it: cargo xtask tidy";
        assert_eq!(error, expected);
    }

    #[test]
    fn a_run_without_a_single_test_fails() {
        let quiet = [Step { name: "test", work: Work::Tests(Child::cargo(&["--version"])) }];
        let error = run_steps(Path::new("."), &quiet).unwrap_err().to_string();
        assert!(error.contains("found no closing line"), "{error}");
    }

    #[test]
    fn the_summary_shows_steps_durations_and_tests() {
        let row = |name, passed, millis| Row { name, passed, took: Duration::from_millis(millis) };
        let tally = Tally { passed: 7, failed: 1, ignored: 0, programs: 2 };
        let summary = Summary { steps: vec![row("fmt", true, 1_240), row("test", false, 61_000)], tally };
        let expected = "\nfmt      ok          1.2 s\ntest     FAILED     61.0 s\nall      FAILED     62.2 s\n\
            tests: 7 passed, 1 failed, 0 ignored in 2 test programs\n";
        assert_eq!(summary.to_string(), expected);
    }
}
