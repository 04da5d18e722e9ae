//! What one node knows of the others: the lines of `CLUSTER NODES`.

use std::collections::BTreeMap;

use super::slot::Slot;
use crate::port::BUS;
use crate::server::RedisServer;

/// All lines of one node.
#[derive(Debug)]
pub(super) struct View {
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    id: String,
    port: u16,
    flags: Vec<String>,
    primary: Option<String>,
    connected: bool,
    slots: Vec<(u16, u16)>,
}

impl View {
    pub(super) async fn of(node: &RedisServer) -> Result<Self, String> {
        let nodes = super::ask(node, &["CLUSTER", "NODES"]).await?;
        let text = nodes.text().unwrap_or_default();
        Self::read(text).ok_or_else(|| format!("{node} says what cannot be read: {text}"))
    }

    fn read(text: &str) -> Option<Self> {
        Some(Self { lines: text.lines().map(Line::read).collect::<Option<_>>()? })
    }

    /// The port of the primary that has the slot.
    pub(super) fn owner(&self, slot: Slot) -> Option<u16> {
        let owns = |line: &&Line| line.slots.iter().any(|(first, last)| (*first..=*last).contains(&slot.0));
        self.lines.iter().find(owns).map(|line| line.port)
    }

    /// Who owns what, in the same order for every node.
    pub(super) fn owners(&self) -> BTreeMap<(u16, u16), u16> {
        self.lines.iter().flat_map(|line| line.slots.iter().map(|range| (*range, line.port))).collect()
    }

    pub(super) fn is_replica(&self, port: u16) -> bool {
        self.lines.iter().any(|line| line.port == port && line.primary.is_some())
    }

    /// Whether the nodes on these ports are known, connected and sound; the error says what is missing.
    pub(super) fn knows(&self, ports: &[u16]) -> Result<(), String> {
        for port in ports {
            let line = self.lines.iter().find(|line| line.port == *port);
            let line = line.ok_or_else(|| format!("does not know port {port}"))?;
            if let Some(flag) = line.flags.iter().find(|flag| flag.contains("fail") || *flag == "handshake") {
                return Err(format!("sees port {port} in {flag}"));
            }
            if !line.connected {
                return Err(format!("is not connected with port {port}"));
            }
            let orphaned = |primary: &String| !self.lines.iter().any(|line| line.id == *primary);
            if line.primary.as_ref().is_some_and(orphaned) {
                return Err(format!("does not know whom port {port} follows"));
            }
        }
        Ok(())
    }
}

impl Line {
    /// `id ip:port@bus[,name] flags primary ping pong epoch link slot…`
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (id, address, flags, primary) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let (connected, slots) = (words.nth(3)? == "connected", words.filter_map(range).collect());
        let port = port(address)?;
        let primary = (primary != "-").then(|| primary.to_owned());
        let flags = flags.split(',').map(str::to_owned).collect();
        Some(Self { id: id.to_owned(), port, flags, primary, connected, slots })
    }
}

/// The port that a node was started on. Where it speaks TLS, newer servers name no port at all to who asks without, such as on
/// the socket; the one of the bus is always there, and as far above as both began.
fn port(address: &str) -> Option<u16> {
    let (place, bus) = address.split_once('@')?;
    match place.rsplit_once(':')?.1.parse().ok()? {
        0 => bus.split(',').next()?.parse::<u16>().ok()?.checked_sub(BUS),
        port => Some(port),
    }
}

/// `7` or `0-5460`; what is on the move stands in brackets and counts where it is.
fn range(word: &str) -> Option<(u16, u16)> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    Some((first.parse().ok()?, last.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
aa 127.0.0.1:7001@17001,host myself,master - 0 0 1 connected 0-5460 7000 [93->-bb]
bb 127.0.0.1:7002@17002 slave aa 0 0 2 connected
cc 127.0.0.1:7003@17003 master,fail? - 0 0 3 connected 8000-9000
dd 127.0.0.1:7004@17004 slave ee 0 0 4 disconnected";

    #[test]
    fn owners_and_replicas_are_seen() {
        let view = View::read(TEXT).unwrap();
        for (slot, owner) in
            [(0, Some(7001)), (5460, Some(7001)), (7000, Some(7001)), (8500, Some(7003)), (6000, None)]
        {
            assert_eq!(view.owner(Slot(slot)), owner, "{slot}");
        }
        assert!(view.is_replica(7002) && !view.is_replica(7001));
    }

    #[test]
    fn what_is_missing_is_named() {
        let view = View::read(TEXT).unwrap();
        assert_eq!(view.knows(&[7001, 7002]), Ok(()));
        for (port, missing) in [(7003, "fail?"), (7004, "not connected"), (7005, "does not know")] {
            let said = view.knows(&[port]).unwrap_err();
            assert!(said.contains(missing), "{said}");
        }
    }

    #[test]
    fn a_node_that_names_no_port_has_the_one_below_its_bus() {
        let view = View::read("aa 127.0.0.1:0@17001,,tls-port=7001 myself,master - 0 0 1 connected 7");
        assert_eq!(view.unwrap().owner(Slot(7)), Some(7001));
    }

    #[test]
    fn a_line_that_is_none_is_refused() {
        assert!(View::read("aa 127.0.0.1:7001@17001 master").is_none());
    }
}
