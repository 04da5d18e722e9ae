//! Which node serves which slot, as far as is known.
//!
//! Invariant: every slot's owner is one of the nodes; a node that is still there after a change keeps its connection.

use super::slot::{Range, SLOTS};
use super::{Address, Node};

/// A slot that nobody serves.
const NOBODY: u16 = u16::MAX;

/// The map. Empty until it was asked for.
#[derive(Default)]
pub(super) struct Map {
    nodes: Vec<(Address, Node)>,
    owners: Vec<u16>,
}

/// What a new map has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing.
    None,
    /// Slots have other owners.
    Moved,
    /// A slot's owner is no primary any more.
    Failover,
}

impl Map {
    pub(super) fn nodes(&self) -> impl Iterator<Item = &(Address, Node)> {
        self.nodes.iter()
    }

    pub(super) fn node(&self, address: &Address) -> Option<Node> {
        self.nodes.iter().find(|(known, _)| known == address).map(|(_, node)| node.clone())
    }

    pub(super) fn owner(&self, slot: u16) -> Option<Node> {
        let owner = self.owners.get(usize::from(slot))?;
        self.nodes.get(usize::from(*owner)).map(|(_, node)| node.clone())
    }

    /// One after the other, those with a connection if there are any.
    pub(super) fn any(&self, turn: usize) -> Option<Node> {
        let count = self.nodes.len();
        let in_turn = || (0..count).map(|at| &self.nodes[(turn % count + at) % count].1);
        in_turn().find(|node| node.is_up()).or_else(|| in_turn().next()).cloned()
    }

    /// One slot is known to have moved; whether that is news.
    pub(super) fn set_owner(&mut self, slot: u16, address: Address, node: Node) -> bool {
        let at = self.nodes.iter().position(|(known, _)| *known == address).unwrap_or_else(|| {
            self.nodes.push((address, node));
            self.nodes.len() - 1
        });
        let at = u16::try_from(at).unwrap_or(NOBODY);
        self.owners.get_mut(usize::from(slot)).is_some_and(|owner| std::mem::replace(owner, at) != at)
    }

    /// Takes over what a node says; `make` makes nodes that were not known.
    pub(super) fn replace(&mut self, ranges: Vec<Range>, mut make: impl FnMut(Address) -> Node) -> Change {
        let mut next = Self { nodes: Vec::new(), owners: vec![NOBODY; SLOTS] };
        for Range { first, last, primary } in ranges {
            let at = next.nodes.iter().position(|(known, _)| *known == primary).unwrap_or_else(|| {
                let node = self.node(&primary).unwrap_or_else(|| make(primary.clone()));
                next.nodes.push((primary, node));
                next.nodes.len() - 1
            });
            let owner = u16::try_from(at).unwrap_or(NOBODY);
            next.owners[usize::from(first)..=usize::from(last)].fill(owner);
        }
        let change = self.change_to(&next);
        *self = next;
        change
    }

    fn change_to(&self, next: &Self) -> Change {
        if self.owners.is_empty() {
            // The first map is no news to anybody.
            return Change::Moved;
        }
        let address = |map: &Self, slot: usize| -> Option<Address> {
            map.nodes.get(usize::from(map.owners[slot])).map(|(address, _)| address.clone())
        };
        let mut change = Change::None;
        let mut last = (NOBODY, NOBODY);
        for slot in 0..SLOTS {
            // Neighbours mostly have the same owners.
            let pair = (self.owners[slot], next.owners[slot]);
            if std::mem::replace(&mut last, pair) == pair {
                continue;
            }
            let (before, after) = (address(self, slot), address(next, slot));
            if before == after {
                continue;
            }
            change = Change::Moved;
            if before.is_some_and(|before| next.node(&before).is_none()) {
                return Change::Failover;
            }
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::watch;

    use super::super::{Backoff, Dialer, Finder};
    use super::*;
    use crate::options::{Endpoint, RedisOptions};

    fn node(address: Address) -> Node {
        let options = RedisOptions::new(Endpoint::Single(address.clone()));
        let dialer = Dialer::new(&options, false).unwrap();
        Node::new(dialer, Finder::At(address), Backoff::new(&options), Arc::new(watch::Sender::new(0)))
    }

    fn ranges(all: &[(u16, u16, u16)]) -> Vec<Range> {
        let range = |(first, last, port): &(u16, u16, u16)| Range {
            first: *first,
            last: *last,
            primary: Address::tcp("h", *port),
        };
        all.iter().map(range).collect()
    }

    fn port(map: &Map, slot: u16) -> Option<u16> {
        let owner = map.owners.get(usize::from(slot))?;
        let Address::Tcp { port, .. } = &map.nodes.get(usize::from(*owner))?.0 else { return None };
        Some(*port)
    }

    #[tokio::test]
    async fn a_failover_is_told_from_a_move() {
        let mut map = Map::default();
        assert!(map.owner(0).is_none() && map.any(0).is_none());
        assert_eq!(map.replace(ranges(&[(0, 99, 1), (100, 16_383, 2)]), node), Change::Moved);
        assert_eq!((port(&map, 99), port(&map, 100)), (Some(1), Some(2)));
        assert_eq!(map.replace(ranges(&[(100, 16_383, 2), (0, 99, 1)]), node), Change::None);
        assert_eq!(map.replace(ranges(&[(0, 50, 1), (51, 16_383, 2)]), node), Change::Moved);
        assert_eq!(map.replace(ranges(&[(0, 50, 3), (51, 16_383, 2)]), node), Change::Failover);
        assert_eq!(map.replace(ranges(&[(51, 16_383, 2)]), node), Change::Failover, "its owner is gone");
        assert_eq!(port(&map, 7), None);
        let nine = Address::tcp("h", 9);
        assert!(map.set_owner(7, nine.clone(), node(nine.clone())));
        assert!(!map.set_owner(7, nine.clone(), node(nine)));
        assert_eq!(port(&map, 7), Some(9));
    }
}
