//! What can go wrong on the way, and how much of a piece still passes then.

/// A way through the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Requests.
    ToServer,
    /// Answers.
    ToClient,
}

/// One thing that goes wrong; once, but for `LoseReplies`.
///
/// An answer is what the server sends after it did the work: when it is lost, the work is done. Where a client has
/// several requests under way on one connection, the first answer may be that of an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The next new connection is cut as soon as exactly so many bytes have passed one way; with 0, once it is taken.
    CutNext(Direction, u64),
    /// The connection on which the so manieth byte passes is cut behind it; bytes of all connections count, from now
    /// on. With 0, the next byte does not pass.
    CutAfter(Direction, u64),
    /// The next bytes that the server sends do not pass, and their connection is cut.
    LoseReply,
    /// The same, for a connection that has carried these bytes to the server since now, such as the name of a key.
    LoseReplyTo(Vec<u8>),
    /// The same for every connection, until it is disarmed.
    LoseReplies,
}

/// What becomes of a piece that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Passage {
    /// How many of its bytes pass.
    pub(crate) bytes: usize,
    /// How many are lost on purpose.
    pub(crate) lost: usize,
    /// Whether the connection is cut then.
    pub(crate) cut: bool,
}

impl Passage {
    pub(crate) fn whole(length: usize) -> Self {
        Self { bytes: length, lost: 0, cut: false }
    }

    fn nothing_of(length: usize) -> Self {
        Self { bytes: 0, lost: length, cut: true }
    }

    /// `left` bytes may pass before the cut.
    fn up_to(left: u64, length: usize) -> Self {
        match usize::try_from(left) {
            Ok(left) if left <= length => Self { bytes: left, lost: length - left, cut: true },
            _ => Self::whole(length),
        }
    }
}

/// The faults of one connection.
#[derive(Debug, Default)]
pub(crate) struct Fate {
    /// It is cut when so many more bytes have passed this way.
    doom: Option<(Direction, u64)>,
    /// What was looked for in its requests, and the end of the last one, where the beginning of it may stand.
    needle: Vec<u8>,
    end: Vec<u8>,
    /// The needle has passed.
    seen: bool,
}

impl Fate {
    /// Takes over a fault that waited for the next connection; the answer says whether it was one.
    pub(crate) fn begin(&mut self, fault: &mut Option<Fault>) -> bool {
        if let Some(Fault::CutNext(direction, bytes)) = *fault {
            *fault = None;
            self.doom = Some((direction, bytes));
            return true;
        }
        false
    }

    /// Whether it ends before anything passes.
    pub(crate) fn is_stillborn(&self) -> bool {
        matches!(self.doom, Some((_, 0)))
    }

    /// Judges a piece that was read, and takes away what has happened by it.
    pub(crate) fn judge(
        &mut self,
        fault: &mut Option<Fault>,
        direction: Direction,
        length: usize,
    ) -> Passage {
        if let Some((way, left)) = &mut self.doom
            && *way == direction
        {
            let passage = Passage::up_to(*left, length);
            *left -= passage.bytes as u64;
            return passage;
        }
        let (passage, happened) = match fault {
            Some(Fault::CutAfter(way, left)) if *way == direction => {
                let passage = Passage::up_to(*left, length);
                *left -= passage.bytes as u64;
                (passage, passage.cut)
            }
            Some(Fault::LoseReply) if direction == Direction::ToClient => (Passage::nothing_of(length), true),
            Some(Fault::LoseReplyTo(_)) if direction == Direction::ToClient && self.seen => {
                (Passage::nothing_of(length), true)
            }
            Some(Fault::LoseReplies) if direction == Direction::ToClient => {
                (Passage::nothing_of(length), false)
            }
            _ => (Passage::whole(length), false),
        };
        if happened {
            *fault = None;
        }
        passage
    }

    /// Looks for what a fault waits for in a piece that has passed to the server.
    pub(crate) fn note_request(&mut self, fault: Option<&Fault>, piece: &[u8]) {
        let Some(Fault::LoseReplyTo(needle)) = fault else {
            (self.seen, self.end) = (false, Vec::new());
            return;
        };
        if self.needle != *needle {
            (self.needle, self.seen, self.end) = (needle.clone(), false, Vec::new());
        }
        self.end.extend_from_slice(piece);
        self.seen |= needle.is_empty() || self.end.windows(needle.len()).any(|window| window == needle);
        let kept = needle.len().saturating_sub(1);
        self.end.drain(..self.end.len().saturating_sub(kept));
    }
}

#[cfg(test)]
mod tests {
    use super::Direction::{ToClient, ToServer};
    use super::*;

    #[test]
    fn a_doomed_connection_passes_exactly_its_bytes() {
        let (mut fate, mut fault) = (Fate::default(), Some(Fault::CutNext(ToServer, 7)));
        assert!(fate.begin(&mut fault) && fault.is_none());
        assert_eq!(fate.judge(&mut fault, ToServer, 4), Passage::whole(4));
        assert_eq!(fate.judge(&mut fault, ToClient, 100), Passage::whole(100));
        assert_eq!(fate.judge(&mut fault, ToServer, 4), Passage { bytes: 3, lost: 1, cut: true });
    }

    #[test]
    fn a_cut_comes_with_its_last_byte_not_with_the_one_behind() {
        let (mut fate, mut fault) = (Fate::default(), Some(Fault::CutAfter(ToClient, 4)));
        assert_eq!(fate.judge(&mut fault, ToServer, 9), Passage::whole(9));
        assert_eq!(fate.judge(&mut fault, ToClient, 4), Passage { bytes: 4, lost: 0, cut: true });
        assert_eq!(fault, None);
    }

    #[test]
    fn bytes_of_all_connections_count_to_a_cut() {
        let (mut one, mut two, mut fault) =
            (Fate::default(), Fate::default(), Some(Fault::CutAfter(ToServer, 5)));
        assert_eq!(one.judge(&mut fault, ToServer, 3), Passage::whole(3));
        assert_eq!(two.judge(&mut fault, ToServer, 3), Passage { bytes: 2, lost: 1, cut: true });
        assert_eq!(one.judge(&mut fault, ToServer, 3), Passage::whole(3));
    }

    #[test]
    fn a_reply_is_lost_to_the_request_that_was_named_only() {
        let mut fault = Some(Fault::LoseReplyTo(b"key".to_vec()));
        let (mut named, mut other) = (Fate::default(), Fate::default());
        named.note_request(fault.as_ref(), b"GET k");
        assert_eq!(named.judge(&mut fault, ToClient, 2), Passage::whole(2));
        named.note_request(fault.as_ref(), b"ey");
        other.note_request(fault.as_ref(), b"GET ke");
        assert_eq!(other.judge(&mut fault, ToClient, 2), Passage::whole(2));
        assert_eq!(named.judge(&mut fault, ToClient, 2), Passage::nothing_of(2));
        assert_eq!(fault, None);
    }

    #[test]
    fn what_passed_before_a_fault_was_armed_is_not_its_own() {
        let mut fault = Some(Fault::LoseReplyTo(b"key".to_vec()));
        let mut fate = Fate::default();
        fate.note_request(fault.as_ref(), b"GET key");
        fate.note_request(None, b"PING");
        fate.note_request(fault.as_ref(), b"PING");
        assert_eq!(fate.judge(&mut fault, ToClient, 2), Passage::whole(2));
    }

    #[test]
    fn all_replies_are_lost_until_it_is_disarmed() {
        let (mut fate, mut fault) = (Fate::default(), Some(Fault::LoseReplies));
        for _ in 0..2 {
            assert_eq!(fate.judge(&mut fault, ToServer, 5), Passage::whole(5));
            assert_eq!(fate.judge(&mut fault, ToClient, 5), Passage::nothing_of(5));
        }
    }
}
