//! Takes connections and carries bytes, as the wishes of the test are.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::{select, task, time};

use super::fault::{Direction, Fate};
use super::line::Line;
use crate::{port, wait};

/// Bytes of one piece at most.
const PIECE: usize = 16 * 1024;

/// Listens and carries until the proxy is dropped; then everything is closed with the runtime.
pub(super) async fn serve(listener: std::net::TcpListener, line: &Arc<Line>) {
    let local = task::LocalSet::new();
    let address = listener.local_addr().expect("a bound listener has an address");
    listener.set_nonblocking(true).expect("a listener can be asked without blocking");
    let mut listener = Some(TcpListener::from_std(listener).expect("the runtime has its driver"));
    let work = async {
        while !line.is_stopped() {
            let current = match listener.take() {
                Some(current) => current,
                // Our claim on the port keeps it free, so this waits for the end of the last listener at most.
                None => wait::until("listen again", async || TcpListener::bind(address).await)
                    .await
                    .expect("nobody takes a port that is claimed"),
            };
            line.note_refusing(false);
            take_connections(&current, line).await;
            port::close(current);
            line.note_refusing(true);
            line.wished(|control| !control.refusing || control.stopped).await;
        }
    };
    local.run_until(work).await;
}

/// Returns when it is time to refuse.
async fn take_connections(listener: &TcpListener, line: &Arc<Line>) {
    let enough = line.wished(|control| control.refusing || control.stopped);
    let mut enough = std::pin::pin!(enough);
    loop {
        let client = select! {
            () = &mut enough => return,
            accepted = listener.accept() => accepted,
        };
        // Who left between knocking and our opening is no connection.
        if let Ok((client, _)) = client {
            task::spawn_local(carry(client, Arc::clone(line)));
        }
    }
}

/// One connection, from its beginning to its end.
async fn carry(client: TcpStream, line: Arc<Line>) {
    let (number, fate) = line.open();
    let cut = line.wished(|control| control.cut_through >= number);
    let faulty = select! {
        () = cut => false,
        outcome = both_ways(client, &line, fate) => matches!(outcome, Ok(End::Fault)),
    };
    line.close(number);
    if faulty {
        line.note_fault();
    }
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// One side has closed it.
    Closed,
    /// We cut it.
    Fault,
}

async fn both_ways(client: TcpStream, line: &Line, fate: Fate) -> io::Result<End> {
    if fate.is_stillborn() {
        return Ok(End::Fault);
    }
    let server = TcpStream::connect(line.target).await?;
    // A piece goes on as it came; waiting for more would be a delay that nobody asked for.
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let fate = RefCell::new(fate);
    select! {
        end = one_way(Direction::ToServer, from_client, to_server, line, &fate) => end,
        end = one_way(Direction::ToClient, from_server, to_client, line, &fate) => end,
    }
}

async fn one_way(
    direction: Direction,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    line: &Line,
    fate: &RefCell<Fate>,
) -> io::Result<End> {
    let mut buffer = vec![0; PIECE];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return Ok(End::Closed);
        }
        linger(line).await;
        line.wished(|control| !control.held).await;
        let passage = line.judge(&mut fate.borrow_mut(), direction, length);
        let piece = &buffer[..passage.bytes];
        to.write_all(piece).await?;
        if direction == Direction::ToServer {
            // No answer can have come meanwhile: both ways share one task.
            line.note_request(&mut fate.borrow_mut(), piece);
        }
        if passage.cut {
            return Ok(End::Fault);
        }
    }
}

/// Waits out the delay of a piece; a shorter one that is wished meanwhile lets it go.
async fn linger(line: &Line) {
    let delay = line.delay();
    // Even a sleep of no length lasts until the timer's next tick.
    if !delay.is_zero() {
        let _ = time::timeout(delay, line.wished(|control| control.delay < delay)).await;
    }
}
