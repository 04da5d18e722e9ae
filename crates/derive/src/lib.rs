//! Derives that give a payload its task type: `TaskType` for a struct, `Tasks` for an enum.
//!
//! Both are re-exported by `poolwright::prelude`; nobody needs to depend on this crate.
//!
//! ```
//! use poolwright_derive::{TaskType, Tasks};
//! use poolwright_handler::{Payload, TaskType as _};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize, TaskType)]
//! #[task("image:resize")]
//! # #[task(crate = "poolwright_handler")]
//! struct Resize { path: String, width: u32 }
//! assert_eq!(Resize::NAME, "image:resize");
//!
//! #[derive(Tasks)]
//! # #[task(crate = "poolwright_handler")]
//! enum Job {
//!     SendEmail { to: String, subject: String, body: String },
//!     GenerateSitemap,
//! }
//! assert_eq!(Job::NAMES, ["send_email", "generate_sitemap"]);
//! ```
//!
//! Invariant: generated code names nothing by a path that the user's crate may lack. It goes through the path given by
//! `crate = "…"`, which is `::poolwright::handler` unless said otherwise.

mod attribute;
mod fields;
mod name;
mod task_type;
mod tasks;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `TaskType` for a payload with one task type.
///
/// | attribute | meaning |
/// | --- | --- |
/// | `#[task("image:resize")]`, `#[task(name = "image:resize")]` | the name in `queues.toml`; there is no default, for a renamed struct must not become another task |
/// | `#[task(crate = "my_facade::handler")]` | where the runtime's `handler` module is; `::poolwright::handler` by default |
///
/// A name is not empty, has at most 255 bytes and no control characters, as everywhere else; here the compiler says so.
/// The payload also needs `serde`'s `Serialize` and `Deserialize`: it travels as JSON. One that travels otherwise
/// implements `TaskType` by hand and overrides `encode` and `decode`.
#[proc_macro_derive(TaskType, attributes(task))]
pub fn derive_task_type(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    task_type::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Implements `Payload` for an enum of tasks: each variant is a task type of its own, and its fields are the payload.
///
/// | attribute | on | meaning |
/// | --- | --- | --- |
/// | `#[task(prefix = "mail:")]` | the enum | stands before every name that is made from a variant |
/// | `#[task("mail:send")]`, `#[task(name = "mail:send")]` | a variant | its whole name; the prefix is not added. Default: the variant in snake case, `SendEmail` → `send_email` |
/// | `#[task(crate = "my_facade::handler")]` | the enum | where the runtime's `handler` module is; `::poolwright::handler` by default |
///
/// | variant | payload |
/// | --- | --- |
/// | `SendEmail { to: String }` | a JSON object of the fields: `{"to":"…"}` |
/// | `Resize(Resize)` | the JSON of what it wraps |
/// | `GenerateSitemap` | `{}`; when read, an empty payload and `null` will do as well |
///
/// A variant of several unnamed fields is refused: its JSON would have no names, and could not grow.
///
/// The derive makes a private struct of each variant's fields and lets `serde` derive on *that*. So the enum itself
/// needs no `Serialize`; if it has one, with whatever `#[serde(tag = …)]`, the payloads stay the same, and a program in
/// another language never meets Rust's way to write an enum. `#[serde(…)]` works on fields as always (`rename`,
/// `default`, `with`, `skip`, …), `rename_all` on a variant, `rename_all_fields` and `deny_unknown_fields` on the
/// enum. Fields are serialized from references, so a function named by `serialize_with` may see `&&T` where it is
/// generic.
#[proc_macro_derive(Tasks, attributes(task, serde))]
pub fn derive_tasks(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    tasks::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
