//! What stands on the pages, and that their links hold.

use super::*;
use crate::id::{ChunkId, SourceId};
use crate::stage::graph::NodeKind;
use crate::stage::summary::Keyword;
use crate::stage::wiki::Mention;

fn entry(path: &str, kind: Kind, terms: &[&str], targets: &[&str]) -> Entry {
    let source = SourceId::from("s".to_owned());
    let mention = |term: &&str| Mention {
        term: term.to_lowercase(),
        label: (*term).to_owned(),
        kind: NodeKind::Name,
        count: 2,
    };
    Entry {
        id: DocumentId::of(&source, path),
        source,
        path: path.to_owned(),
        kind,
        title: format!("The {path}"),
        mentions: terms.iter().map(mention).collect(),
        targets: targets.iter().map(|&target| target.to_owned()).collect(),
    }
}

fn yard() -> Atlas {
    Atlas::new(vec![
        entry("notes/slip.md", Kind::Markdown, &["Heron", "Tern"], &["log.txt", "pictures/hull.png"]),
        entry("log.txt", Kind::Text, &["Heron"], &[]),
        entry("pictures/hull.png", Kind::Png, &[], &[]),
    ])
}

fn read(page: &Page) -> &str {
    std::str::from_utf8(&page.content).expect("Markdown is text")
}

/// Every link of the page that leads to a file of the wiki.
fn targets(page: &Page) -> Vec<String> {
    read(page).split("](").skip(1).filter_map(|rest| rest.split(')').next()).map(str::to_owned).collect()
}

#[test]
fn a_document_page_tells_what_it_holds_and_leads_on() {
    let atlas = yard();
    let place = 1;
    let id = atlas.entries()[place].id.clone();
    assert_eq!(atlas.entries()[place].path, "notes/slip.md");
    let question = Question {
        chunk: ChunkId::of(&id, 0, ""),
        text: "What is a *slip*?".to_owned(),
        answer: "A ramp\nfor <boats>.".to_owned(),
    };
    let details = Details {
        summary: Some(Summary {
            text: "It is a ramp.".to_owned(),
            keywords: vec![Keyword { term: "ramp".to_owned(), count: 2 }],
        }),
        questions: vec![question],
        questions_total: 3,
        chunks: 1,
        notes: vec!["1 links or pictures were left out".to_owned()],
        picture: None,
    };
    let page = document_page(&atlas, &id, &details).expect("has a page");
    let text = read(&page);
    assert!(
        text.starts_with("# The notes/slip.md\n\n`notes/slip.md` · Markdown · 1 chunk\n\n> It is a ramp.\n"),
        "{text}"
    );
    assert!(text.contains("- **What is a \\*slip\\*?** A ramp for \\<boats\\>.\n- and 2 more\n"), "{text}");
    assert!(text.contains("## Links to\n\n- [The log.txt](../documents/log-txt-"), "{text}");
    assert!(
        text.contains("## Pictures\n\n[![The pictures/hull.png](../pictures/pictures-hull-png-"),
        "{text}"
    );
    assert!(text.contains("## Related\n\n- [The log.txt]("), "{text}");
    assert!(text.contains("## Notes on reading\n\n- 1 links"), "{text}");
}

#[test]
fn a_picture_page_shows_the_picture_and_who_shows_it() {
    let atlas = yard();
    let id = atlas.entries()[2].id.clone();
    let colour = Colour([16, 32, 255]);
    let picture = Some((40, 30, Some(colour), vec![Share { colour, percent: 90 }]));
    let page = document_page(&atlas, &id, &Details { picture, ..Details::default() }).expect("has a page");
    let text = read(&page);
    assert!(text.contains("40 × 30 points, on average `#1020ff`"), "{text}");
    assert!(text.contains("| `#1020ff` | 90 % |"), "{text}");
    assert!(text.contains("## Linked from\n\n- [The notes/slip.md]("), "{text}");
}

#[test]
fn every_link_leads_to_a_page_that_is_drawn() {
    let atlas = yard();
    let documents =
        atlas.entries().iter().filter_map(|entry| document_page(&atlas, &entry.id, &Details::default()));
    let terms = atlas.terms().filter_map(|term| term_page(&atlas, term));
    let mut pages: Vec<Page> = documents.chain(terms).collect();
    pages.push(index_page(&atlas, &[], &[]));
    pages.push(thumbnail(&atlas.entries()[2], b"png".to_vec()));
    assert_eq!(pages.len(), 3 + 1 + 1 + 1);
    let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
    for page in &pages {
        for target in targets(page) {
            let name = target.strip_prefix("../").unwrap_or(&target).to_owned();
            assert!(names.contains(&name.as_str()), "{} leads to {target}", page.name);
        }
    }
}

#[test]
fn the_index_lists_folders_terms_and_what_was_not_read() {
    let failures = [Failure { path: "broken/cut.json".to_owned(), reason: "the JSON is cut off".to_owned() }];
    let reason = crate::Error::Unsupported { what: ".exe files".to_owned() }.to_string();
    let left_out = [LeftOut { reason, files: 3, example: "tools/a.exe".to_owned() }];
    let page = index_page(&yard(), &failures, &left_out);
    let text = read(&page);
    assert!(
        text.starts_with("# Wiki\n\n2 documents · 1 picture · 1 term\n\n## Top folder\n\n- [The log.txt]("),
        "{text}"
    );
    assert!(text.contains("\n## notes\n") && text.contains("\n## pictures\n"), "{text}");
    assert!(text.contains("## Terms\n\n[Heron](terms/heron-"), "{text}");
    let end = "## Not read\n\n- `broken/cut.json`: the JSON is cut off\n\n\
               ## Left out\n\nMarkdown, text, HTML, CSV, JSON and pictures are read.\n\n\
               - .exe files: 3 files, as `tools/a.exe`\n";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn unknown_documents_and_terms_have_no_page() {
    let nobody = DocumentId::from("nobody".to_owned());
    assert_eq!(document_page(&yard(), &nobody, &Details::default()), None);
    assert_eq!(term_page(&yard(), "tern"), None, "a term of one document has no page");
}
