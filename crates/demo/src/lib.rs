//! The preset pipeline over a real folder of files: sync, read, cut, enrich, draw the wiki.
//!
//! [`run()`] runs it: the handlers of the preset's tasks on six pools, until all work has ended. [`stage`] holds the work
//! as functions on data, [`library`] keeps what they find, [`draw`] writes the wiki from it, [`sample`] is a folder to
//! try it on.
//!
//! ```no_run
//! use poolwright_demo::{RunOptions, run, search};
//!
//! # async fn f() -> Result<(), poolwright_demo::Error> {
//! let options = RunOptions { folders: vec!["notes".into()], ..RunOptions::at(".poolwright/demo") };
//! let summary = run(options).await?;
//! println!("{summary}");
//! for hit in search(".poolwright/demo".as_ref(), "dead letter", 10)? {
//!     println!("{}: {}", hit.path, hit.snippet);
//! }
//! # Ok(()) }
//! ```
//!
//! A stage by itself:
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

mod desk;
pub mod draw;
pub mod error;
mod handlers;
pub mod id;
pub mod kind;
pub mod library;
mod over;
pub mod payload;
mod preset;
mod run;
pub mod sample;
pub mod stage;
mod summary;
mod view;

pub use error::Error;
pub use handlers::handled_types;
pub use kind::Kind;
pub use library::{Hit, Library};
pub use run::{RunOptions, run, search};
pub use summary::{Dead, Summary};
pub use view::{View, text};
