//! Shows problems in the text they are about.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::error::Refused;
use crate::problem::Problem;

/// So many problems are shown in full; a file with more is not a `queues.toml`.
const SHOWN_MAX: usize = 100;

/// All problems, and at the end how many there are.
pub(crate) fn problems(refused: &Refused, coloured: bool) -> String {
    let renderer = if coloured { Renderer::styled() } else { Renderer::plain() };
    let total = refused.problems.len();
    let mut parts: Vec<String> =
        refused.problems.iter().take(SHOWN_MAX).map(|problem| one(&renderer, refused, problem)).collect();
    let count = match total {
        1 => "one problem".to_owned(),
        n if n > SHOWN_MAX => format!("{n} problems, the first {SHOWN_MAX} are shown"),
        n => format!("{n} problems"),
    };
    let summary = format!("{} has {count}; nothing was started", refused.name);
    parts.push(renderer.render(&[Group::with_title(Level::ERROR.primary_title(summary))]));
    parts.join("\n\n")
}

fn one(renderer: &Renderer, refused: &Refused, problem: &Problem) -> String {
    let mut snippet = Snippet::source(&*refused.text)
        .path(&refused.name)
        .annotation(AnnotationKind::Primary.span(problem.span.clone()));
    if let Some(related) = &problem.related {
        snippet = snippet.annotation(AnnotationKind::Context.span(related.span.clone()).label(&related.note));
    }
    let mut group = Level::ERROR.primary_title(&*problem.message).element(snippet);
    if let Some(help) = &problem.help {
        group = group.element(Level::HELP.message(&**help));
    }
    renderer.render(&[group])
}
