//! Which slot of a cluster a key belongs to, by Redis's published rule: CRC-16 (XMODEM) of its tag.

use std::fmt;
use std::ops::Range;

/// Slots of every cluster.
pub(super) const COUNT: u16 = 16_384;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(pub(super) u16);

impl Slot {
    /// The slot of a key. What stands in its first pair of braces counts alone, unless it is empty.
    pub(super) fn of(key: &str) -> Self {
        let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
        let counts = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
        Self(crc16(counts.as_bytes()) % COUNT)
    }

    /// The part of one primary among several.
    pub(super) fn share(index: usize, primaries: usize) -> impl Iterator<Item = Self> {
        let bound = |index: usize| {
            u16::try_from(index * usize::from(COUNT) / primaries).expect("a share is within all")
        };
        let range: Range<u16> = bound(index)..bound(index + 1);
        range.map(Self)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 { shifted } else { shifted ^ 0x1021 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_code_is_met() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
    }

    #[test]
    fn only_the_first_pair_of_braces_counts_and_not_when_it_is_empty() {
        let same = Slot::of("low");
        for key in ["{low}", "asynq:{low}:pending", "asynq:{low}:t:{7}", "}{low}"] {
            assert_eq!(Slot::of(key), same, "{key}");
        }
        for key in ["{}low", "{low", "low}"] {
            assert_ne!(Slot::of(key), same, "{key}");
        }
    }

    #[test]
    fn shares_cover_every_slot_once() {
        let all: Vec<Slot> = (0..3).flat_map(|index| Slot::share(index, 3)).collect();
        assert_eq!(all, (0..COUNT).map(Slot).collect::<Vec<_>>());
    }
}
