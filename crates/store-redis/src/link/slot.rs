//! Which of a cluster's 16384 slots a key lies in, and who serves which slot.
//!
//! Invariant: keys with the same text between their first `{` and the next `}` share a slot, as Redis has it.

use redis::Value;

use crate::options::Address;

/// So many slots every cluster has.
pub(super) const SLOTS: usize = 16_384;

/// The slot of a key.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    crc16(tag_of(key)) % 16_384
}

/// The part of a key that decides.
fn tag_of(key: &[u8]) -> &[u8] {
    let tag = key.iter().position(|b| *b == b'{').and_then(|open| {
        let rest = &key[open + 1..];
        let close = rest.iter().position(|b| *b == b'}')?;
        Some(&rest[..close])
    });
    tag.filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// The variant XMODEM: polynomial 0x1021, beginning with zero.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc: u16, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}

/// Slots that follow each other and their primary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) primary: Address,
}

/// Reads the answer of `CLUSTER SLOTS`. A node that does not know its own name leaves it out; then it is the one that was asked.
pub(super) fn ranges(answer: &Value, asked: &Address) -> Option<Vec<Range>> {
    let Value::Array(ranges) = answer else { return None };
    ranges.iter().map(|range| self::range(range, asked)).collect()
}

fn range(range: &Value, asked: &Address) -> Option<Range> {
    let Value::Array(parts) = range else { return None };
    let [Value::Int(first), Value::Int(last), Value::Array(primary), ..] = parts.as_slice() else {
        return None;
    };
    let [host, Value::Int(port), ..] = primary.as_slice() else { return None };
    let (first, last) = (u16::try_from(*first).ok()?, u16::try_from(*last).ok()?);
    let host = match host {
        Value::BulkString(host) => std::str::from_utf8(host).ok()?,
        _ => "",
    };
    let fits = first <= last && usize::from(last) < SLOTS;
    fits.then_some(Range { first, last, primary: address(host, u16::try_from(*port).ok()?, asked) })
}

/// Reads the place that a redirection names, `host:port`.
pub(super) fn place(text: &str, asked: &Address) -> Option<Address> {
    let (host, port) = text.rsplit_once(':')?;
    Some(address(host.trim_start_matches('[').trim_end_matches(']'), port.parse().ok()?, asked))
}

fn address(host: &str, port: u16, asked: &Address) -> Address {
    match (host, asked) {
        ("" | "?", Address::Tcp { host, .. }) => Address::tcp(host, port),
        _ => Address::tcp(host, port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis() {
        // From the specification of the cluster, and from CLUSTER KEYSLOT.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        assert_eq!(slot_of(b"foo"), 12_182);
        assert_eq!(slot_of(b"asynq:{default}:pending"), slot_of(b"default"));
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"user1000"));
    }

    #[test]
    fn only_the_first_closed_and_filled_tag_counts() {
        assert_eq!(tag_of(b"foo{}{bar}"), b"foo{}{bar}");
        assert_eq!(tag_of(b"foo{{bar}}zap"), b"{bar");
        assert_eq!(tag_of(b"foo{bar}{zap}"), b"bar");
        assert_eq!(tag_of(b"foo{bar"), b"foo{bar");
        assert_eq!(tag_of(b"}foo{bar}"), b"bar");
    }

    #[test]
    fn the_map_is_read_with_and_without_names() {
        let asked = Address::tcp("seed", 7_000);
        let answer = b"*2\r\n*4\r\n:0\r\n:5460\r\n*3\r\n$8\r\n10.0.0.1\r\n:7001\r\n$1\r\na\r\n*3\r\n$1\r\nx\r\n:1\r\n$1\r\nb\r\n\
            *3\r\n:5461\r\n:16383\r\n*4\r\n$-1\r\n:7002\r\n$1\r\nc\r\n*0\r\n";
        let found = ranges(&redis::parse_redis_value(answer).unwrap(), &asked).unwrap();
        let expected = [
            Range { first: 0, last: 5_460, primary: Address::tcp("10.0.0.1", 7_001) },
            Range { first: 5_461, last: 16_383, primary: Address::tcp("seed", 7_002) },
        ];
        assert_eq!(found, expected);
        assert_eq!(ranges(&Value::Okay, &asked), None);
    }

    #[test]
    fn the_place_of_a_redirection_is_read() {
        let asked = Address::tcp("seed", 7_000);
        assert_eq!(place("10.0.0.1:7001", &asked), Some(Address::tcp("10.0.0.1", 7_001)));
        assert_eq!(place(":7001", &asked), Some(Address::tcp("seed", 7_001)));
        assert_eq!(place("::1:7001", &asked), Some(Address::tcp("::1", 7_001)));
        assert_eq!(place("nowhere", &asked), None);
    }
}
