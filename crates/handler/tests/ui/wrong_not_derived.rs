use poolwright_core::BoxError;
use poolwright_handler::service;

struct Resize;

async fn handler(_: Resize) -> Result<(), BoxError> {
    Ok(())
}

fn main() {
    let _ = service(handler);
}
