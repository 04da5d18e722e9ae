use poolwright_handler::{TaskType, service};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Resize;
impl TaskType for Resize {
    const NAME: &'static str = "image:resize";
}

async fn handler(_: Resize) {}

fn main() {
    let _ = service(handler);
}
