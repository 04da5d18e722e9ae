//! The scripts, one a step, and how one is called.
//!
//! Each begins with what it shares with others, so that a rule is written once. A server that does not know a script yet
//! says so and has done nothing; then it gets the whole text.
//!
//! The three of the hot path have a quick way before the general one: it takes many tasks that are as they should be by few
//! commands, and ends the script; the functions behind it are not even made then. What it does not take it leaves as it was.

use std::sync::LazyLock;

use bytes::Bytes;
use redis::Cmd;

/// A script and its name at the server.
pub(crate) struct Script {
    /// For messages.
    pub(crate) name: &'static str,
    text: &'static str,
    sha: LazyLock<String>,
}

macro_rules! text {
    ($($part:literal)+) => { concat!($(include_str!(concat!("lua/", $part, ".lua"))),+) };
}

macro_rules! scripts {
    ($($(#[doc = $doc:literal])+ $name:ident = $file:literal $($text:expr)?;)+) => {
        $($(#[doc = $doc])+
        pub(crate) static $name: Script = Script {
            name: $file,
            text: scripts!(@text $file $($text)?),
            sha: LazyLock::new(|| redis::Script::new($name.text).get_hash().to_owned()),
        };)+

        /// All of them, to be loaded at the start.
        pub(crate) static ALL: &[&Script] = &[$(&$name),+];
    };
    (@text $file:literal $text:expr) => { $text };
    (@text $file:literal) => {
        concat!(
            text!("shared/base" "shared/counts" "shared/active" "shared/message" "shared/task" "shared/store"),
            include_str!(concat!("lua/", $file, ".lua")),
        )
    };
}

scripts! {
    /// Stores tasks.
    ENQUEUE = "enqueue" text!("quick/enqueue_one" "shared/base" "quick/enqueue" "shared/counts" "shared/active" "shared/message" "shared/task" "shared/store" "enqueue");
    /// Hands out tasks.
    CLAIM = "claim" text!("shared/base" "quick/claim" "shared/counts" "shared/active" "shared/message" "shared/task" "shared/store" "claim");
    /// Makes leases last.
    EXTEND = "extend";
    /// Settles attempts.
    SETTLE = "settle" text!("shared/base" "shared/counts" "shared/active" "quick/settle" "shared/message" "shared/task" "shared/store" "settle");
    /// Settles attempts and hands out tasks.
    EXCHANGE = "exchange" concat!(
        "local try = pcall\n",
        text!("shared/base" "shared/counts" "shared/active"),
        "local function settle(ARGV)\n",
        text!("quick/settle" "shared/message" "shared/task" "shared/store" "settle"),
        "end\nlocal function hand_out(ARGV)\n",
        text!("quick/claim" "shared/message" "shared/task" "shared/store" "claim"),
        "end\n",
        text!("exchange"),
    );
    /// Notes what a running task says.
    NOTE = "note";
    /// Makes due tasks pending.
    PROMOTE = "promote";
    /// Takes over tasks whose worker lost contact.
    TAKE_OVER = "take_over";
    /// Removes ended tasks.
    SWEEP = "sweep";
    /// Archived tasks without a confirmed dead letter.
    UNRECORDED = "unrecorded";
    /// Confirms dead letters.
    MARK_RECORDED = "mark_recorded";
    /// Sets aside what was read and could not be understood.
    SET_ASIDE = "set_aside";
    /// What was set aside.
    QUARANTINE = "quarantine";
    /// Numbers of queues.
    STATS = "stats";
    /// Days of a queue.
    HISTORY = "history";
    /// One task.
    GET = "get";
    /// A page of a list.
    PAGE_LIST = "page_list";
    /// A page of a set.
    PAGE_SET = "page_set";
    /// Tasks of a subject or scope.
    FIND = "find";
    /// Tasks of a group.
    GROUP = "group";
    /// Asks for the end of tasks.
    REQUEST_CANCEL = "request_cancel";
    /// Run now, archive, delete.
    OPERATE = "operate";
    /// Another due time or payload.
    CHANGE = "change";
    /// Pause and resume.
    PAUSE = "pause";
    /// Removes a queue.
    REMOVE_QUEUE = "remove_queue";
    /// Mends lists.
    RECONCILE = "reconcile";
    /// Removes what belongs to nothing.
    TIDY = "tidy";
    /// A heartbeat.
    BEAT = "beat";
}

impl Script {
    /// The command that makes a server know it.
    pub(crate) fn load(&self) -> Cmd {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(self.text);
        command
    }
}

/// One call of a script.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) script: &'static Script,
    keys: Vec<String>,
    args: Vec<Bytes>,
}

impl Call {
    /// A call with this time, empty where the server's own clock rules.
    pub(crate) fn new(script: &'static Script, time: String) -> Self {
        Self { script, keys: Vec::new(), args: vec![time.into()] }
    }

    /// A call of a script that does what these two do, the first one first.
    pub(crate) fn both(script: &'static Script, first: Self, second: Self) -> Self {
        let mut args = Vec::with_capacity(first.args.len() + second.args.len());
        let count = first.args.len() - 1;
        let mut first_args = first.args.into_iter();
        args.extend(first_args.next());
        args.push(count.to_string().into());
        args.extend(first_args);
        args.extend(second.args.into_iter().skip(1));
        let mut keys = first.keys;
        keys.extend(second.keys);
        Self { script, keys, args }
    }

    /// One more key.
    pub(crate) fn key(&mut self, key: String) -> &mut Self {
        self.keys.push(key);
        self
    }

    /// One more argument.
    pub(crate) fn arg(&mut self, arg: impl Into<Bytes>) -> &mut Self {
        self.args.push(arg.into());
        self
    }

    /// One more argument, a number.
    pub(crate) fn number(&mut self, number: impl Into<i128>) -> &mut Self {
        self.arg(number.into().to_string())
    }

    /// One more argument, yes or no.
    pub(crate) fn flag(&mut self, flag: bool) -> &mut Self {
        self.arg(if flag { "1" } else { "" })
    }

    /// Whose node it goes to.
    pub(crate) fn route(&self) -> Option<&[u8]> {
        self.keys.first().map(String::as_bytes)
    }

    /// The call by the script's name at the server.
    pub(crate) fn by_sha(&self) -> Cmd {
        self.command("EVALSHA", self.script.sha.as_str())
    }

    /// The call with the script's whole text.
    pub(crate) fn by_text(&self) -> Cmd {
        self.command("EVAL", self.script.text)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(script).arg(self.keys.len());
        for key in &self.keys {
            command.arg(key);
        }
        for arg in &self.args {
            command.arg(&arg[..]);
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_says_its_keys_arguments_and_returns() {
        for script in ALL {
            let own = script.text.rsplit("-- KEYS").next().unwrap();
            for word in ["-- ARGV", "-- Returns"] {
                assert!(own.contains(word), "{} says {word}", script.name);
            }
        }
    }

    #[test]
    fn a_script_is_named_by_the_hash_of_its_text() {
        assert_eq!(ENQUEUE.sha.len(), 40);
        assert_ne!(*ENQUEUE.sha, *CLAIM.sha);
    }
}
