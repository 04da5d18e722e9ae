//! Files made to hurt: each reads or ends as one clear error, without a crash and without growing.
//!
//! A stage whose time grows with the square of its input would keep these tests running for hours.

use poolwright_demo::id::DocumentId;
use poolwright_demo::stage::read::{Document, Limits, read};
use poolwright_demo::stage::{chunk, graph, summary};
use poolwright_demo::{Error, Kind};

const BYTES: usize = 64 << 10;

fn fill(piece: &str) -> String {
    piece.repeat(BYTES / piece.len())
}

fn parse(kind: Kind, text: &str) -> Result<Document, Error> {
    read(kind, "hostile", text.as_bytes(), &Limits::default())
}

/// Reads, and sends what was read through the stages that look at every word.
fn survives(kind: Kind, text: &str) {
    match parse(kind, text) {
        Err(error) => assert!(error.is_permanent(), "{error}"),
        Ok(document) => {
            let bytes: usize = document.sections.iter().map(|section| section.text.len()).sum();
            assert!(bytes <= text.len() * 16, "{bytes} bytes came out of {}", text.len());
            let chunks = chunk::cut(&DocumentId::from("h".to_owned()), &document, &chunk::Size::default());
            let texts: Vec<&str> = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
            assert!(summary::summarise(&texts, &summary::Options::default()).text.len() < 8 << 10);
            assert!(texts.iter().all(|text| graph::extract(text).nodes.len() <= 40));
        }
    }
}

#[test]
fn markdown_that_nests_opens_and_never_closes() {
    let pieces = [
        ">",
        "> a\n",
        "[",
        "![",
        "[a](",
        "[^",
        "*a ",
        "**a *b _c ",
        "*_*_",
        "`a ",
        "<",
        "<a ",
        "<!--",
        "<?",
        "&",
        "\\",
        "- ",
        "1. ",
        "a  \n",
        "x <b> y ",
        "<p>\n",
        "```\n",
        "[a]]",
        "|a",
        "# a\n",
        "a\n=\n",
        "\t",
        "~a ",
        "<http://a",
    ];
    for piece in pieces {
        survives(Kind::Markdown, &fill(piece));
    }
    let stairs: String = (0..700).map(|depth| format!("{}- a\n", " ".repeat(depth))).collect();
    survives(Kind::Markdown, &stairs);
    let references = format!("[a]: {}\n\n{}", "x".repeat(20_000), "[a] ".repeat(20_000));
    survives(Kind::Markdown, &references);
    survives(Kind::Markdown, &format!("{}{}", fill("["), fill("]")));
}

#[test]
fn html_that_opens_and_never_closes() {
    let pieces = [
        "<div>",
        "<b id=1>",
        "<p>a",
        "<a href=b>",
        "<a =\"",
        "<svg>",
        "</",
        "<!",
        "&eacute;",
        "&nosuch;",
        "<li>a",
        "<td>a",
    ];
    for piece in pieces {
        survives(Kind::Html, &fill(piece));
    }
    survives(Kind::Html, &format!("<script>{}", fill("</scripx")));
    survives(Kind::Html, &format!("<p {}>x", fill("a=1 ")));
}

#[test]
fn tables_values_and_lines_without_end() {
    for piece in [",", "\"", "a\n", "a,b\n", ";;\n", "a;\"b"] {
        survives(Kind::Csv, &fill(piece));
    }
    survives(Kind::Csv, &format!("{}\n{}", fill("name,"), fill("1,")));
    for piece in ["[", "{\"a\":", "[1,", "\"", "1", "-", "[[],"] {
        survives(Kind::Json, &fill(piece));
    }
    survives(Kind::Json, &format!("[{}1]", fill("1,")));
    survives(Kind::Json, &format!("[{}[]]", fill("[[]],")));
    for piece in ["x", "a\n", "a\n===\n", ". ", "潮", "A", "a_b ", "Name Name ", "\n1. ", "\u{301}"] {
        survives(Kind::Text, &fill(piece));
    }
}

#[test]
fn a_file_above_the_limit_is_refused_before_it_is_looked_at() {
    let large = vec![b'x'; 50 << 20];
    for kind in [Kind::Markdown, Kind::Text, Kind::Html, Kind::Csv, Kind::Json] {
        let error = read(kind, "large", &large, &Limits::default()).expect_err("refused").to_string();
        assert_eq!(error, "the file has 50.0 MiB, more than the limit of 20.0 MiB");
    }
}

#[test]
fn a_key_repeated_on_every_line_does_not_multiply_without_bound() {
    let deep = format!(
        "{}[{}1]{}",
        format!("{{\"{}\":", "k".repeat(60)).repeat(60),
        "{\"a\":1},".repeat(20_000),
        "}".repeat(60)
    );
    let limits = Limits { text_bytes_max: 1 << 20, ..Limits::default() };
    let error = read(Kind::Json, "deep.json", deep.as_bytes(), &limits).expect_err("refused").to_string();
    assert_eq!(error, "more than 1.0 MiB of text once it is laid out");
}
