//! Draws the wiki: a page for each document, a page for each term that documents share, and an index.
//!
//! ```text
//!   index.md ──► documents/<path>-<id>.md ◄──► terms/<term>-<id>.md
//!                       │  ▲ related, links, pictures
//!                       ▼  │
//!                pictures/<path>-<id>.png
//! ```
//!
//! Invariant: pages are a function of what the library holds, whatever order the work was done in; a page's name
//! depends on the document's path or the term alone, so an edit changes a page and never moves it.

mod atlas;
mod name;
mod page;
mod shelf;

pub use atlas::{Atlas, Entry, Mention};
pub use name::{PageName, resolve};
pub(crate) use page::QUESTIONS_MAX;
pub use page::{Details, Failure, LeftOut, Page, document_page, index_page, term_page, thumbnail};
pub(crate) use shelf::write_beside;
pub use shelf::{Put, Shelf};
