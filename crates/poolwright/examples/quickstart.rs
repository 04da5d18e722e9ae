//! From nothing to a running worker.
use poolwright::prelude::*;

#[derive(Serialize, Deserialize, TaskType)]
#[task("mail:send")]
struct SendMail {
    to: String,
}

async fn send_mail(mail: SendMail) -> Result<(), BoxError> {
    println!("to {}", mail.to);
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let topology = Topology::simple([("mail", 4)]).task("mail:send", "mail").build()?;
    let app = Orchestrator::new(topology).broker("sqlite://tasks.db").handle(send_mail).start().await?;
    app.client().enqueue(&SendMail { to: "ada@example.org".into() }).await?;
    app.until_signal().await?;
    Ok(())
}
