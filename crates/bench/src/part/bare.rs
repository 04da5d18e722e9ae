//! The least that the layout asks for: one connection, scripts that take many tasks, and no worker around them.
//!
//! No leases are kept alive, no tokens, no state, no checks, no retries: what this Redis can do, to hold a system against.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use clap::Args;
use poolwright_core::clock::SystemClock;
use poolwright_core::{Chance, Clock as _, QueueName, TaskId};
use poolwright_store_redis::keys::Keys;
use poolwright_store_redis::wire::{TaskMessage, Wire as _};
use poolwright_testbed::Reply;

use super::enqueue::BATCH;
use super::stage::{self, Orders};
use super::{PAYLOAD, QUEUE, TASK};
use crate::load::Shape;
use crate::server::Server;

/// KEYS pending; ARGV prefix, time, then id and message of each task.
const ENQUEUE: &str = r"
local ids = {}
for i = 3, #ARGV, 2 do
  redis.call('HSET', ARGV[1] .. 't:' .. ARGV[i], 'msg', ARGV[i + 1], 'state', 'pending', 'pending_since', ARGV[2])
  ids[#ids + 1] = ARGV[i]
end
redis.call('LPUSH', KEYS[1], unpack(ids))
";

/// KEYS pending, active, lease, processed, processed of the day; ARGV prefix, end of the leases, how many to claim, then the
/// ids that are done. Returns id and message of each claimed task.
const EXCHANGE: &str = r"
local ids, tasks = {}, {}
for i = 4, #ARGV do
  redis.call('LREM', KEYS[2], -1, ARGV[i])
  ids[#ids + 1], tasks[#tasks + 1] = ARGV[i], ARGV[1] .. 't:' .. ARGV[i]
end
if #ids > 0 then
  redis.call('ZREM', KEYS[3], unpack(ids))
  redis.call('DEL', unpack(tasks))
  redis.call('INCRBY', KEYS[4], #ids)
  redis.call('INCRBY', KEYS[5], #ids)
end
local claimed = redis.call('RPOP', KEYS[1], ARGV[3])
if not claimed then return {} end
local leases, out = {}, {}
for i, id in ipairs(claimed) do
  leases[2 * i - 1], leases[2 * i] = ARGV[2], id
  out[2 * i - 1], out[2 * i] = id, redis.call('HGET', ARGV[1] .. 't:' .. id, 'msg')
end
redis.call('LPUSH', KEYS[2], unpack(claimed))
redis.call('ZADD', KEYS[3], unpack(leases))
return out
";

/// How many, and in what shape: single calls or batches.
#[derive(Debug, Args)]
pub(crate) struct Enqueue {
    #[arg(long)]
    redis: String,
    #[arg(long)]
    tasks: usize,
    #[arg(long)]
    shape: Shape,
    #[arg(long, default_value_t = 0)]
    subjects: u32,
}

impl Enqueue {
    pub(super) async fn play(self) -> Result<()> {
        ensure!(self.shape != Shape::Callers, "the bare scripts have one caller");
        ensure!(self.subjects == 0, "the bare scripts keep no subjects");
        let mut orders = Orders::listen();
        let (script, chance) = (Script::load(&self.redis, ENQUEUE).await?, Chance::from_entropy());
        let keys = keys()?;
        let batch = if self.shape == Shape::One { 1 } else { BATCH };
        orders.ready().await?;
        let began = Instant::now();
        for first in (0..self.tasks).step_by(batch) {
            let mut args: Vec<Vec<u8>> =
                vec![keys.prefix().into(), since_epoch()?.as_nanos().to_string().into()];
            for _ in first..self.tasks.min(first + batch) {
                let id = TaskId::fresh(SystemClock.now(), &chance);
                args.push(id.as_str().into());
                args.push(message(&id).to_bytes());
            }
            script.run(&[keys.pending()], args).await?;
        }
        stage::done(began.elapsed());
        orders.end().await;
        Ok(())
    }
}

/// How many to claim at once, and how many there are.
#[derive(Debug, Args)]
pub(crate) struct Work {
    #[arg(long)]
    redis: String,
    #[arg(long)]
    workers: usize,
    #[arg(long)]
    tasks: usize,
}

impl Work {
    pub(super) async fn play(self) -> Result<()> {
        let mut orders = Orders::listen();
        let script = Script::load(&self.redis, EXCHANGE).await?;
        let of = keys()?;
        let keys = [of.pending(), of.active(), of.lease(), of.processed(), of.processed_on("bench")];
        orders.ready().await?;
        let began = Instant::now();
        let (mut ids, mut done): (Vec<Vec<u8>>, usize) = (Vec::new(), 0);
        loop {
            let lease = (since_epoch()?.as_secs() + 30).to_string();
            let slots = self.workers.min(self.tasks - done - ids.len()).max(1).to_string();
            let mut args: Vec<Vec<u8>> = vec![of.prefix().into(), lease.into(), slots.into()];
            done += ids.len();
            args.append(&mut ids);
            let reply = script.run(&keys, args).await?;
            for pair in reply.items().chunks_exact(2) {
                let (Reply::Bytes(id), Reply::Bytes(message)) = (&pair[0], &pair[1]) else {
                    anyhow::bail!("a claimed task has no message");
                };
                // A worker has to read it; so this one does.
                let _task = TaskMessage::from_bytes(message)?;
                ids.push(id.clone());
            }
            if ids.is_empty() {
                break;
            }
        }
        stage::done(began.elapsed());
        orders.end().await;
        Ok(())
    }
}

/// A script that the server has.
struct Script {
    server: Server,
    sha: String,
}

impl Script {
    async fn load(redis: &str, text: &str) -> Result<Self> {
        let server = Server::join(redis).await?;
        let sha = server.command(&["SCRIPT", "LOAD", text]).await?;
        let sha = sha.text().context("a script has a digest")?.to_owned();
        Ok(Self { server, sha })
    }

    async fn run(&self, keys: &[String], args: Vec<Vec<u8>>) -> Result<Reply> {
        let mut command: Vec<Vec<u8>> =
            vec!["EVALSHA".into(), self.sha.clone().into(), keys.len().to_string().into()];
        command.extend(keys.iter().map(|key| key.clone().into_bytes()));
        command.extend(args);
        self.server.command(&command).await
    }
}

fn keys() -> Result<Keys> {
    Ok(Keys::of(&QueueName::new(QUEUE)?))
}

fn message(id: &TaskId) -> TaskMessage {
    TaskMessage {
        task_type: TASK.to_owned(),
        payload: Bytes::from_static(&PAYLOAD),
        id: id.as_str().to_owned(),
        queue: QUEUE.to_owned(),
        retry: 25,
        timeout: 1_800,
        ..TaskMessage::default()
    }
}

fn since_epoch() -> Result<Duration> {
    let micros = u64::try_from(SystemClock.now().as_micros())?;
    Ok(Duration::from_micros(micros))
}
