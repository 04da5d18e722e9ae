//! `servers`: the live worker processes and what they run.

use poolwright::core::Timestamp;
use poolwright::inspector::ServerView;

use crate::ago;
use crate::failure::Failure;
use crate::place::Place;
use crate::print::{self, Output, Paint, Tone};
use crate::table::{Cell, Table};

pub(crate) async fn run(place: &Place, out: &mut Output) -> Result<(), Failure> {
    place
        .look(async |open| {
            let servers = open.inspector().servers().await?;
            out.result(&servers, |paint| text(&servers, open.now(), paint))?;
            if !out.is_json() && servers.is_empty() {
                print::note("no live worker process");
            }
            Ok(())
        })
        .await
}

fn text(servers: &[ServerView], now: Timestamp, paint: Paint) -> String {
    let mut processes = Table::new(&["PROCESS", "STATUS", "STARTED", "HEARD OF", "BUSY WORKERS"]);
    let mut running = Table::new(&["PROCESS", "POOL", "TYPE", "TASK", "STARTED", ""]);
    for server in servers {
        let name = format!("{}:{}", server.host, server.pid);
        let pools: Vec<String> =
            server.pools.iter().map(|pool| format!("{} {}/{}", pool.pool, pool.busy, pool.workers)).collect();
        processes.row([
            Cell::from(&name),
            Cell::from(server.status),
            Cell::of(ago::from_now(now, server.started_at)),
            Cell::of(ago::from_now(now, server.beat_at)),
            Cell::from(pools.join(", ")),
        ]);
        for task in &server.tasks {
            running.row([
                Cell::from(&name),
                Cell::of(&task.pool),
                Cell::of(&task.task_type),
                Cell::of(format!("{}/{}", task.queue, task.id)),
                Cell::of(ago::from_now(now, task.started_at)),
                Cell::from(if task.stalled { "stalled" } else { "" }).tone(Tone::Alarm),
            ]);
        }
    }
    [processes.render(paint), running.render(paint)].join(if servers.is_empty() { "" } else { "\n" })
}
