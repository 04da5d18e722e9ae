//! Each kind of bad file ends as one dead letter with a reason that a person understands, and the rest goes on.

use std::fs::{self, File};

use poolwright_demo::{RunOptions, Summary};

use crate::place::{Place, reasons};

const PNG: &[u8] = include_bytes!("../../sample/pictures/harbour.png");

/// A picture of a few bytes that says it has 3.6 thousand million points.
fn bomb() -> Vec<u8> {
    let mut bytes = PNG.to_vec();
    // Width and height stand behind the signature, a length and `IHDR`; the checksum covers from `IHDR` on.
    bytes[16..20].copy_from_slice(&60_000_u32.to_be_bytes());
    bytes[20..24].copy_from_slice(&60_000_u32.to_be_bytes());
    let checksum = crc_32(&bytes[12..29]);
    bytes[29..33].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

fn crc_32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 },
        )
    })
}

/// A folder with one sound file, every kind of bad one, and what each is to be told.
fn bad_place() -> (Place, Vec<(&'static str, &'static str)>) {
    let place = Place::new();
    place.put("good.md", "# Good\n\nThis file is read all the same.\n");
    place.put("empty.md", "");
    place.put("blank.txt", " \n\n ");
    place.put("binary.txt", [b"words ".repeat(200), vec![0, 1, 2]].concat());
    place.put("latin.txt", b"caf\xe9 au lait");
    place.put("cut.json", r#"{"boat": "Heron", "ya"#);
    place.put("bent.json", "{boat: Heron}");
    place.put("cut.png", &PNG[..PNG.len() / 2]);
    place.put("bomb.png", bomb());
    place.put("words.png", "these are words");
    place.put("picture.md", PNG);
    place.put("paper.txt", b"%PDF-1.7\n1 0 obj");
    File::create(place.files().join("large.csv")).unwrap().set_len(50 << 20).unwrap();
    let expected = vec![
        ("binary.txt", "binary data where text was expected"),
        ("bent.json", "not valid JSON at line 1, column 2"),
        ("blank.txt", "the file holds no text to index"),
        ("bomb.png", "the picture is 60000 × 60000 points"),
        ("cut.json", "the JSON is cut off"),
        ("cut.png", "the PNG picture is cut off"),
        ("empty.md", "the file is empty"),
        ("large.csv", "the file has 50.0 MiB, more than the limit of 20.0 MiB"),
        ("latin.txt", "not valid UTF-8 at byte 3"),
        ("paper.txt", "named .txt, but it holds a PDF document"),
        ("picture.md", "named .md, but it holds a PNG picture"),
        ("words.png", "named .png, but it holds text"),
    ];
    (place, expected)
}

fn check(summary: &Summary, expected: &[(&str, &str)]) {
    let reasons = reasons(summary);
    for (path, reason) in expected {
        let told = reasons.get(*path).unwrap_or_else(|| panic!("{path} is missing in {reasons:#?}"));
        assert!(told.contains(reason), "{path}: {told}");
    }
    assert_eq!(
        (reasons.len(), summary.dead_letters),
        (expected.len(), expected.len() as u64),
        "{reasons:#?}"
    );
    assert!(summary.dead.iter().all(|dead| dead.class == "permanent"), "{:#?}", summary.dead);
    assert_eq!((summary.documents, summary.images, summary.unfinished), (1, 0, 0));
}

#[tokio::test]
async fn each_bad_file_is_one_dead_letter_and_the_rest_goes_on() {
    let (place, expected) = bad_place();
    place.put("tool.exe", b"MZ\x90\0");
    place.put("paper.pdf", b"%PDF-1.7");
    #[cfg(unix)]
    std::os::unix::fs::symlink(place.files().join("good.md"), place.files().join("link.md")).unwrap();
    let first = place.run().await;
    check(&first, &expected);
    assert_eq!(first.skipped, if cfg!(unix) { 3 } else { 2 }, "{:?}", first.left_out);
    assert_eq!(first.retries, 0, "content does not get better");

    let second = place.run().await;
    check(&second, &expected);
    assert_eq!((second.tasks, second.new, second.resumed), (2, 0, 0));
    let again = place.run_with(RunOptions { retry_failed: true, ..place.options() }).await;
    check(&again, &expected);
    assert_eq!(again.resumed, expected.len() as u64);
}

#[tokio::test]
async fn the_store_in_memory_tells_the_same() {
    let (place, expected) = bad_place();
    let memory = RunOptions { broker: "memory:".to_owned(), ..place.options() };
    check(&place.run_with(memory.clone()).await, &expected);
    let second = place.run_with(memory).await;
    check(&second, &expected);
    assert_eq!(second.tasks, 2, "the library remembers, though the queues do not");
}

#[tokio::test]
async fn a_folder_that_goes_away_between_two_runs_loses_nothing_silently() {
    let place = Place::new();
    place.put("a.md", "# Anchor\n\nAn anchor is a hook.\n");
    place.run().await;
    fs::remove_dir_all(place.files()).unwrap();
    let error = Box::pin(poolwright_demo::run(place.options())).await.unwrap_err().to_string();
    assert!(error.starts_with("cannot read "), "{error}");
    assert_eq!(poolwright_demo::search(&place.home(), "hook", 5).unwrap().len(), 1, "unknown is not gone");
}
