use poolwright_core::BoxError;
use poolwright_handler::{TaskType, service};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Resize;
impl TaskType for Resize {
    const NAME: &'static str = "image:resize";
}

struct Database;

async fn handler(_: Resize, _: Database) -> Result<(), BoxError> {
    Ok(())
}

fn main() {
    let _ = service(handler);
}
