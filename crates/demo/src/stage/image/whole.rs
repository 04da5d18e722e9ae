//! Whether a picture's file is whole: some decoders fill what is missing with grey and say nothing.

use crate::Error;
use crate::kind::Kind;

/// Refuses a file whose own marks say that it goes on.
pub(super) fn check(kind: Kind, bytes: &[u8]) -> Result<(), Error> {
    let missing = match kind {
        Kind::Jpeg => jpeg(bytes),
        Kind::Png => png(bytes),
        Kind::Webp => webp(bytes),
        Kind::Gif => gif(bytes),
        _ => None,
    };
    let format = kind.title().trim_start_matches("a ");
    missing.map_or(Ok(()), |detail| Err(Error::CutOff { format, detail }))
}

/// The end mark must stand behind the last scan; an embedded preview has one of its own before it. Inside a scan the
/// pair `FF D9` cannot occur.
fn jpeg(bytes: &[u8]) -> Option<String> {
    let last = |mark: u8| bytes.windows(2).rposition(|pair| pair == [0xff, mark]);
    let (scan, end) = (last(0xda), last(0xd9));
    let whole = matches!((scan, end), (Some(scan), Some(end)) if end > scan);
    (!whole).then(|| "its end mark is missing".to_owned())
}

/// The last chunk of a PNG is `IEND`.
fn png(bytes: &[u8]) -> Option<String> {
    let whole = bytes.windows(4).rev().any(|word| word == b"IEND");
    (!whole).then(|| "its last chunk is missing".to_owned())
}

/// The header tells the length.
fn webp(bytes: &[u8]) -> Option<String> {
    let told = bytes.get(4..8).and_then(|told| told.first_chunk::<4>()).map(|told| u32::from_le_bytes(*told));
    let told = u64::from(told.unwrap_or(u32::MAX)).saturating_add(8);
    let have = bytes.len() as u64;
    // An odd length is padded, and some writers leave the last pad out.
    (have + 1 < told).then(|| format!("its header tells of {told} bytes, the file has {have}"))
}

/// A GIF ends with a semicolon; some writers put zeros behind it.
fn gif(bytes: &[u8]) -> Option<String> {
    let last = bytes.iter().rev().find(|byte| **byte != 0);
    (last != Some(&b';')).then(|| "its end mark is missing".to_owned())
}
