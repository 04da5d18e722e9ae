//! The preset pipeline over a real folder of files: sync, read, cut, enrich, draw the wiki.
//!
//! [`stage`] holds the work as functions on data, [`library`] keeps what they find, [`sample`] is a folder to try it
//! on.

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
