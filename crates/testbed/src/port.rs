//! Picks ports of the loopback that nobody else takes while a server is down.
//!
//! Invariant: a `Port` is lent to one holder on the whole machine at a time. The proof is the UDP socket of the same
//! number that it keeps bound: the system gives it to one process only and takes it back when that process ends.
//! Servers speak TCP, so it is in nobody's way, and a killed server finds its port free when it is restarted.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Error;

/// Below the ports that systems give to outgoing connections, which would come and take one; with a bus above each.
const FIRST: u16 = 10_000;
const COUNT: u16 = 11_000;

/// From a cluster node's port to that of its bus, as clients and nodes of every version expect.
pub(crate) const BUS: u16 = 10_000;

/// A port that is ours until this is dropped.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _claims: Vec<UdpSocket>,
}

impl Port {
    /// A port for anything that listens.
    pub(crate) fn free() -> Result<Self, Error> {
        Self::pick(|number| vec![number])
    }

    /// A port whose bus is free, too.
    pub(crate) fn with_bus() -> Result<Self, Error> {
        Self::pick(|number| vec![number, number + BUS])
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    /// Tries each number once, from a place that differs between processes.
    fn pick(needed: impl Fn(u16) -> Vec<u16>) -> Result<Self, Error> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let offset = process::id().wrapping_mul(127);
        for _ in 0..COUNT {
            let turn = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(offset) % u32::from(COUNT);
            let number = FIRST + u16::try_from(turn).expect("a remainder of a u16 is one");
            let claims: io::Result<Vec<UdpSocket>> = needed(number).into_iter().map(claim).collect();
            if let Ok(claims) = claims {
                return Ok(Self { number, _claims: claims });
            }
        }
        let source = io::Error::from(io::ErrorKind::AddrInUse);
        Err(Error::Io { doing: format!("find a free port from {FIRST} on"), source })
    }
}

fn claim(number: u16) -> io::Result<UdpSocket> {
    let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, number);
    let claim = UdpSocket::bind(address)?;
    // Whoever knows nothing of our claims may listen there all the same.
    close(TcpListener::bind(address)?);
    Ok(claim)
}

/// Ends a listener at once, which mere closing may not: a program that another thread is about to start holds a copy
/// of it for a moment, and the port would be taken, and connections, until then.
pub(crate) fn close(listener: impl AsFd) {
    // Where the system cannot do that, closing is all there is.
    let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_lent_twice_and_each_can_be_listened_on() {
        let ports: Vec<Port> = (0..50).map(|_| Port::with_bus().unwrap()).collect();
        let mut numbers: Vec<u16> = ports.iter().map(Port::number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 50);
        for number in numbers {
            assert!(claim(number).is_err() && claim(number + BUS).is_err(), "{number} is claimed");
            TcpListener::bind((Ipv4Addr::LOCALHOST, number)).unwrap();
        }
    }

    #[test]
    fn a_port_with_a_foreign_listener_is_passed_over() {
        let number = Port::free().unwrap().number();
        let _foreign = TcpListener::bind((Ipv4Addr::LOCALHOST, number)).unwrap();
        assert!(claim(number).is_err());
    }
}
