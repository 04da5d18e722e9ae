use poolwright_core::BoxError;
use poolwright_handler::{TaskType, service};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Resize;
impl TaskType for Resize {
    const NAME: &'static str = "image:resize";
}

struct Thumbnail;

async fn handler(_: Resize) -> Result<Thumbnail, BoxError> {
    Ok(Thumbnail)
}

fn main() {
    let _ = service(handler);
}
