//! `schema`: the JSON schema of the file of queues, for editors.

use poolwright::registry::schema;

use crate::failure::Failure;
use crate::print::Output;

pub(crate) fn run(out: &mut Output) -> Result<(), Failure> {
    let schema = schema();
    out.result(&schema, |_| format!("{schema:#}\n"))
}
