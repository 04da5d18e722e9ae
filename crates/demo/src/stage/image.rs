//! Looks at a picture: its size, its colours, and a thumbnail.
//!
//! Invariant: the size is read and judged before a point is decoded, so a picture bomb costs nothing.

use std::io::Cursor;

use image::{
    DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, RgbaImage, metadata::Orientation,
};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::kind::Kind;
use crate::stage::words::shorten;

mod colour;
mod whole;

pub use colour::{Colour, Share};

/// Letters of a decoder's message that are shown.
const DETAIL_CHARS_MAX: usize = 160;

/// Bounds of one picture, and what is made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Points on either side. Default 16,384.
    pub side_max: u32,
    /// Points in all. Default 50 million.
    pub points_max: u64,
    /// Bytes that the decoder may ask for, the decoded picture among them. Default 256 MiB.
    pub alloc_max: u64,
    /// Points on the longer side of the thumbnail. Default 256.
    pub thumbnail_side: u32,
    /// Colours that are told. Default 5.
    pub colours_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            side_max: 16_384,
            points_max: 50_000_000,
            alloc_max: 256 << 20,
            thumbnail_side: 256,
            colours_max: 5,
        }
    }
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Points across, as it is shown.
    pub width: u32,
    /// Points down, as it is shown.
    pub height: u32,
    /// The mean of the points that are not transparent; nothing when all are.
    pub average: Option<Colour>,
    /// The colours that cover most, the largest first.
    pub colours: Vec<Share>,
    /// A PNG; the picture itself when that is small enough.
    pub thumbnail: Vec<u8>,
}

/// Decodes `bytes` as `kind`; of an animation the first frame.
///
/// # Errors
/// [`Error::Empty`], [`Error::CutOff`], [`Error::PictureTooLarge`], [`Error::Picture`], or [`Error::Unsupported`] when
/// `kind` is no picture.
pub fn inspect(kind: Kind, bytes: &[u8], limits: &Limits) -> Result<Picture, Error> {
    let format = match kind {
        Kind::Png => ImageFormat::Png,
        Kind::Jpeg => ImageFormat::Jpeg,
        Kind::Gif => ImageFormat::Gif,
        Kind::Webp => ImageFormat::WebP,
        _ => return Err(Error::Unsupported { what: format!("{} as a picture", kind.title()) }),
    };
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    whole::check(kind, bytes)?;
    let (full, turn) = decode(format, bytes, limits).map_err(|refused| refused.of(kind))?;
    let (width, height) = (full.width(), full.height());
    let mut small = shrink(full, limits.thumbnail_side.max(1));
    // Turning the thumbnail gives the same picture as shrinking the turned one, for a fraction of the memory.
    small.apply_orientation(turn);
    let (width, height) = if is_quarter_turn(turn) { (height, width) } else { (width, height) };
    let points = small.into_rgba8();
    Ok(Picture {
        width,
        height,
        average: colour::average(&points),
        colours: colour::dominant(&points, limits.colours_max),
        thumbnail: encode(&points).map_err(|refused| refused.of(kind))?,
    })
}

enum Refused {
    TooLarge(Error),
    Decoder(ImageError),
}

impl Refused {
    fn of(self, kind: Kind) -> Error {
        let format = kind.title().trim_start_matches("a ");
        match self {
            Self::TooLarge(error) => error,
            Self::Decoder(ImageError::IoError(e)) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
                Error::CutOff { format, detail: "the file ends before the picture does".into() }
            }
            Self::Decoder(error) => {
                // The outer error only repeats the format.
                let detail =
                    std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
                Error::Picture { format, detail: shorten(&detail, DETAIL_CHARS_MAX) }
            }
        }
    }
}

impl From<ImageError> for Refused {
    fn from(error: ImageError) -> Self {
        Self::Decoder(error)
    }
}

fn decode(
    format: ImageFormat,
    bytes: &[u8],
    limits: &Limits,
) -> Result<(DynamicImage, Orientation), Refused> {
    let mut bounds = image::Limits::no_limits();
    bounds.max_alloc = Some(limits.alloc_max);
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    reader.limits(bounds);
    let mut decoder = reader.into_decoder()?;
    let (width, height) = decoder.dimensions();
    let side_fits = width <= limits.side_max && height <= limits.side_max;
    let points_fit = u64::from(width) * u64::from(height) <= limits.points_max;
    if !side_fits || !points_fit || decoder.total_bytes() > limits.alloc_max {
        let (side_max, points_max) = (limits.side_max, limits.points_max);
        return Err(Refused::TooLarge(Error::PictureTooLarge { width, height, side_max, points_max }));
    }
    // A picture without the note is upright, and one whose note does not read is shown as it is.
    let turn = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    Ok((DynamicImage::from_decoder(decoder)?, turn))
}

fn shrink(full: DynamicImage, side: u32) -> DynamicImage {
    if full.width() <= side && full.height() <= side { full } else { full.thumbnail(side, side) }
}

fn is_quarter_turn(turn: Orientation) -> bool {
    matches!(
        turn,
        Orientation::Rotate90
            | Orientation::Rotate270
            | Orientation::Rotate90FlipH
            | Orientation::Rotate270FlipH
    )
}

fn encode(points: &RgbaImage) -> Result<Vec<u8>, Refused> {
    let mut png = Cursor::new(Vec::new());
    points.write_to(&mut png, ImageFormat::Png)?;
    Ok(png.into_inner())
}

#[cfg(test)]
mod tests;
