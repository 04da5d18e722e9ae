//! What a server must be, looked at when a store is opened.
//!
//! Invariant: a server that cannot do the work is refused before the first task is touched; the message says what was found and
//! what is wanted.

use std::collections::HashMap;

use redis::Value;

use super::fault::CallError;
use super::session::{Limit, Session};

/// The oldest version that will do: `BLMOVE`, `ZRANGE … BYSCORE`.
const WANTED: (u32, u32) = (6, 2);

/// What a server says of itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Facts {
    redis_version: Option<String>,
    valkey_version: Option<String>,
    mode: Option<String>,
    policy: Option<String>,
}

/// Looks at one server; `wants_cluster` is what the options say.
pub(super) async fn check(session: &Session, limit: Limit, wants_cluster: bool) -> Result<(), CallError> {
    let facts = ask(session, limit).await?;
    let name = session.server();
    facts.judge(wants_cluster).map_err(|why| CallError::refused(format!("{name} {why}")))?;
    if let Some(policy) = facts.policy.as_deref().filter(|policy| *policy != "noeviction") {
        tracing::warn!(
            server = name,
            maxmemory_policy = policy,
            "redis may evict keys of tasks; set maxmemory-policy to noeviction"
        );
    }
    Ok(())
}

async fn ask(session: &Session, limit: Limit) -> Result<Facts, CallError> {
    match session.call(&redis::cmd("INFO"), Some(limit)).await {
        Ok(info) => {
            let info: String = text(session, info)?;
            Ok(Facts::of_info(&info))
        }
        // Who may not see the whole may still be told the version.
        Err(error) if error.code() == Some("NOPERM") => {
            let hello = session.call(&redis::cmd("HELLO"), Some(limit)).await;
            let hello = hello
                .map_err(|_| error.before("its version cannot be seen, INFO and HELLO are both forbidden"))?;
            Ok(Facts::of_hello(&text::<HashMap<String, Value>>(session, hello)?))
        }
        Err(error) => Err(error),
    }
}

fn text<T: redis::FromRedisValue>(session: &Session, value: Value) -> Result<T, CallError> {
    let parsed = redis::from_redis_value(value);
    parsed.map_err(|error| {
        CallError::refused(format!("{} gave an unexpected answer: {error}", session.server()))
    })
}

impl Facts {
    fn of_info(info: &str) -> Self {
        let line = |name: &str| {
            let mut found = info.lines().filter_map(|line| line.split_once(':'));
            found.find(|(key, _)| *key == name).map(|(_, value)| value.trim().to_owned())
        };
        Self {
            redis_version: line("redis_version"),
            valkey_version: line("valkey_version"),
            mode: line("redis_mode").or_else(|| line("server_mode")),
            policy: line("maxmemory_policy"),
        }
    }

    fn of_hello(hello: &HashMap<String, Value>) -> Self {
        let field =
            |name: &str| hello.get(name).and_then(|value| redis::from_redis_value_ref::<String>(value).ok());
        let is_valkey = field("server").as_deref() == Some("valkey");
        let (redis_version, valkey_version) =
            if is_valkey { (None, field("version")) } else { (field("version"), None) };
        Self { redis_version, valkey_version, mode: field("mode"), policy: None }
    }

    /// What is wrong, after the name of the server.
    fn judge(&self, wants_cluster: bool) -> Result<(), String> {
        let (major, minor) = WANTED;
        match (&self.valkey_version, &self.redis_version) {
            // The first Valkey came after Redis 7.2.
            (Some(_), _) => {}
            (None, Some(found)) if parse(found).is_some_and(|found| found >= WANTED) => {}
            (None, Some(found)) => {
                return Err(format!("is Redis {found}; Redis {major}.{minor} or later is needed, or Valkey"));
            }
            (None, None) => {
                return Err(format!("does not tell its version; Redis {major}.{minor} or later is needed"));
            }
        }
        match self.mode.as_deref() {
            Some("sentinel") => {
                Err("is a sentinel: write redis-sentinel:// and the name of its primary".to_owned())
            }
            Some("cluster") if !wants_cluster => {
                Err("is a node of a cluster: write redis-cluster://".to_owned())
            }
            Some("standalone") if wants_cluster => Err("is no node of a cluster: write redis://".to_owned()),
            _ => Ok(()),
        }
    }
}

fn parse(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    let mut number = || parts.next()?.parse().ok();
    Some((number()?, number()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(lines: &[&str]) -> Facts {
        Facts::of_info(&lines.join("\r\n"))
    }

    #[test]
    fn redis_since_6_2_and_every_valkey_will_do() {
        for version in ["6.2.0", "6.10.1", "7.0.15", "8.0.0", "255.255.255"] {
            let facts = info(&["# Server", &format!("redis_version:{version}"), "redis_mode:standalone"]);
            assert_eq!(facts.judge(false), Ok(()), "{version}");
        }
        let valkey = info(&["redis_version:7.2.4", "valkey_version:8.1.0", "server_mode:standalone"]);
        assert_eq!(valkey.judge(false), Ok(()));
        let hello = HashMap::from(
            [("server", "valkey"), ("version", "8.1.0"), ("mode", "standalone")]
                .map(|(name, value)| (name.to_owned(), Value::BulkString(value.as_bytes().to_vec()))),
        );
        assert_eq!(Facts::of_hello(&hello).judge(false), Ok(()));
    }

    #[test]
    fn an_old_server_is_refused_by_what_was_found_and_wanted() {
        for version in ["6.0.16", "5.0.7", "4.0.0"] {
            let why = info(&[&format!("redis_version:{version}")]).judge(false).unwrap_err();
            assert_eq!(why, format!("is Redis {version}; Redis 6.2 or later is needed, or Valkey"));
        }
        assert!(info(&["redis_version:new"]).judge(false).is_err());
        assert!(info(&[]).judge(false).unwrap_err().contains("does not tell its version"));
    }

    #[test]
    fn a_server_of_another_kind_is_refused_with_the_scheme_to_write() {
        let of = |mode: &str| info(&["redis_version:7.0.0", &format!("redis_mode:{mode}")]);
        assert!(of("cluster").judge(false).unwrap_err().contains("write redis-cluster://"));
        assert!(of("standalone").judge(true).unwrap_err().contains("write redis://"));
        assert!(of("sentinel").judge(false).unwrap_err().contains("write redis-sentinel://"));
        assert_eq!(of("cluster").judge(true), Ok(()));
    }

    #[test]
    fn the_policy_is_read() {
        let facts = info(&["redis_version:7.0.0", "maxmemory_policy:allkeys-lru"]);
        assert_eq!(facts.policy.as_deref(), Some("allkeys-lru"));
    }
}
