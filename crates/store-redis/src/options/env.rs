//! Options out of the environment, by the names that `WeKnora` gave them.

use super::draft::Draft;
use super::url::{self, server, whole_number};
use super::{Endpoint, PORT};

/// A variable of this process.
pub(super) fn process(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Reads every variable that has a meaning here; the address only if it is wanted.
pub(super) fn read(
    wants_address: bool,
    variable: &impl Fn(&str) -> Option<String>,
    problems: &mut Vec<String>,
) -> Draft {
    let variable = |name: &str| variable(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
    let mut draft = if wants_address { address(variable("REDIS_ADDR"), problems) } else { Draft::default() };
    let mut own = Draft {
        user: variable("REDIS_USERNAME"),
        password: variable("REDIS_PASSWORD").map(Into::into),
        ..Draft::default()
    };
    let mut number = |name: &str, min: u64, max: u64| {
        let value = variable(name)?;
        whole_number(name, &value, min, max).map_err(|problem| problems.push(problem)).ok()
    };
    own.db = number("REDIS_DB", 0, u64::from(u32::MAX)).and_then(|db| u32::try_from(db).ok());
    own.op_timeout =
        number("WEKNORA_REDIS_OP_TIMEOUT_MS", 1, url::MS_MAX).map(std::time::Duration::from_millis);
    let mut truth = |name: &str| {
        let value = variable(name)?;
        url::truth(name, &value).map_err(|problem| problems.push(problem)).ok()
    };
    let wants_tls = truth("REDIS_USE_TLS");
    let insecure = truth("REDIS_TLS_INSECURE_SKIP_VERIFY");
    own.tls = wants_tls == Some(true);
    // As in the file that these names come from: without REDIS_USE_TLS the others mean nothing. A URL may have turned it on,
    // so they are kept unless TLS was turned off in so many words.
    if wants_tls != Some(false) {
        own.tls_insecure = insecure;
        own.tls_files.server_name = variable("REDIS_TLS_SERVER_NAME");
        own.tls_files.ca_file = variable("REDIS_TLS_CA_FILE").map(Into::into);
        own.tls_files.cert_file = variable("REDIS_TLS_CERT_FILE").map(Into::into);
        own.tls_files.key_file = variable("REDIS_TLS_KEY_FILE").map(Into::into);
    }
    draft = draft.or(own);
    draft
}

fn address(value: Option<String>, problems: &mut Vec<String>) -> Draft {
    let Some(value) = value else {
        problems.push(
            "REDIS_ADDR is not set, expected host:port or a URL such as redis://127.0.0.1:6379".to_owned(),
        );
        return Draft::default();
    };
    if value.contains("://") {
        return url::read(&value, problems);
    }
    let endpoint = match server(&value, PORT) {
        Ok(address) => Some(Endpoint::Single(address)),
        Err(problem) => {
            problems.push(format!("REDIS_ADDR: {problem}"));
            None
        }
    };
    Draft { endpoint, ..Draft::default() }
}
