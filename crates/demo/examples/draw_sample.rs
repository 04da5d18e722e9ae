//! Draws the pictures of the sample folder. Run once, and again only to change them:
//! `cargo run -p poolwright-demo --example draw_sample`.

use std::error::Error;
use std::fs;
use std::io::Cursor;
use std::path::Path;

use image::{DynamicImage, ImageFormat, Rgb, RgbImage};

const SKY: [u8; 3] = [168, 205, 228];
const SEA: [u8; 3] = [38, 92, 128];
const STONE: [u8; 3] = [128, 124, 116];
const OAK: [u8; 3] = [134, 88, 48];
const RED: [u8; 3] = [190, 44, 40];
const SAIL: [u8; 3] = [244, 238, 222];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample");
    let pictures = folder.join("pictures");
    fs::create_dir_all(&pictures)?;
    let harbour = encode(harbour(), ImageFormat::Png)?;
    fs::write(pictures.join("harbour.png"), &harbour)?;
    fs::write(pictures.join("slipway.jpg"), encode(slipway(), ImageFormat::Jpeg)?)?;
    fs::write(pictures.join("burgee.gif"), encode(burgee(), ImageFormat::Gif)?)?;
    fs::write(pictures.join("buoy.webp"), encode(buoy(), ImageFormat::WebP)?)?;
    fs::write(folder.join("broken/half-a-picture.png"), &harbour[..harbour.len() / 2])?;
    Ok(())
}

fn encode(picture: RgbImage, format: ImageFormat) -> Result<Vec<u8>, image::ImageError> {
    let mut file = Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(picture).write_to(&mut file, format)?;
    Ok(file.into_inner())
}

/// Sky, sea, a wall from the left and a boat with two sails. Larger than a thumbnail.
fn harbour() -> RgbImage {
    RgbImage::from_fn(320, 200, |x, y| {
        let (dx, dy) = (x.abs_diff(210), 120_u32.saturating_sub(y));
        let sail = y < 120 && y > 40 && dx > 1 && dx < 40 && dx + dy < 78 && (x > 210 || dx < 26);
        let hull = (120..132).contains(&y) && dx < 46 - (y - 120);
        let wall = x < 110 && (96..126).contains(&y);
        Rgb(match () {
            () if sail => SAIL,
            () if hull => OAK,
            () if wall => STONE,
            () if y >= 124 => SEA,
            () => SKY,
        })
    })
}

/// A ramp that falls to the right, with rails.
fn slipway() -> RgbImage {
    RgbImage::from_fn(160, 120, |x, y| {
        let ramp = 30 + x / 2;
        Rgb(match () {
            () if y.abs_diff(ramp) < 3 => OAK,
            () if y > ramp && y > 84 => SEA,
            () if y > ramp => STONE,
            () => SKY,
        })
    })
}

/// A red pennant with a light disc.
fn burgee() -> RgbImage {
    RgbImage::from_fn(48, 32, |x, y| {
        let inside = y.abs_diff(16) * 3 <= 48 - x;
        let disc = x.abs_diff(14).pow(2) + y.abs_diff(16).pow(2) < 30;
        Rgb(if disc {
            SAIL
        } else if inside {
            RED
        } else {
            SKY
        })
    })
}

/// A red ball on the water.
fn buoy() -> RgbImage {
    RgbImage::from_fn(64, 64, |x, y| {
        let ball = x.abs_diff(32).pow(2) + y.abs_diff(30).pow(2) < 15 * 15;
        Rgb(if ball && y < 40 {
            RED
        } else if y >= 36 {
            SEA
        } else {
            SKY
        })
    })
}
