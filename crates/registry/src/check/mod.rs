//! Reads a file into a topology, or says everything that is wrong with it.
//!
//! Each family of problems has a file. Each reads its part of the tree, writes down what does not fit together and
//! hands on what it could build, so that the next family can go on; nothing that was built leaves here beside a fault.

mod homes;
mod housekeeping;
mod payload;
mod pools;
mod queues;
mod retry;
mod runtime;
mod tasks;

use toml::de::{DeTable, DeValue};

use crate::error::Error;
use crate::file::keys::{ROOT, VERSION};
use crate::file::{Session, View, syntax, walk};
use crate::problem::{Fault, Lines, Warning};
use crate::resolve::Loader;
use crate::topology::{Parts, Topology};

/// Reads the text of a file.
pub(crate) fn parse(loader: &Loader<'_>, name: &str, text: &str) -> Result<(Topology, Vec<Warning>), Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = Lines::new(text);
    let refuse = |faults| Err(Error::refused(name, text, lines.locate(faults)));
    let (mended, mut broken) = syntax::mend(text);
    let (tree, _) = DeTable::parse_recoverable(&mended);
    let tree = tree.get_ref();
    if let Some(fault) = other_version(tree) {
        broken.push(fault);
        return refuse(broken);
    }
    let (entries, faults) = walk::file(tree, broken.is_empty());
    if !broken.is_empty() {
        // Each value that could be read was judged; whether the parts fit together nobody can say of a part.
        broken.extend(faults);
        return refuse(broken);
    }
    let session = Session::new(name, &lines, loader, faults);
    let parts = all(&View::new(&session, &ROOT, &entries));
    let (faults, warnings, rows) = session.finish();
    if faults.is_empty() { Ok((Topology::new(name, parts, rows), warnings)) } else { refuse(faults) }
}

/// Of a file of another version nothing can be said but that.
fn other_version(tree: &DeTable<'_>) -> Option<Fault> {
    let value = tree.get("version")?;
    let DeValue::Integer(number) = value.get_ref() else { return None };
    let found = i128::from_str_radix(number.as_str(), number.radix()).ok();
    if found == Some(i128::from(VERSION)) {
        return None;
    }
    let message = format!("unknown version `{number}`, this release reads version {VERSION}");
    let newer = found.is_none_or(|found| found > i128::from(VERSION));
    let help = if newer {
        "run a newer release of poolwright, or write the file for this one"
    } else {
        "write `version = 1`"
    };
    Some(Fault::new(&value.span(), message).help(help))
}

fn all(root: &View<'_>) -> Parts {
    let payload = runtime::payload(root);
    let runtime = runtime::read(root);
    let plans = pools::plans(root);
    let homes = homes::check(root, &plans);
    let queues = queues::read(root, &plans, &homes);
    let pools = pools::read(root, &plans, &queues);
    let policies = retry::read(root);
    let types = tasks::read(root, &queues, &policies, &payload);
    let housekeeping = housekeeping::read(root, &types);
    let (types, policies) = (types.into_built(), policies.into_map());
    Parts { pools, queues, types, policies, runtime, housekeeping, payload_bytes_max: payload.value.0 }
}
