//! The quick ways of the scripts, which take many plain tasks by a few commands, do what the general ones do: whoever is out of
//! the ordinary among them gets what is due, and the others are not touched by it.
//!
//! | File | Its one duty |
//! | --- | --- |
//! | `enqueue` | ids that are taken, odd ids and names, what goes together and what does not |
//! | `claim` | flagged, unreadable, released and given-back tasks among plain ones |
//! | `settle` | many at once, some of which are not the holder's any more |
//! | `follow_up` | what came while a task ran is run |
//! | `alike` | the same on the store in memory |
//! | `broken` | full memory and keys of wrong types |
//! | `neighbours` | very many, rubbish beside them, a neighbour that is refused or goes away |
//! | `scene` | a server, two stores on it, a clock |

#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod alike;
mod broken;
mod claim;
mod enqueue;
mod follow_up;
mod neighbours;
mod scene;
mod settle;
#[path = "../stage/mod.rs"]
mod stage;
