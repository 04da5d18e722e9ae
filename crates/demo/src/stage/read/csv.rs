//! CSV: each row becomes a line of `column: cell` pairs, fifty rows to a section.

use csv::{ReaderBuilder, StringRecord};

use super::outline::Outline;
use crate::Error;
use crate::stage::words::clip;

const ROWS_PER_SECTION: usize = 50;
/// Cells of a row that are kept.
const COLUMNS_MAX: usize = 256;
/// Letters of a column's name that are repeated in every row.
const COLUMN_CHARS_MAX: usize = 64;

pub(super) fn read(text: &str, out: &mut Outline<'_>) -> Result<(), Error> {
    let delimiter = delimiter(text);
    let mut reader = ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(text.as_bytes());
    let columns: Vec<String> = reader.headers().map_err(|e| malformed(&e))?.iter().map(column).collect();
    let mut record = StringRecord::new();
    let mut last_row_at = 0;
    let (mut rows, mut ragged) = (0_usize, 0_usize);
    let mut block = String::new();
    while reader.read_record(&mut record).map_err(|e| malformed(&e))? {
        last_row_at = record.position().map_or(0, csv::Position::byte);
        rows += 1;
        ragged += usize::from(record.len() != columns.len());
        describe(&columns, &record, &mut block);
        if rows % ROWS_PER_SECTION == 0 {
            section(out, rows, &mut block)?;
        }
    }
    refuse_open_quote(text, usize::try_from(last_row_at).unwrap_or(0), delimiter)?;
    if rows == 0 {
        out.paragraph(&columns.join(", "))?;
    }
    section(out, rows, &mut block)?;
    if columns.len() > COLUMNS_MAX {
        out.note(format!("only the first {COLUMNS_MAX} of {} columns were read", columns.len()));
    }
    if ragged > 0 {
        out.note(format!(
            "{ragged} of {rows} rows have more or fewer cells than the {} columns",
            columns.len()
        ));
    }
    Ok(())
}

/// The candidate that the first line has most of.
fn delimiter(text: &str) -> u8 {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let count = |mark: u8| first.bytes().filter(|byte| *byte == mark).count();
    // The last of equals wins, so the comma stands last.
    [b'|', b'\t', b';', b','].into_iter().max_by_key(|mark| count(*mark)).unwrap_or(b',')
}

fn column(name: &str) -> String {
    let words: Vec<&str> = clip(name, COLUMN_CHARS_MAX).split_whitespace().collect();
    words.join(" ")
}

/// Appends `column: cell; column: cell` as a line; empty cells are left out, extra ones named by their place.
fn describe(columns: &[String], record: &StringRecord, block: &mut String) {
    let begin = block.len();
    for (at, cell) in record.iter().enumerate().take(COLUMNS_MAX) {
        let cell = cell.trim();
        if cell.is_empty() {
            continue;
        }
        if block.len() > begin {
            block.push_str("; ");
        }
        match columns.get(at).filter(|name| !name.is_empty()) {
            Some(name) => block.push_str(name),
            None => block.push_str(&format!("column {}", at + 1)),
        }
        block.push_str(": ");
        block.push_str(cell);
    }
    if block.len() > begin {
        block.push_str("\n\n");
    }
}

/// Ends the section of the rows up to `last`.
fn section(out: &mut Outline<'_>, last: usize, block: &mut String) -> Result<(), Error> {
    if block.is_empty() {
        return Ok(());
    }
    let first = (last - 1) / ROWS_PER_SECTION * ROWS_PER_SECTION + 1;
    out.enter(&[format!("Rows {first} to {last}")])?;
    out.paragraph(block)?;
    block.clear();
    Ok(())
}

/// A quoted cell that is still open at the end of the file: the one trace that a cut leaves in CSV.
fn refuse_open_quote(text: &str, last_row_at: usize, delimiter: u8) -> Result<(), Error> {
    let tail = text.as_bytes().get(last_row_at..).unwrap_or_default();
    let quotes = tail.iter().filter(|byte| **byte == b'"').count();
    let opens = tail.starts_with(b"\"") || tail.windows(2).any(|pair| pair == [delimiter, b'"']);
    if quotes % 2 == 0 || !opens {
        return Ok(());
    }
    let line = text.as_bytes()[..last_row_at].iter().filter(|byte| **byte == b'\n').count() + 1;
    Err(Error::CutOff {
        format: "CSV",
        detail: format!("the quoted cell that begins near line {line} has no end"),
    })
}

fn malformed(error: &csv::Error) -> Error {
    let line = error.position().map_or(1, csv::Position::line);
    let line = usize::try_from(line).unwrap_or(usize::MAX);
    Error::Malformed { format: "CSV", line, column: 1, detail: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::{Document, Limits, read};
    use crate::Error;
    use crate::kind::Kind;

    fn parse(text: &str) -> Result<Document, Error> {
        read(Kind::Csv, "orders.csv", text.as_bytes(), &Limits::default())
    }

    #[test]
    fn a_row_reads_as_pairs() {
        let document = parse("boat;yard\nHeron;North\n;South\n").expect("reads");
        assert_eq!(
            (document.title.as_str(), document.sections[0].path[0].as_str()),
            ("orders", "Rows 1 to 2")
        );
        assert_eq!(document.sections[0].text, "boat: Heron; yard: North\n\nyard: South");
        assert!(document.notes.is_empty());
    }

    #[test]
    fn ragged_rows_are_read_and_noted() {
        let document = parse("a,b\n1\n1,2,3\n1,2\n").expect("reads");
        assert_eq!(document.sections[0].text, "a: 1\n\na: 1; b: 2; column 3: 3\n\na: 1; b: 2");
        assert_eq!(document.notes, ["2 of 3 rows have more or fewer cells than the 2 columns"]);
    }

    #[test]
    fn fifty_rows_make_a_section() {
        let rows: String = (1..=101).map(|row| format!("{row}\n")).collect();
        let document = parse(&format!("number\n{rows}")).expect("reads");
        let paths: Vec<_> = document.sections.iter().map(|section| section.path.join("/")).collect();
        assert_eq!(paths, ["Rows 1 to 50", "Rows 51 to 100", "Rows 101 to 101"]);
    }

    #[test]
    fn a_header_alone_is_text_too() {
        assert_eq!(parse("boat,yard").expect("reads").sections[0].text, "boat, yard");
    }

    #[test]
    fn a_cell_that_never_ends_is_a_cut_and_an_inch_mark_is_not() {
        let cut = parse("a,b\n1,\"two\nthree").expect_err("refused");
        assert_eq!(cut.to_string(), "the CSV is cut off: the quoted cell that begins near line 2 has no end");
        assert!(parse("disk,bay\n5\" floppy,2\n").is_ok());
        assert!(parse("a,b\n1,\"two \"\"2\"\"\"\n").is_ok());
    }

    #[test]
    fn columns_that_are_left_out_are_noted() {
        let document = parse(&format!("{}z\n{}9\n", "c,".repeat(300), "1,".repeat(300))).expect("reads");
        assert_eq!(document.notes, ["only the first 256 of 301 columns were read"]);
        assert!(!document.sections[0].text.contains('9'));
    }

    #[test]
    fn a_long_header_does_not_multiply() {
        let header = "x".repeat(1 << 20);
        let rows = "1\n".repeat(1 << 16);
        let limits = Limits::default();
        let document =
            read(Kind::Csv, "wide.csv", format!("{header}\n{rows}").as_bytes(), &limits).expect("reads");
        let bytes: usize = document.sections.iter().map(|section| section.text.len()).sum();
        assert!(bytes < 8 << 20, "{bytes}");
    }
}
