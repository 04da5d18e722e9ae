//! The picture stage over pictures drawn here.

use image::{DynamicImage, Rgba, RgbaImage};

use super::*;

/// Left half one colour, right half another.
fn halves(width: u32, height: u32, left: [u8; 4], right: [u8; 4]) -> RgbaImage {
    RgbaImage::from_fn(width, height, |x, _| Rgba(if x < width / 2 { left } else { right }))
}

fn write(points: &RgbaImage, format: ImageFormat) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    let picture = DynamicImage::ImageRgba8(points.clone());
    let picture =
        if format == ImageFormat::Jpeg { DynamicImage::ImageRgb8(picture.into_rgb8()) } else { picture };
    picture.write_to(&mut file, format).expect("encodes");
    file.into_inner()
}

const RED: [u8; 4] = [220, 20, 20, 255];
const BLUE: [u8; 4] = [20, 20, 220, 255];
const KINDS: [(Kind, ImageFormat); 4] = [
    (Kind::Png, ImageFormat::Png),
    (Kind::Jpeg, ImageFormat::Jpeg),
    (Kind::Gif, ImageFormat::Gif),
    (Kind::Webp, ImageFormat::WebP),
];

#[test]
fn each_format_gives_size_colours_and_thumbnail() {
    for (kind, format) in KINDS {
        let file = write(&halves(400, 100, RED, BLUE), format);
        let picture = inspect(kind, &file, &Limits::default()).expect("decodes");
        assert_eq!((picture.width, picture.height), (400, 100), "{kind}");
        assert_eq!(picture.colours.len(), 2, "{kind}: {:?}", picture.colours);
        assert!(picture.colours.iter().all(|share| (48..=52).contains(&share.percent)), "{kind}");
        let average = picture.average.expect("opaque").0;
        assert!(
            (115..=125).contains(&average[0]) && (115..=125).contains(&average[2]),
            "{kind}: {average:?}"
        );
        let thumbnail = image::load_from_memory(&picture.thumbnail).expect("a PNG");
        assert_eq!((thumbnail.width(), thumbnail.height()), (256, 64), "{kind}");
    }
}

#[test]
fn a_small_picture_is_its_own_thumbnail() {
    let file = write(&halves(8, 4, RED, BLUE), ImageFormat::Png);
    let picture = inspect(Kind::Png, &file, &Limits::default()).expect("decodes");
    let thumbnail = image::load_from_memory(&picture.thumbnail).expect("a PNG");
    assert_eq!(thumbnail.into_rgba8(), halves(8, 4, RED, BLUE));
}

#[test]
fn a_thin_picture_keeps_a_thumbnail_of_at_least_one_point() {
    let file = write(&halves(2_000, 1, RED, BLUE), ImageFormat::Png);
    let picture = inspect(Kind::Png, &file, &Limits::default()).expect("decodes");
    let thumbnail = image::load_from_memory(&picture.thumbnail).expect("a PNG");
    assert_eq!((thumbnail.width(), thumbnail.height()), (256, 1));
}

#[test]
fn transparent_points_have_no_colour() {
    let clear = inspect(
        Kind::Png,
        &write(&halves(4, 4, [1, 2, 3, 0], [4, 5, 6, 9]), ImageFormat::Png),
        &Limits::default(),
    );
    let clear = clear.expect("decodes");
    assert_eq!((clear.average, clear.colours.len()), (None, 0));
    let half =
        inspect(Kind::Png, &write(&halves(4, 4, RED, [0, 0, 0, 0]), ImageFormat::Png), &Limits::default());
    assert_eq!(half.expect("decodes").colours, [Share { colour: Colour([220, 20, 20]), percent: 100 }]);
}

#[test]
fn the_size_is_judged_before_a_point_is_decoded() {
    let bomb = bomb(60_000, 60_000);
    let error = inspect(Kind::Png, &bomb, &Limits::default()).expect_err("refused").to_string();
    assert_eq!(
        error,
        "the picture is 60000 × 60000 points; at most 16384 a side and 50000000 in all are decoded"
    );
    let wide = inspect(
        Kind::Png,
        &write(&halves(300, 2, RED, BLUE), ImageFormat::Png),
        &Limits { points_max: 599, ..Limits::default() },
    );
    assert!(matches!(wide, Err(Error::PictureTooLarge { width: 300, height: 2, .. })));
}

/// A PNG of a few bytes whose header tells of a huge picture.
fn bomb(width: u32, height: u32) -> Vec<u8> {
    let mut file = write(&halves(2, 2, RED, BLUE), ImageFormat::Png);
    file[16..20].copy_from_slice(&width.to_be_bytes());
    file[20..24].copy_from_slice(&height.to_be_bytes());
    let crc = crc_32(&file[12..29]);
    file[29..33].copy_from_slice(&crc.to_be_bytes());
    file
}

fn crc_32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[test]
fn cut_files_are_called_cut_off_and_not_filled_with_grey() {
    for (kind, format) in KINDS {
        let file = write(&halves(64, 48, RED, BLUE), format);
        let cut = inspect(kind, &file[..file.len() * 2 / 3], &Limits::default()).expect_err("refused");
        assert!(matches!(cut, Error::CutOff { .. }), "{kind}: {cut}");
    }
}

#[test]
fn text_and_empty_files_are_refused_clearly() {
    assert!(matches!(inspect(Kind::Gif, b"", &Limits::default()), Err(Error::Empty)));
    assert!(matches!(inspect(Kind::Markdown, b"# x", &Limits::default()), Err(Error::Unsupported { .. })));
    let text = inspect(Kind::Gif, b"GIF? no; text;", &Limits::default()).expect_err("refused").to_string();
    assert!(text.starts_with("not a readable GIF picture: "), "{text}");
}
