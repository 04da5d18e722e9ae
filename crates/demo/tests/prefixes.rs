//! Every beginning of every sample file, and each with a byte turned, either reads or ends as one clear error.

use poolwright_demo::id::DocumentId;
use poolwright_demo::stage::image::{self, inspect};
use poolwright_demo::stage::question::{self, Passage, ask};
use poolwright_demo::stage::read::{Limits, read};
use poolwright_demo::stage::{chunk, graph, summary};
use poolwright_demo::{Error, Kind, sample};

/// What all stages together make of a file; the error when it does not read.
fn work_through(kind: Kind, name: &str, bytes: &[u8]) -> Result<usize, Error> {
    if kind.is_picture() {
        let limits = image::Limits { points_max: 1 << 18, thumbnail_side: 32, ..image::Limits::default() };
        return inspect(kind, bytes, &limits).map(|picture| picture.thumbnail.len());
    }
    let document = read(kind, name, bytes, &Limits::default())?;
    assert!(!document.title.is_empty(), "every document has a title");
    assert!(document.sections.iter().all(|section| !section.text.trim().is_empty()), "no section is empty");
    let chunks = chunk::cut(&DocumentId::from(name.to_owned()), &document, &chunk::Size::default());
    let texts: Vec<&str> = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
    assert!(texts.iter().all(|text| (1..=1_600).contains(&text.chars().count())));
    let summary = summary::summarise(&texts, &summary::Options::default());
    assert!(!summary.text.is_empty() || texts.is_empty(), "what has text has a summary");
    let passages: Vec<Passage<'_>> = chunks
        .iter()
        .map(|chunk| Passage { chunk: &chunk.id, heading: &chunk.heading, text: &chunk.text })
        .collect();
    for question in ask(&passages, &question::Options::default()) {
        assert!(question.text.ends_with('?') && !question.answer.is_empty(), "{question:?}");
    }
    Ok(texts.iter().map(|text| graph::extract(text).nodes.len()).sum())
}

/// A person can act on it: it says something, on one line, in bearable length.
fn assert_clear(error: &Error, what: &str) {
    let text = error.to_string();
    assert!((10..=300).contains(&text.len()) && !text.contains('\n'), "{what}: {text}");
    assert!(error.is_permanent(), "{what}: no second try would help: {text}");
}

fn files() -> impl Iterator<Item = (&'static str, Kind, &'static [u8])> {
    sample::FILES.iter().map(|(path, bytes)| {
        let extension = path.rsplit('.').next().expect("every sample file has an extension");
        (*path, Kind::of_extension(extension).expect("a kind that is read"), *bytes)
    })
}

#[test]
fn every_prefix_reads_or_ends_as_a_clear_error() {
    for (path, kind, bytes) in files() {
        for end in 0..bytes.len() {
            // What reads goes through the stages behind only now and then: their input is sound text by then.
            let done = if end % 8 == 0 || kind.is_picture() {
                work_through(kind, path, &bytes[..end]).err()
            } else {
                read(kind, path, &bytes[..end], &Limits::default()).err()
            };
            if let Some(error) = done {
                assert_clear(&error, &format!("{path} cut at {end}"));
            }
        }
    }
}

#[test]
fn a_turned_byte_reads_or_ends_as_a_clear_error() {
    for (path, kind, bytes) in files() {
        let mut turned = bytes.to_vec();
        for at in (0..bytes.len()).step_by(9) {
            // A different bit pattern at each place, the same in every run.
            turned[at] ^= (at * 37 % 255 + 1) as u8;
            if let Err(error) = work_through(kind, path, &turned) {
                assert_clear(&error, &format!("{path} turned at {at}"));
            }
            turned[at] = bytes[at];
        }
    }
}

#[test]
fn a_cut_picture_or_json_file_never_passes_for_whole() {
    for (path, kind, bytes) in files()
        .filter(|(path, kind, _)| !path.starts_with("broken/") && (kind.is_picture() || *kind == Kind::Json))
    {
        // White space may follow the end of a JSON file, padding that of a picture.
        let whole = bytes.trim_ascii_end().len() - 1;
        for end in 0..whole {
            if work_through(kind, path, &bytes[..end]).is_ok() {
                assert!(end + 8 >= whole, "{path} cut at {end} of {whole} passed for whole");
            }
        }
    }
}

#[test]
fn whole_files_read_and_the_two_broken_ones_say_why() {
    for (path, kind, bytes) in files() {
        let done = work_through(kind, path, bytes);
        match path {
            "broken/cut-off.json" => {
                let text = done.expect_err("broken").to_string();
                assert_eq!(
                    text,
                    "the JSON is cut off: it ends at line 13, column 35, while parsing a string"
                );
            }
            "broken/half-a-picture.png" => {
                let text = done.expect_err("broken").to_string();
                assert_eq!(text, "the PNG picture is cut off: its last chunk is missing");
            }
            _ => drop(done.unwrap_or_else(|error| panic!("{path}: {error}"))),
        }
    }
}
