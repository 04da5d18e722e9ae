use std::rc::Rc;

use poolwright_core::BoxError;
use poolwright_handler::{TaskType, service};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Resize;
impl TaskType for Resize {
    const NAME: &'static str = "image:resize";
}

async fn handler(_: Resize) -> Result<(), BoxError> {
    let shared = Rc::new(1);
    std::future::ready(()).await;
    drop(shared);
    Ok(())
}

fn main() {
    let _ = service(handler);
}
