//! Reading web pages, the sound ones and the hostile ones.

use super::super::{Document, Limits, read};
use crate::Error;
use crate::kind::Kind;

fn parse(text: &str) -> Result<Document, Error> {
    read(Kind::Html, "page.html", text.as_bytes(), &Limits::default())
}

fn texts(text: &str) -> Vec<String> {
    parse(text).expect("reads").sections.into_iter().map(|section| section.text).collect()
}

#[test]
fn a_page_reads_in_order_under_its_headings() {
    let document = parse(
        "<!doctype html><html><head><title>Tides &amp; winds</title><style>p{}</style></head><body>
         <nav><a href=/home>Home</a></nav><h1>Tides</h1><p>High   water\n at <b>noon</b>.</p>
         <h2>Winds<p>From the west.<br>Strong.<script>var a = '<h2>no</h2>'</script></body></html>",
    );
    let document = document.expect("reads");
    assert_eq!(document.title, "Tides & winds");
    let sections: Vec<_> =
        document.sections.iter().map(|section| (section.path.join("/"), section.text.as_str())).collect();
    let expected =
        [("Tides".to_owned(), "High water at noon."), ("Tides/Winds".to_owned(), "From the west.\nStrong.")];
    assert_eq!(sections, expected);
    assert!(document.links.is_empty(), "the links of a menu are not the page's");
}

#[test]
fn lists_tables_and_preformatted_text_keep_their_lines() {
    assert_eq!(texts("<ul><li>one<li>two</ul>"), ["- one\n\n- two"]);
    assert_eq!(texts("<table><tr><th>a<th>b<tr><td>1</td><td>2</td></tr></table>"), ["a | b\n1 | 2"]);
    assert_eq!(texts("<pre>a\n  b</pre><p>c\n  d"), ["a\n  b\n\nc d"]);
}

#[test]
fn links_and_pictures_are_collected() {
    let document = parse("<p>See <A HREF='log.txt?a=1&amp;b=2'>the <i>log</i></a> <a href=#top>up</a> <img src=hull.png alt='a hull'>")
        .expect("reads");
    assert_eq!(document.links.len(), 1);
    assert_eq!(
        (document.links[0].target.as_str(), document.links[0].label.as_str()),
        ("log.txt?a=1&b=2", "the log")
    );
    assert_eq!(
        (document.images[0].target.as_str(), document.images[0].label.as_str()),
        ("hull.png", "a hull")
    );
}

#[test]
fn a_page_without_words_is_said_to_hold_none() {
    assert!(matches!(parse("<html><script>1</script></html>"), Err(Error::NoText)));
    assert!(matches!(parse("<svg><text>no</text></svg>"), Err(Error::NoText)));
}

#[test]
fn pages_that_would_grow_a_huge_tree_stay_linear() {
    let open: String = (0..20_000).map(|at| format!("<b id={at}>")).collect();
    let blocks = "<p>word".repeat(20_000);
    let document = parse(&format!("{open}{blocks}")).expect("reads");
    assert_eq!(document.sections[0].text.split("\n\n").count(), 20_000);
    assert!(parse(&format!("{}x", "<div>".repeat(200_000))).is_ok());
    let attributes: String = (0..100_000).map(|at| format!(" a{at}")).collect();
    assert!(parse(&format!("<p{attributes}>x")).is_ok());
    assert!(matches!(parse(&"<svg>".repeat(100_000)), Err(Error::NoText)));
    assert!(matches!(parse(&"<!--".repeat(100_000)), Err(Error::NoText)));
    assert!(matches!(parse(&"<title>".repeat(100_000)), Ok(_) | Err(Error::NoText)));
}
