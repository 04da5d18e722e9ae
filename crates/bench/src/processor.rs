//! Processor time and memory of processes, as Linux tells them in `/proc`.

use std::time::Duration;

use anyhow::{Context as _, Result};

/// Clock ticks a second in `/proc`; fixed by Linux on all machines this runs on.
const TICKS: u32 = 100;

/// User and system time of a process, all its threads together, in steps of 10 ms.
pub(crate) fn of(pid: u32) -> Result<Duration> {
    let stat = read(&format!("/proc/{pid}/stat"))?;
    // The second field is the program's name in parentheses and may hold blanks.
    let (_, after) = stat.rsplit_once(')').context("an unknown form of /proc/PID/stat")?;
    let fields: Vec<&str> = after.split_whitespace().collect();
    Ok(ticks(fields.get(11)) + ticks(fields.get(12)))
}

/// What all processors of this machine did that was not idling, since it started.
pub(crate) fn busy() -> Result<Duration> {
    let stat = read("/proc/stat")?;
    let all = stat.lines().next().context("an unknown form of /proc/stat")?;
    // user nice system idle iowait irq softirq steal; what follows is part of the first two.
    let fields: Vec<&str> = all.split_whitespace().skip(1).collect();
    Ok([0, 1, 2, 5, 6, 7].into_iter().map(|at| ticks(fields.get(at))).sum())
}

/// Resident memory of a process, in bytes.
pub(crate) fn resident(pid: u32) -> Result<u64> {
    let status = read(&format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.context("no VmRSS in /proc/PID/status")? * 1_024)
}

/// How many processors there are.
pub(crate) fn count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn ticks(field: Option<&&str>) -> Duration {
    let ticks: u32 = field.and_then(|text| text.parse().ok()).unwrap_or(0);
    Duration::from_secs(1) * ticks / TICKS
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {path}, which only Linux has"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_no_more_time_than_the_machine() {
        let own = std::process::id();
        assert!(resident(own).unwrap() > 100_000);
        assert!(of(own).unwrap() <= busy().unwrap());
        assert!(count() > 0);
    }
}
