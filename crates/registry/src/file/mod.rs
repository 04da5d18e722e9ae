//! The file as written: its keys, and the checked tree of values with their places.
//!
//! `keys` says what may stand where; `walk` holds a parsed file against it and keeps every value it understood as a
//! `node`; `view` reads nodes by key, with defaults. `crate::check` then asks what the walk cannot know: whether the
//! parts fit together.

pub(crate) mod keys;
pub(crate) mod kind;
pub(crate) mod node;
pub(crate) mod syntax;
pub(crate) mod text;
pub(crate) mod view;
pub(crate) mod walk;

pub(crate) use view::{Got, Session, View};
