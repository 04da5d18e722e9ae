//! What the words of a server's error mean.
//!
//! Invariant: arguments of commands, which are the application's data, are not repeated.

use super::Redirect;

/// An error as the server wrote it, the one inside of a script's failure if there is one.
pub(super) struct Answer<'a> {
    pub(super) code: &'a str,
    detail: &'a str,
    in_script: bool,
}

impl<'a> Answer<'a> {
    pub(super) fn new(code: &'a str, detail: &'a str) -> Self {
        let in_script = detail.contains("@user_script") || detail.contains("@user_function");
        if code == "ERR"
            && in_script
            && let Some((code, detail)) = wrapped(detail)
        {
            return Self { code, detail, in_script };
        }
        Self { code, detail, in_script }
    }

    /// Whether the same call may succeed later, and why it did not now. The reason follows the name of the server.
    pub(super) fn meaning(&self) -> (bool, String) {
        let why = match self.code {
            "LOADING" => "is loading its data",
            "BUSY" => {
                "is busy with a script that runs for too long (if it does not end by itself: SCRIPT KILL)"
            }
            "MASTERDOWN" => "is a replica without its primary",
            "CLUSTERDOWN" => return (true, format!("belongs to a cluster that is down: {}", self.short())),
            "TRYAGAIN" => "is just moving the slot of these keys to another node",
            "MOVED" | "ASK" => "sends on to other nodes without end: slots are being moved",
            "OOM" => "has no room: maxmemory is reached; make room, nothing was stored",
            "READONLY" => "is a replica that takes no writes; a failover may be under way",
            "NOREPLICAS" => "takes no writes: it has fewer good replicas than its min-replicas-to-write",
            "MISCONF" => "takes no writes: it cannot save to its disk, its log says why",
            "UNBLOCKED" => "ended a wait: its role has changed",
            "NOSCRIPT" => "does not hold the script; it was restarted or flushed",
            _ => return self.fault(),
        };
        (true, why.to_owned())
    }

    fn fault(&self) -> (bool, String) {
        let detail = self.short();
        let has = |text: &str| self.detail.contains(text);
        match self.code {
            "NOAUTH" => (
                false,
                "wants a password: give a user and password, or the password of the default user".to_owned(),
            ),
            "WRONGPASS" => (false, "refuses the user or the password: correct them".to_owned()),
            "NOPERM" => (false, format!("forbids it ({detail}): allow it to this user with ACL SETUSER")),
            "DENIED" => (
                false,
                "is in protected mode: give it a password, or let it listen where only friends are"
                    .to_owned(),
            ),
            "WRONGTYPE" => (
                false,
                "holds a key of this name with data of another type: another program uses the same names"
                    .to_owned(),
            ),
            "CROSSSLOT" => (false, "was given keys of several slots in one command".to_owned()),
            "ERR" if has("max number of clients") => (true, "has no free connection (maxclients)".to_owned()),
            "ERR" if has("Script killed") || has("script killed") => {
                (true, "had the script killed by somebody".to_owned())
            }
            "ERR" if has("invalid password") => (false, "refuses the password: correct it".to_owned()),
            "ERR" if has("AUTH") && has("without any password") || has("no password is set") => (
                false,
                "has no password, but one was given: take it away, or name the user it belongs to".to_owned(),
            ),
            "ERR" if has("unknown command") || has("nknown subcommand") || has("Unknown Redis command") => (
                false,
                format!(
                    "does not know a command ({detail}): Redis 6.2 or later is needed, with no command renamed"
                ),
            ),
            "ERR" if has("DB index") => {
                (false, "has no database of this number (its setting `databases`)".to_owned())
            }
            "ERR" if has("SELECT is not allowed in cluster") => {
                (false, "is a node of a cluster: write redis-cluster:// and no database".to_owned())
            }
            "ERR" if has("cluster support disabled") => {
                (false, "is no node of a cluster: write redis://".to_owned())
            }
            "ERR" if has("user executing the script") => {
                (false, format!("forbids it ({detail}): allow it to this user with ACL SETUSER"))
            }
            code => (false, format!("gave an unexpected answer: {code} {detail}")),
        }
    }

    /// Refusals that come before a command begins, and those that end a script at its first write at the latest.
    pub(super) fn is_refused_as_a_whole(&self) -> bool {
        match self.code {
            "OOM" | "READONLY" | "NOREPLICAS" | "MISCONF" => true,
            "LOADING" | "BUSY" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "MOVED" | "ASK"
            | "CROSSSLOT" | "NOAUTH" | "WRONGPASS" | "NOPERM" | "DENIED" | "NOSCRIPT" | "WRONGTYPE"
            | "UNBLOCKED" => !self.in_script,
            "ERR" => {
                !self.in_script
                    && [
                        "unknown command",
                        "nknown subcommand",
                        "max number of clients",
                        "cluster support disabled",
                    ]
                    .iter()
                    .any(|text| self.detail.contains(text))
            }
            _ => false,
        }
    }

    pub(super) fn redirect(&self) -> Option<Redirect> {
        let moved = match self.code {
            "MOVED" => true,
            "ASK" => false,
            _ => return None,
        };
        let place = self.detail.split_ascii_whitespace().nth(1)?;
        Some(Redirect { moved, place: place.to_owned() })
    }

    /// The detail on one line, without a command's arguments, which hold the application's data.
    fn short(&self) -> String {
        let text = self.detail.split(", with args beginning with").next().unwrap_or_default();
        let mut text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect();
        text.truncate(text.trim_end().len());
        text
    }
}

/// Redis before 7 wraps what failed inside of a script: `Error running script (…): @user_script:1: … -OOM command not …`.
fn wrapped(detail: &str) -> Option<(&str, &str)> {
    let pieces = detail.match_indices(": ").map(|(at, colon)| &detail[at + colon.len()..]);
    pieces
        .filter_map(|rest| rest.trim_start_matches('-').split_once(' '))
        .find(|(code, _)| code.len() >= 3 && code.bytes().all(|b| b.is_ascii_uppercase()))
}
