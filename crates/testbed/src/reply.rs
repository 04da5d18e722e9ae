//! What a server answers: the values of RESP 2, read from bytes and compared in tests.

use std::fmt;
use std::str;

/// One answer.
#[derive(Clone, PartialEq, Eq)]
pub enum Reply {
    /// A short text of the server's own, such as `OK`.
    Status(String),
    /// An error; `command` returns it as one, so it is seen inside arrays only.
    Error(String),
    /// A number.
    Integer(i64),
    /// Stored bytes.
    Bytes(Vec<u8>),
    /// Nothing, in either of its two spellings.
    Nil,
    /// Several answers.
    Array(Vec<Reply>),
}

impl Reply {
    /// The text of a status or of bytes that are text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Status(text) => Some(text),
            Self::Bytes(bytes) => str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The number of an integer, or of text that is one.
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            other => other.text()?.parse().ok(),
        }
    }

    /// The answers in an array; none for anything else.
    #[must_use]
    pub fn items(&self) -> &[Reply] {
        if let Self::Array(items) = self { items } else { &[] }
    }

    /// The value of `name` in a flat array of names and values, as `HGETALL` and `SENTINEL` answer.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Reply> {
        self.items().chunks_exact(2).find(|pair| pair[0].text() == Some(name)).map(|pair| &pair[1])
    }

    /// The value of `name` in lines of `name:value`, as `INFO` and `CLUSTER INFO` answer.
    #[must_use]
    pub fn line(&self, name: &str) -> Option<&str> {
        let mut lines = self.text()?.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(text) => write!(f, "{text}"),
            Self::Error(message) => write!(f, "(error) {message}"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Bytes(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Nil => write!(f, "nil"),
            Self::Array(items) => f.debug_list().entries(items).finish(),
        }
    }
}

impl PartialEq<str> for Reply {
    fn eq(&self, other: &str) -> bool {
        self.text() == Some(other)
    }
}

impl PartialEq<&str> for Reply {
    fn eq(&self, other: &&str) -> bool {
        *self == **other
    }
}

impl PartialEq<i64> for Reply {
    fn eq(&self, other: &i64) -> bool {
        matches!(self, Self::Integer(number) if number == other)
    }
}

/// A command as the server reads it: an array of strings.
pub(crate) fn encode(args: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args.iter().map(AsRef::as_ref) {
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// Bytes that are no RESP 2; the text says what was found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) String);

/// The first answer in `bytes` and its length; `None` while it is not complete.
pub(crate) fn decode(bytes: &[u8]) -> Result<Option<(Reply, usize)>, Malformed> {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let (line, used) = (&bytes[..end], end + 2);
    let malformed = || Malformed(format!("expected an answer in RESP 2, found `{}`", line.escape_ascii()));
    let (kind, rest) = line.split_first().ok_or_else(malformed)?;
    let rest = str::from_utf8(rest).map_err(|_| malformed())?;
    let number = || rest.parse::<i64>().map_err(|_| malformed());
    Ok(match kind {
        b'+' => Some((Reply::Status(rest.to_owned()), used)),
        b'-' => Some((Reply::Error(rest.to_owned()), used)),
        b':' => Some((Reply::Integer(number()?), used)),
        b'$' => match usize::try_from(number()?) {
            Ok(length) => string(bytes, used, length),
            Err(_) => Some((Reply::Nil, used)),
        },
        b'*' => match usize::try_from(number()?) {
            Ok(count) => array(bytes, used, count)?,
            Err(_) => Some((Reply::Nil, used)),
        },
        _ => return Err(malformed()),
    })
}

fn string(bytes: &[u8], start: usize, length: usize) -> Option<(Reply, usize)> {
    let end = start + length;
    (bytes.len() >= end + 2).then(|| (Reply::Bytes(bytes[start..end].to_vec()), end + 2))
}

fn array(bytes: &[u8], start: usize, count: usize) -> Result<Option<(Reply, usize)>, Malformed> {
    let (mut items, mut used) = (Vec::new(), start);
    for _ in 0..count {
        let Some((item, length)) = decode(&bytes[used..])? else { return Ok(None) };
        items.push(item);
        used += length;
    }
    Ok(Some((Reply::Array(items), used)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_strings() {
        assert_eq!(encode(&["SET", "k", "é"]), "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\né\r\n".as_bytes());
    }

    #[test]
    fn every_kind_is_read_and_no_prefix_of_it_is_taken_for_the_whole() {
        let wire = b"*6\r\n+OK\r\n-ERR no\r\n:-7\r\n$4\r\na\r\nb\r\n$-1\r\n*2\r\n*-1\r\n*0\r\n";
        let nested = Reply::Array(vec![Reply::Nil, Reply::Array(Vec::new())]);
        let expected = Reply::Array(vec![
            Reply::Status("OK".to_owned()),
            Reply::Error("ERR no".to_owned()),
            Reply::Integer(-7),
            Reply::Bytes(b"a\r\nb".to_vec()),
            Reply::Nil,
            nested,
        ]);
        assert_eq!(decode(wire), Ok(Some((expected, wire.len()))));
        for end in 0..wire.len() {
            assert_eq!(decode(&wire[..end]), Ok(None), "{end}");
        }
    }

    #[test]
    fn what_is_no_answer_is_told() {
        for wire in ["HTTP/1.1 400\r\n", ":x\r\n", "\r\n", "$many\r\n"] {
            assert!(decode(wire.as_bytes()).is_err(), "{wire}");
        }
    }

    #[test]
    fn a_reply_compares_with_plain_values() {
        assert_eq!(Reply::Status("OK".to_owned()), "OK");
        assert_eq!(Reply::Bytes(b"x".to_vec()), "x");
        assert_eq!(Reply::Integer(3), 3);
        assert_ne!(Reply::Bytes(b"3".to_vec()), 3);
        assert_eq!(Reply::Bytes(b"3".to_vec()).integer(), Some(3));
    }

    #[test]
    fn fields_and_lines_are_found_by_their_name() {
        let pairs = ["flags", "master", "port", "7000"].map(|text| Reply::Bytes(text.into())).to_vec();
        assert_eq!(Reply::Array(pairs).field("port").and_then(Reply::integer), Some(7000));
        let info = Reply::Bytes(b"# Replication\r\nrole:master\r\nrole_x:y\r\n".to_vec());
        assert_eq!((info.line("role"), info.line("none")), (Some("master"), None));
    }
}
