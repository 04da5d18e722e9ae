//! Where a comparison was made, in one line.

use std::process::Command;

use anyhow::Result;
use poolwright_core::Clock as _;
use poolwright_core::clock::SystemClock;

use crate::processor;
use crate::server::Server;

/// Processors, system, server and programs; what cannot be told is left out.
pub(crate) async fn describe(server: &Server) -> Result<String> {
    let info = server.command(&["INFO", "server"]).await?;
    let redis = info.line("redis_version").map(|version| format!("Redis {}", version.trim()));
    let go = said_by("go", &["env", "GOVERSION"]).map(|version| format!("asynq 0.26.0 on {version}"));
    let today = SystemClock.now().to_string();
    let today = today.split('T').next().map(str::to_owned);
    let parts = [Some(processors()), system(), redis, go, today];
    Ok(parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn processors() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown", |(_, model)| model.trim());
    format!("{} × {model}", processor::count())
}

fn system() -> Option<String> {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(format!("Linux {}", release.trim()))
}

fn said_by(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
