use poolwright_derive::Tasks;

#[derive(Tasks)]
struct NoEnum;

#[derive(Tasks)]
enum Empty {}

#[derive(Tasks)]
enum Several {
    Move(String, String),
}

#[derive(Tasks)]
enum Same {
    SendEmail { to: String },
    #[task("send_email")]
    Mail { to: String },
}

#[derive(Tasks)]
#[task("mail")]
enum Named {
    Send { to: String },
}

#[derive(Tasks)]
enum Generic<T> {
    Send { to: T },
}

#[derive(Tasks)]
enum Custom {
    #[serde(with = "elsewhere")]
    Send { to: String },
}

fn main() {}
