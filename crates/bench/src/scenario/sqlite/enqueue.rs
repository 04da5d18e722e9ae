//! How many tasks a second the store takes.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use futures_util::future::try_join_all;

use super::bare::Bare;
use super::figure::Figure;
use super::world::{PAYLOAD, World};

/// Tasks in a batch.
pub(crate) const BATCH: usize = 100;

/// Callers that send single tasks.
const CALLERS: usize = 50;

/// One caller, batches of 100.
pub(crate) async fn batches(world: &World, tasks: usize) -> Result<Figure> {
    let store = world.store()?;
    let began = Instant::now();
    for _ in 0..tasks / BATCH {
        for outcome in store.enqueue((0..BATCH).map(|_| world.task("bench")).collect()).await? {
            outcome?;
        }
    }
    let figure = Figure::rate("enqueue, batches of 100", tasks / BATCH * BATCH, began.elapsed());
    store.close().await?;
    Ok(figure)
}

/// 50 callers, one task each call.
pub(crate) async fn singles(world: &Arc<World>, tasks: usize) -> Result<Figure> {
    let store = world.store()?;
    let each = tasks / CALLERS;
    let began = Instant::now();
    let callers = (0..CALLERS).map(|_| {
        let (store, world) = (Arc::clone(&store), Arc::clone(world));
        tokio::spawn(async move {
            for _ in 0..each {
                // As a client does: an id is made when its task is sent, so that ids that arrive together lie together.
                for outcome in store.enqueue(vec![world.task("bench")]).await? {
                    outcome?;
                }
            }
            anyhow::Ok(())
        })
    });
    for caller in try_join_all(callers).await? {
        caller?;
    }
    let figure = Figure::rate("enqueue, single by 50 callers", each * CALLERS, began.elapsed());
    store.close().await?;
    Ok(figure)
}

/// The bare loop, batches of 100.
pub(crate) fn bare(world: &World, tasks: usize) -> Result<Figure> {
    let mut bare = Bare::open(&world.file("bare"), world.synchronous())?;
    let began = Instant::now();
    for _ in 0..tasks / BATCH {
        bare.enqueue(BATCH, &PAYLOAD)?;
    }
    Ok(Figure::rate("bare loop: insert, batches of 100", tasks / BATCH * BATCH, began.elapsed()))
}
