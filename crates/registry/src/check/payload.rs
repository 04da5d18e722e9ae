//! Where in a payload things stand: a type's paths and those of the defaults together, and its id template.

use std::collections::HashMap;
use std::sync::Arc;

use crate::file::node::{Entry, Node, Span};
use crate::file::{Got, View};
use crate::path::Path;
use crate::problem::Fault;
use crate::rules::Keys;
use crate::suggest::{self, did_you_mean, quote};
use crate::template::Template;

pub(super) fn read(view: &View<'_>, defaults: &View<'_>) -> Keys {
    let tenant: Option<Got<Path>> = view.option("tenant");
    let subjects = by_kind(view, defaults, "subject");
    let scopes = by_kind(view, defaults, "scopes");
    let shows = shows(view, defaults);
    let fields = both(view, defaults, "fields");
    let id: Option<Got<Template>> = view.option("id");
    if let Some(id) = &id {
        let tenant = tenant.iter().map(|got| &got.value);
        let keyed = subjects.iter().chain(&scopes).map(|(_, path)| path);
        let listed = shows.iter().chain(&fields).map(|(path, _)| path);
        let known: Vec<String> = tenant.chain(keyed).chain(listed).flat_map(Path::fields).collect();
        declared(view, id, &known);
    }
    Keys {
        tenant: tenant.map(|got| got.value),
        subjects,
        scopes,
        shows: shows.into_iter().map(|(path, _)| path).collect(),
        id: id.map(|got| got.value),
    }
}

/// The paths of the defaults and the type's own by kind, in the order in which the kinds appear.
fn by_kind(view: &View<'_>, defaults: &View<'_>, name: &str) -> Vec<(Arc<str>, Path)> {
    let mut kinds: Vec<(Arc<str>, Vec<Path>)> = Vec::new();
    for entry in defaults.entries(name).iter().chain(view.entries(name)) {
        let index = kinds.iter().position(|(kind, _)| *kind == entry.name).unwrap_or_else(|| {
            kinds.push((entry.name.clone(), Vec::new()));
            kinds.len() - 1
        });
        let known = &mut kinds[index].1;
        for path in paths(entry) {
            if !known.contains(path) {
                known.push(path.clone());
            }
        }
    }
    if !kinds.is_empty() {
        let shown = kinds.iter().map(|(kind, paths)| {
            let paths: Vec<&str> = paths.iter().map(Path::as_str).collect();
            format!("{kind} = [{}]", paths.join(", "))
        });
        let shown = format!("{{ {} }}", shown.collect::<Vec<_>>().join(", "));
        view.row(name, shown, source(view, defaults, name).map(|entry| &entry.span));
    }
    kinds
        .into_iter()
        .flat_map(|(kind, paths)| paths.into_iter().map(move |path| (kind.clone(), path)))
        .collect()
}

fn paths(entry: &Entry) -> impl Iterator<Item = &Path> {
    let items = match &entry.node {
        Node::List(items) => items.as_slice(),
        _ => &[],
    };
    items.iter().filter_map(|(node, _)| match node {
        Node::Path(path) => Some(path),
        _ => None,
    })
}

fn source<'v>(view: &View<'v>, defaults: &View<'v>, name: &str) -> Option<&'v Entry> {
    view.own(name).or_else(|| defaults.own(name))
}

/// The list of the defaults and the type's own, each path once.
fn both(view: &View<'_>, defaults: &View<'_>, name: &str) -> Vec<(Path, Span)> {
    let mut all: Vec<(Path, Span)> = Vec::new();
    for (path, span) in defaults.list(name).into_iter().chain(view.list(name)) {
        if !all.iter().any(|(known, _)| *known == path) {
            all.push((path, span));
        }
    }
    if !all.is_empty() {
        let shown: Vec<&str> = all.iter().map(|(path, _)| path.as_str()).collect();
        let entry = source(view, defaults, name);
        view.row(name, format!("[{}]", shown.join(", ")), entry.map(|entry| &entry.span));
    }
    all
}

fn shows(view: &View<'_>, defaults: &View<'_>) -> Vec<(Path, Span)> {
    let all = both(view, defaults, "shows");
    let mut names: HashMap<String, &Span> = HashMap::new();
    for (path, span) in &all {
        let name = path.shown_as();
        if let Some(first) = names.get(&name) {
            let message = format!("two fields would be shown as {}", quote(&name));
            let help = "remove one, or write both as alternatives: `first|second`";
            view.fault(Fault::new(span, message).related(first, "the first of them").help(help));
            continue;
        }
        names.insert(name, span);
    }
    all
}

/// An id must be made of fields that the file knows: a typing error there would make every enqueue fail.
fn declared(view: &View<'_>, id: &Got<Template>, known: &[String]) {
    for field in id.value.fields().filter(|field| !known.iter().any(|name| name == field)) {
        let known = || known.iter().map(String::as_str);
        let near = did_you_mean(field, known());
        let message = format!("the id template names {}, which is no declared field{near}", quote(field));
        let declared = suggest::known("; declared are", known()).replacen(": ", " ", 1);
        let help = format!("declare it with `fields = [\"{field}\"]`{declared}");
        view.fault(Fault::new(&id.span, message).help(help));
    }
}
