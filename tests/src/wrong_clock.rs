//! Processes whose host's clock is wrong: libfaketime stands between them and the system's.
//!
//! Where it is not installed the stories are skipped and say so; with `POOLWRIGHT_REQUIRE_FAKETIME` in the environment they fail.

use std::io::{ErrorKind, Write};
use std::process::Command;
use std::sync::OnceLock;

/// In this variable's environment a missing libfaketime is a failure.
const REQUIRED: &str = "POOLWRIGHT_REQUIRE_FAKETIME";

/// The library; none where it is not installed, which is said once.
fn library() -> Option<&'static str> {
    static LIBRARY: OnceLock<Option<String>> = OnceLock::new();
    LIBRARY.get_or_init(look).as_deref()
}

/// The program of that name knows where its library is, and sets it for what it starts. It would stay as the parent of a worker,
/// and be killed in its stead.
fn look() -> Option<String> {
    match Command::new("faketime").args(["-f", "+0s", "sh", "-c", "printf %s \"$LD_PRELOAD\""]).output() {
        Ok(said) if said.status.success() => Some(String::from_utf8(said.stdout).unwrap()),
        Ok(said) => panic!("faketime fails:\n{}", String::from_utf8_lossy(&said.stderr)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            assert!(std::env::var_os(REQUIRED).is_none(), "faketime is not installed, and {REQUIRED} is set");
            // Past what the test harness captures of a test that passes.
            std::io::stderr().write_all(b"skipped: faketime is not installed\n").unwrap();
            None
        }
        Err(error) => panic!("cannot run faketime: {error}"),
    }
}

/// The environment of a process whose host's clock is off by this, such as `-60s`; none without libfaketime. Only what the wall
/// shows is wrong: a wrong host's seconds last as long as any.
#[must_use]
pub fn off_by(offset: &str) -> Option<Vec<(&str, &str)>> {
    let variables = [("LD_PRELOAD", library()?), ("FAKETIME", offset), ("FAKETIME_DONT_FAKE_MONOTONIC", "1")];
    Some(variables.to_vec())
}

/// Panics unless the library is in this process: else a story about wrong clocks would tell of right ones.
pub fn assert_wrong(pid: u32) {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    assert!(maps.contains("libfaketime"), "process {pid} has the right clock");
}
