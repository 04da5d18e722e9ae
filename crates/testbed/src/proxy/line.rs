//! What the proxy is told and what it tells: wishes one way, a record the other, both awaitable.
//!
//! Invariant: a wish is one change under one lock, so a fault happens to one connection only.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::watch;

use super::fault::{Direction, Fate, Fault, Passage};
use crate::error::Error;
use crate::wait;

/// What has passed through a proxy since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Connections taken.
    pub connections: u64,
    /// Those of them that are open.
    pub open: usize,
    /// Bytes given to the server.
    pub to_server: u64,
    /// Bytes given to clients.
    pub to_client: u64,
    /// Bytes that were read and not given to the other side, because of a fault.
    pub lost: u64,
    /// Connections that a fault has cut.
    pub faults: u64,
}

/// What a test wishes.
#[derive(Debug, Clone, Default)]
pub(super) struct Control {
    /// Nothing listens any more.
    pub(super) refusing: bool,
    pub(super) held: bool,
    pub(super) delay: Duration,
    /// Connections up to this number are cut.
    pub(super) cut_through: u64,
    pub(super) fault: Option<Fault>,
    pub(super) stopped: bool,
}

/// What the proxy has done.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    refusing: bool,
    traffic: Traffic,
    open: BTreeSet<u64>,
}

impl Record {
    pub(super) fn traffic(&self) -> Traffic {
        Traffic { open: self.open.len(), ..self.traffic }
    }
}

/// Between a `Proxy` and its thread.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) target: SocketAddr,
    control: watch::Sender<Control>,
    record: watch::Sender<Record>,
}

impl Line {
    pub(super) fn new(target: SocketAddr) -> Self {
        Self { target, control: watch::Sender::default(), record: watch::Sender::default() }
    }

    pub(super) fn control<T>(&self, change: impl FnOnce(&mut Control) -> T) -> T {
        let mut answer = None;
        self.control.send_modify(|control| answer = Some(change(control)));
        answer.expect("a change is made at once")
    }

    pub(super) fn traffic(&self) -> Traffic {
        self.record.borrow().traffic()
    }

    pub(super) async fn until(&self, what: &str, state: impl Fn(&Record) -> bool) -> Result<Traffic, Error> {
        let mut record = self.record.subscribe();
        let reached = wait::at_most(what.to_owned(), record.wait_for(|record| state(record))).await;
        match reached {
            Ok(record) => Ok(record.expect("the line holds the sender").traffic()),
            Err(Error::Overdue { what, patience_secs, .. }) => {
                Err(Error::Overdue { what, patience_secs, last: format!("{:?}", self.traffic()) })
            }
            Err(other) => Err(other),
        }
    }

    pub(super) async fn cut(&self) -> Result<(), Error> {
        let last = self.record.borrow().traffic.connections;
        self.control(|control| control.cut_through = last);
        self.until("connections to be cut", |record| record.open.range(..=last).next().is_none()).await?;
        Ok(())
    }

    pub(super) async fn set_listening(&self, listening: bool) -> Result<(), Error> {
        self.control(|control| control.refusing = !listening);
        self.until("the proxy to hear", |record| record.refusing != listening).await?;
        Ok(())
    }

    /// Awaits a wish.
    pub(super) async fn wished(&self, wish: impl Fn(&Control) -> bool) {
        let mut control = self.control.subscribe();
        // It cannot be closed while the line is borrowed.
        let _ = control.wait_for(|control| wish(control)).await;
    }

    pub(super) fn delay(&self) -> Duration {
        self.control.borrow().delay
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.control.borrow().stopped
    }

    pub(super) fn note_refusing(&self, refusing: bool) {
        self.record.send_modify(|record| record.refusing = refusing);
    }

    /// A connection was taken: its number, and what will happen to it.
    pub(super) fn open(&self) -> (u64, Fate) {
        let mut fate = Fate::default();
        self.control(|control| fate.begin(&mut control.fault));
        let mut number = 0;
        self.record.send_modify(|record| {
            record.traffic.connections += 1;
            number = record.traffic.connections;
            record.open.insert(number);
        });
        (number, fate)
    }

    pub(super) fn close(&self, number: u64) {
        self.record.send_modify(|record| {
            record.open.remove(&number);
        });
    }

    /// Judges a piece that was read, and counts it before it passes.
    pub(super) fn judge(&self, fate: &mut Fate, direction: Direction, length: usize) -> Passage {
        let passage = self.control(|control| fate.judge(&mut control.fault, direction, length));
        self.record.send_modify(|record| {
            let bytes = passage.bytes as u64;
            match direction {
                Direction::ToServer => record.traffic.to_server += bytes,
                Direction::ToClient => record.traffic.to_client += bytes,
            }
            record.traffic.lost += passage.lost as u64;
        });
        passage
    }

    pub(super) fn note_request(&self, fate: &mut Fate, piece: &[u8]) {
        fate.note_request(self.control.borrow().fault.as_ref(), piece);
    }

    /// A fault has cut a connection, which is closed already.
    pub(super) fn note_fault(&self) {
        self.record.send_modify(|record| record.traffic.faults += 1);
    }
}
