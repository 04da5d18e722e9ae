//! Heartbeats: our own record of a process, and one of asynq's for each of its pools, for the screens of both.
//!
//! | Key | Holds |
//! | --- | --- |
//! | `poolwright:servers` | ids of processes by the end of their record |
//! | `poolwright:server:{id}` | time, end and the whole heartbeat |
//! | `asynq:servers`, `asynq:servers:{…}` | each pool as a server: its queues, weights and workers |
//! | `asynq:workers`, `asynq:workers:{…}` | what the pool runs |
//!
//! Servers of Go programs are shown as processes with one pool, `asynq`.

use std::collections::HashSet;
use std::time::Duration;

use poolwright_broker::{Error, PoolBeat, RunningTask, ServerBeat, ServerId, WeightedQueue};
use poolwright_core::{PoolName, QueueName, TaskId, TaskKey, Timestamp, TypeName};
use redis::{Cmd, Value};

use crate::RedisStore;
use crate::keys::{self, SERVERS, WORKERS};
use crate::link::{CallError, Kind};
use crate::script::BEAT;
use crate::submit::micros;
use crate::wire::{self, QueueWeight, ServerInfo, Wire, WorkerInfo};

/// What a server of a Go program shows as its pool.
const GO_POOL: &str = "asynq";

/// Stands in the ids of our servers, before the pool, and in no id of a Go server, which is a UUID.
const OURS: char = '/';

/// What asynq allows an attempt that says nothing else.
const TIMEOUT: Duration = Duration::from_secs(30 * 60);

impl RedisStore {
    pub(crate) async fn beat_as(&self, server: ServerBeat, lasts: Duration) -> Result<(), Error> {
        let json = serde_json::to_string(&server)
            .map_err(|error| Error::Refused { why: format!("a heartbeat cannot be written: {error}") })?;
        let mut call = self.call(&BEAT);
        call.key(keys::process(&server.id.0)).number(micros(lasts)).arg(json);
        if self.link.is_cluster() {
            let over = self.run(call, Kind::Write).await?.time()?;
            return self.beat_each(&server, over).await;
        }
        call.key(keys::PROCESSES.to_owned()).key(SERVERS.to_owned()).key(WORKERS.to_owned());
        call.arg(server.id.0.clone());
        for pool in &server.pools {
            let (record, workers) = pool_keys(&server, &pool.pool);
            let running = self.running(&server, pool);
            call.key(record).key(workers).arg(info(&server, pool).to_bytes());
            call.number(i128::try_from(running.len()).unwrap_or(0));
            for (id, worker) in running {
                call.arg(id).arg(worker);
            }
        }
        let mut parts = self.run(call, Kind::Write).await?;
        parts.time()?;
        let mut others = parts.list()?;
        let mut queues = HashSet::new();
        while others.len() > 0 {
            // What cannot be read is left out, as asynq does.
            if let Ok(info) = ServerInfo::from_bytes(&others.bytes()?) {
                queues.extend(weighted(&info).map(|drawn| drawn.queue));
            }
        }
        self.shared.note(queues);
        Ok(())
    }

    /// The same by a command a key, where each has a slot of its own.
    async fn beat_each(&self, server: &ServerBeat, over: Timestamp) -> Result<(), Error> {
        let mut commands = vec![zadd(keys::PROCESSES, over, &server.id.0)];
        for pool in &server.pools {
            commands.extend(self.pool_commands(server, pool, over));
        }
        self.send(commands).await?;
        let others = self.go_servers(self.time.now()).await?;
        let queues = others.into_iter().flat_map(|server| server.pools).flat_map(|pool| pool.queues);
        self.shared.note(queues.map(|drawn| drawn.queue).collect());
        Ok(())
    }

    /// What a pool runs, by id, as asynq shows it.
    fn running(&self, server: &ServerBeat, pool: &PoolBeat) -> Vec<(String, Vec<u8>)> {
        let tasks = server.tasks.iter().filter(|task| task.pool == pool.pool);
        tasks.map(|task| (task.key.id.as_str().to_owned(), self.worker(server, task).to_bytes())).collect()
    }

    pub(crate) async fn retire_as(&self, id: ServerId) -> Result<(), Error> {
        let own = keys::process(&id.0);
        let server = self.process(&own).await?.map(|(_, server)| server);
        let mut commands = Vec::new();
        for pool in server.iter().flat_map(|server| &server.pools) {
            let (record, workers) = pool_keys(server.as_ref().expect("it has this pool"), &pool.pool);
            for (index, key) in [(SERVERS, record), (WORKERS, workers)] {
                commands.push((index.to_owned(), two("ZREM", index, &key)));
                commands.push((key.clone(), one("DEL", &key)));
            }
        }
        commands.push((own.clone(), one("DEL", &own)));
        commands.push((keys::PROCESSES.to_owned(), two("ZREM", keys::PROCESSES, &id.0)));
        self.send(commands).await
    }

    /// Sends commands of several slots, in one round trip where one node has them all.
    async fn send(&self, commands: Vec<(String, Cmd)>) -> Result<(), Error> {
        if self.link.is_cluster() {
            for (key, command) in commands {
                self.link.call(Some(key.as_bytes()), command, Kind::Write).await?;
            }
            return Ok(());
        }
        let mut pipeline = redis::pipe();
        for (_, command) in commands {
            pipeline.add_command(command);
        }
        for answer in self.link.pipeline(None, pipeline, Kind::Write).await? {
            answer?;
        }
        Ok(())
    }

    fn pool_commands(&self, server: &ServerBeat, pool: &PoolBeat, over: Timestamp) -> Vec<(String, Cmd)> {
        let (record, workers) = pool_keys(server, &pool.pool);
        let mut set = one("SET", &record);
        set.arg(info(server, pool).to_bytes()).arg("PXAT").arg(millis(over));
        let mut commands = vec![
            zadd(SERVERS, over, &record),
            zadd(WORKERS, over, &workers),
            (record.clone(), set),
            (workers.clone(), one("DEL", &workers)),
        ];
        let running = self.running(server, pool);
        if !running.is_empty() {
            let mut fields = one("HSET", &workers);
            for (id, worker) in running {
                fields.arg(id).arg(worker);
            }
            let mut expire = one("PEXPIREAT", &workers);
            expire.arg(millis(over));
            commands.extend([(workers.clone(), fields), (workers, expire)]);
        }
        commands
    }

    fn worker(&self, server: &ServerBeat, task: &RunningTask) -> WorkerInfo {
        let running = self.held.get(&task.key);
        let deadline = running.as_ref().map(|running| running.deadline).filter(|at| *at != Timestamp::MAX);
        WorkerInfo {
            host: server.host.clone(),
            pid: pid(server.pid),
            server_id: pool_id(server, &task.pool),
            task_id: task.key.id.as_str().to_owned(),
            task_type: task.task_type.as_str().to_owned(),
            task_payload: running.map(|running| running.payload).unwrap_or_default(),
            queue: task.key.queue.as_str().to_owned(),
            start_time: Some(wire_time(task.started_at)),
            deadline: Some(wire_time(deadline.unwrap_or(task.started_at + TIMEOUT))),
        }
    }

    /// All servers whose record has not expired: ours, and those of Go programs.
    pub(crate) async fn all_servers(&self) -> Result<Vec<ServerBeat>, Error> {
        let now = self.time.now();
        let mut servers = self.our_servers(now).await?;
        servers.extend(self.go_servers(now).await?);
        servers.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(servers)
    }

    async fn our_servers(&self, now: Timestamp) -> Result<Vec<ServerBeat>, Error> {
        let mut servers = Vec::new();
        for id in self.members(keys::PROCESSES, "-inf").await? {
            match self.process(&keys::process(&id)).await? {
                Some((over, server)) if over > now => servers.push(server),
                _ => {
                    let command = two("ZREM", keys::PROCESSES, &id);
                    self.link.call(Some(keys::PROCESSES.as_bytes()), command, Kind::Write).await?;
                }
            }
        }
        Ok(servers)
    }

    /// A record of ours: until when it lasts, and what it says.
    async fn process(&self, key: &str) -> Result<Option<(Timestamp, ServerBeat)>, Error> {
        let answer = self.link.call(Some(key.as_bytes()), one("GET", key), Kind::Read).await?;
        let Value::BulkString(bytes) = answer else { return Ok(None) };
        Ok(read_process(&String::from_utf8_lossy(&bytes)))
    }

    async fn members(&self, key: &str, from: &str) -> Result<Vec<String>, Error> {
        let mut command = one("ZRANGEBYSCORE", key);
        command.arg(from).arg("+inf");
        let answer = self.link.call(Some(key.as_bytes()), command, Kind::Read).await?;
        Ok(texts(answer))
    }

    async fn go_servers(&self, now: Timestamp) -> Result<Vec<ServerBeat>, Error> {
        let mut servers = Vec::new();
        for key in self.members(SERVERS, &now.as_secs().to_string()).await? {
            // What cannot be read is left out, as asynq does.
            let answer = self.link.call(Some(key.as_bytes()), one("GET", &key), Kind::Read).await;
            let Value::BulkString(bytes) = unless_of_wrong_type(answer)? else { continue };
            let Ok(info) = ServerInfo::from_bytes(&bytes) else { continue };
            if info.server_id.contains(OURS) {
                continue;
            }
            let workers = keys::workers_beside(&key);
            let running = self.link.call(Some(workers.as_bytes()), one("HVALS", &workers), Kind::Read).await;
            servers.extend(go_server(info, unless_of_wrong_type(running)?, now));
        }
        Ok(servers)
    }
}

/// Nothing where something of another type stands.
fn unless_of_wrong_type(answer: Result<Value, CallError>) -> Result<Value, CallError> {
    match answer {
        Err(error) if error.code() == Some("WRONGTYPE") => Ok(Value::Nil),
        answer => answer,
    }
}

fn read_process(text: &str) -> Option<(Timestamp, ServerBeat)> {
    let mut parts = text.splitn(3, ' ');
    let mut time = || Some(Timestamp::from_micros(parts.next()?.parse().ok()?));
    let (beat_at, over) = (time()?, time()?);
    let server: ServerBeat = serde_json::from_str(parts.next()?).ok()?;
    Some((over, ServerBeat { beat_at, ..server }))
}

fn go_server(info: ServerInfo, running: Value, now: Timestamp) -> Option<ServerBeat> {
    let pool = PoolName::new(GO_POOL).ok()?;
    let count = |number: i32| u32::try_from(number).unwrap_or(0);
    let beat = PoolBeat {
        pool: pool.clone(),
        workers: count(info.concurrency),
        busy: count(info.active_worker_count),
        stalled: 0,
        queues: weighted(&info).collect(),
    };
    Some(ServerBeat {
        id: ServerId(format!("{}:{}:{}", info.host, info.pid, info.server_id)),
        host: info.host,
        pid: count(info.pid),
        started_at: info.start_time.as_ref().map_or(Timestamp::EPOCH, time),
        beat_at: now,
        stopping: info.status != "active",
        pools: vec![beat],
        tasks: values(running).into_iter().filter_map(|bytes| go_task(&bytes, &pool)).collect(),
    })
}

/// The queues of a server of asynq's; what is none to us is left out.
fn weighted(info: &ServerInfo) -> impl Iterator<Item = WeightedQueue> {
    info.queues.iter().filter_map(|drawn| {
        let queue = QueueName::new(drawn.queue.as_deref()?).ok()?;
        Some(WeightedQueue { queue, weight: u32::try_from(drawn.weight?).ok()? })
    })
}

fn go_task(bytes: &[u8], pool: &PoolName) -> Option<RunningTask> {
    let worker = WorkerInfo::from_bytes(bytes).ok()?;
    let key = TaskKey::new(QueueName::new(&worker.queue).ok()?, TaskId::new(&worker.task_id).ok()?);
    Some(RunningTask {
        key,
        task_type: TypeName::new(&worker.task_type).ok()?,
        pool: pool.clone(),
        started_at: worker.start_time.as_ref().map_or(Timestamp::EPOCH, time),
        stalled: false,
    })
}

/// A pool as asynq shows a server.
fn info(server: &ServerBeat, pool: &PoolBeat) -> ServerInfo {
    let number = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    let queues = pool.queues.iter().map(|drawn| QueueWeight {
        queue: Some(drawn.queue.as_str().to_owned()),
        weight: Some(number(drawn.weight)),
    });
    ServerInfo {
        host: server.host.clone(),
        pid: pid(server.pid),
        server_id: pool_id(server, &pool.pool),
        concurrency: number(pool.workers),
        queues: queues.collect(),
        strict_priority: false,
        status: if server.stopping { "stopped" } else { "active" }.to_owned(),
        start_time: Some(wire_time(server.started_at)),
        active_worker_count: number(pool.busy),
    }
}

/// What tells a pool's server from others: the random part of the process's id, and the pool.
fn pool_id(server: &ServerBeat, pool: &PoolName) -> String {
    let own = server.id.0.rsplit(':').next().unwrap_or_default();
    format!("{own}{OURS}{pool}")
}

fn pool_keys(server: &ServerBeat, pool: &PoolName) -> (String, String) {
    let id = pool_id(server, pool);
    (keys::server(&server.host, server.pid, &id), keys::workers(&server.host, server.pid, &id))
}

fn pid(pid: u32) -> i32 {
    i32::try_from(pid).unwrap_or(i32::MAX)
}

pub(crate) fn wire_time(time: Timestamp) -> wire::Timestamp {
    let micros = time.as_micros();
    let nanos = i32::try_from(micros.rem_euclid(1_000_000) * 1_000).unwrap_or(0);
    wire::Timestamp { seconds: micros.div_euclid(1_000_000), nanos }
}

fn time(time: &wire::Timestamp) -> Timestamp {
    let micros = time.seconds.saturating_mul(1_000_000).saturating_add(i64::from(time.nanos) / 1_000);
    Timestamp::from_micros(micros)
}

/// The end of a time as Redis takes it; what comes later than it can hold is its latest.
fn millis(over: Timestamp) -> i64 {
    over.as_millis().saturating_add(1).min(9_200_000_000_000_000)
}

fn zadd(index: &str, over: Timestamp, member: &str) -> (String, Cmd) {
    let mut command = one("ZADD", index);
    command.arg(over.as_secs() + 1).arg(member);
    (index.to_owned(), command)
}

fn one(name: &str, key: &str) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(key);
    command
}

fn two(name: &str, key: &str, member: &str) -> Cmd {
    let mut command = one(name, key);
    command.arg(member);
    command
}

pub(crate) fn values(answer: Value) -> Vec<Vec<u8>> {
    let Value::Array(values) = answer else { return Vec::new() };
    let bytes = |value| match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    };
    values.into_iter().filter_map(bytes).collect()
}

fn texts(answer: Value) -> Vec<String> {
    values(answer).into_iter().filter_map(|bytes| String::from_utf8(bytes).ok()).collect()
}
