//! The cases, one topic a file.

pub(crate) mod submit;
