//! The same stories on Redis: a handler cannot tell which store it runs on. And those that only a server can tell.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bad_handlers;
mod cancel;
mod clock;
mod crash;
mod demo;
mod elastic;
mod failover;
mod isolation;
mod letters;
mod outage_redis;
mod rolling;
mod run_again;
mod sharing;
mod stop;
mod walk;
mod weights;

/// Where each story happens.
fn place(queues: &str) -> acceptance::place::Place {
    acceptance::place::Place::on_redis(queues)
}

/// The server on which the demo keeps its tasks.
fn server() -> Option<poolwright_testbed::RedisServer> {
    Some(acceptance::place::redis_server())
}

/// The program that a story starts, stops and kills.
const WORKER: &str = env!("CARGO_BIN_EXE_story_worker");
