//! The preset pipeline over a real folder of files: sync, read, cut, enrich, draw the wiki.
//!
//! [`stage`] holds the work as functions on data, [`library`] keeps what they find, [`draw`] writes the wiki from it,
//! [`sample`] is a folder to try it on.
//!
//! ```
//! use poolwright_demo::id::DocumentId;
//! use poolwright_demo::stage::{chunk, read};
//! use poolwright_demo::{Error, Kind};
//!
//! let text = b"# Slipway\n\nA slipway is a ramp.\n";
//! let document = read::read(Kind::Markdown, "slipway.md", text, &read::Limits::default())?;
//! let chunks = chunk::cut(&DocumentId::from("yard".to_owned()), &document, &chunk::Size::default());
//! assert_eq!((chunks[0].heading.as_str(), chunks[0].text.as_str()), ("Slipway", "A slipway is a ramp."));
//! # Ok::<(), Error>(())
//! ```

pub mod draw;
pub mod error;
pub mod id;
pub mod kind;
pub mod library;
pub mod sample;
pub mod stage;

pub use error::Error;
pub use kind::Kind;
pub use library::Library;
