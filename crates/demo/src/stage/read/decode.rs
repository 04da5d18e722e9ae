//! Bytes to text: UTF-8, or UTF-16 when it begins with its mark; everything else is refused with the place.

use std::borrow::Cow;

use crate::Error;
use crate::kind::is_binary;

/// Text without a mark, with `\n` line ends and no control characters that text does not use.
pub(super) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, Error> {
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(utf_16(rest, u16::from_le_bytes)?),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(utf_16(rest, u16::from_be_bytes)?),
        [0xef, 0xbb, 0xbf, rest @ ..] => Cow::Borrowed(utf_8(rest, 3)?),
        _ => Cow::Borrowed(utf_8(bytes, 0)?),
    };
    Ok(if text.contains('\r') { Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n")) } else { text })
}

/// A control byte says "binary" more plainly than a bad sequence does, wherever it stands, so it is looked for first.
fn utf_8(bytes: &[u8], mark: usize) -> Result<&str, Error> {
    if let Some(at) = bytes.iter().position(|byte| is_binary(*byte)) {
        return Err(Error::Binary { at: at + mark, byte: bytes[at] });
    }
    std::str::from_utf8(bytes).map_err(|e| Error::NotUtf8 { at: e.valid_up_to() + mark })
}

fn utf_16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, Error> {
    const MARK: usize = 2;
    let (pairs, odd) = bytes.as_chunks::<2>();
    let mut text = String::with_capacity(bytes.len());
    let mut at = MARK;
    for decoded in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        let char = decoded.map_err(|_| Error::NotUtf16 { at })?;
        if let Some(byte) = u8::try_from(char).ok().filter(|byte| is_binary(*byte)) {
            return Err(Error::Binary { at, byte });
        }
        text.push(char);
        at += char.len_utf16() * 2;
    }
    if odd.is_empty() { Ok(text) } else { Err(Error::NotUtf16 { at }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: &[u8]) -> String {
        decode(bytes).expect_err("refused").to_string()
    }

    #[test]
    fn marks_are_taken_off_and_line_ends_are_one_kind() {
        assert_eq!(decode(b"\xef\xbb\xbfa\r\nb\rc\n").expect("reads"), "a\nb\nc\n");
        assert_eq!(decode("größer".as_bytes()).expect("reads"), "größer");
    }

    #[test]
    fn utf_16_is_read_in_both_orders() {
        let mut little = vec![0xff, 0xfe];
        little.extend("tide 🌊".encode_utf16().flat_map(u16::to_le_bytes));
        assert_eq!(decode(&little).expect("reads"), "tide 🌊");
        let mut big = vec![0xfe, 0xff];
        big.extend("潮".encode_utf16().flat_map(u16::to_be_bytes));
        assert_eq!(decode(&big).expect("reads"), "潮");
    }

    #[test]
    fn the_place_of_the_first_bad_byte_is_named() {
        assert_eq!(refusal(b"seventeen letters\xe9t\xe9"), "not valid UTF-8 at byte 17");
        assert_eq!(refusal("é".as_bytes().split_last().expect("two bytes").1), "not valid UTF-8 at byte 0");
        assert_eq!(refusal(b"\xff\xfea\0\x00\xd8b\0"), "not valid UTF-16 at byte 4");
        assert_eq!(refusal(b"\xff\xfea\0b"), "not valid UTF-16 at byte 4");
    }

    #[test]
    fn binary_is_called_binary_even_when_it_is_no_utf_8_either() {
        assert_eq!(refusal(b"\xff\xd8\0\x10"), "binary data where text was expected: 0x00 at byte 2");
        assert_eq!(refusal(b"\xff\xfea\0\x01\0"), "binary data where text was expected: 0x01 at byte 4");
    }
}
