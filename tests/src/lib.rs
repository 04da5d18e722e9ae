//! Whole-system stories over public APIs only: what they share.
