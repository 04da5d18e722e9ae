//! Brings what the tests need where it may, and says what is missing where it may not.
//!
//! A thing is looked for before anything is installed, so a machine that has everything needs no network and no rights.

use std::path::Path;

use anyhow::{Result, bail};

use crate::child::Child;

/// One thing that a later step needs.
struct Need {
    name: &'static str,
    reason: &'static str,
    /// Succeeds when the thing is there.
    probe: fn() -> Child,
    cure: Cure,
}

/// How a missing thing is brought.
#[derive(Debug, Clone, Copy)]
enum Cure {
    /// A component of the Rust toolchain, by its name in rustup.
    Component(&'static str),
    /// Packages of Debian and its children.
    Debian(&'static [&'static str]),
    /// Nothing that a program should do unasked; the words say what a person can.
    ByHand(&'static str),
}

const NEEDS: &[Need] = &[
    Need {
        name: "rustfmt",
        reason: "the format check",
        probe: || Child::cargo(&["fmt", "--version"]),
        cure: Cure::Component("rustfmt"),
    },
    Need {
        name: "clippy",
        reason: "the lints",
        probe: || Child::cargo(&["clippy", "--version"]),
        cure: Cure::Component("clippy"),
    },
    Need {
        name: "C compiler",
        reason: "SQLite is built from its C source",
        probe: || Child::new(&compiler(), &["--version"]),
        cure: Cure::Debian(&["gcc", "libc6-dev"]),
    },
    Need {
        name: "redis-server",
        reason: "tests of the Redis store start servers of their own",
        probe: || Child::new(&redis_server(), &["--version"]),
        cure: Cure::Debian(&["redis-server"]),
    },
    Need {
        name: "openssl",
        reason: "tests of TLS make certificates for their servers",
        probe: || Child::new("openssl", &["version"]),
        cure: Cure::Debian(&["openssl"]),
    },
    Need {
        name: "faketime",
        reason: "tests give processes a host's clock that is wrong",
        probe: || Child::new("faketime", &["--version"]),
        cure: Cure::Debian(&["faketime"]),
    },
];

/// What more is tested with, and not brought: tests that need it say that they were skipped.
const WISHES: &[Need] = &[Need {
    name: "Go",
    reason: "tests that share a Redis with Go's asynq are skipped and say so",
    probe: || Child::new("go", &["version"]),
    cure: Cure::ByHand("take Go 1.24 or newer from https://go.dev/dl or from your system"),
}];

/// The server that the testbed will start.
fn redis_server() -> String {
    std::env::var("POOLWRIGHT_REDIS_SERVER").unwrap_or_else(|_| "redis-server".to_owned())
}

/// The compiler that the build of SQLite will call.
fn compiler() -> String {
    std::env::var("CC").unwrap_or_else(|_| "cc".to_owned())
}

/// What this process may install with.
#[derive(Debug, Clone, Copy)]
struct Means {
    rustup: bool,
    /// We are root on a system with Debian's package tools.
    apt: bool,
}

impl Means {
    fn look() -> Self {
        Self { rustup: Child::new("rustup", &["--version"]).succeeds(), apt: is_root() && has_apt() }
    }
}

fn has_apt() -> bool {
    Child::new("apt-get", &["--version"]).succeeds()
}

fn is_root() -> bool {
    let id = std::process::Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// The commands that bring a missing thing; none when we have not the means.
fn commands(cure: Cure, means: Means) -> Vec<Child> {
    match cure {
        Cure::Component(name) if means.rustup => vec![Child::new("rustup", &["component", "add", name])],
        Cure::Debian(packages) if means.apt => {
            let install = Child::new("apt-get", &["install", "--yes", "--no-install-recommends"]);
            let install = install.env("DEBIAN_FRONTEND", "noninteractive").args(packages.iter().copied());
            vec![Child::new("apt-get", &["update"]), install]
        }
        Cure::Component(_) | Cure::Debian(_) | Cure::ByHand(_) => Vec::new(),
    }
}

/// What a person can do about it.
fn advice(cure: Cure) -> String {
    match cure {
        Cure::Component(name) => {
            format!("run `rustup component add {name}`, or take the package of your system that holds {name}")
        }
        Cure::Debian(packages) => format!(
            "as root run `apt-get install {}`, or take the packages of your system that hold the same",
            packages.join(" ")
        ),
        Cure::ByHand(words) => words.to_owned(),
    }
}

/// Looks for everything, installs what it may, and prints a line for each.
///
/// # Errors
/// When something needed is missing and could not be installed; all of it is named.
pub(crate) fn run(root: &Path) -> Result<()> {
    for wish in WISHES {
        println!("setup: {}", if (wish.probe)().succeeds() { presence(wish) } else { absence(wish) });
    }
    provide(root, NEEDS, Means::look())
}

fn presence(need: &Need) -> String {
    format!("{} is there", need.name)
}

fn absence(Need { name, reason, cure, .. }: &Need) -> String {
    format!("{name} is missing ({reason}): {}", advice(*cure))
}

fn provide(root: &Path, needs: &[Need], means: Means) -> Result<()> {
    let mut missing = Vec::new();
    for need in needs {
        let Need { name, probe, cure, .. } = need;
        if probe().succeeds() {
            println!("setup: {}", presence(need));
        } else if install(root, name, &commands(*cure, means)) && probe().succeeds() {
            println!("setup: {name} has been installed");
        } else {
            println!("setup: {}", absence(need));
            missing.push(*name);
        }
    }
    if !missing.is_empty() {
        bail!("missing, and not to be installed from here: {}", missing.join(", "));
    }
    Ok(())
}

/// Whether there were commands and all of them succeeded.
fn install(root: &Path, name: &str, commands: &[Child]) -> bool {
    let succeeded = |command: &Child| {
        println!("setup: {name} is missing, trying `{command}`");
        command.run(root).inspect_err(|error| println!("setup: {error:#}")).is_ok()
    };
    !commands.is_empty() && commands.iter().all(succeeded)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Means = Means { rustup: true, apt: true };
    const NONE: Means = Means { rustup: false, apt: false };

    fn lines(cure: Cure, means: Means) -> Vec<String> {
        commands(cure, means).iter().map(Child::to_string).collect()
    }

    #[test]
    fn a_component_is_added_where_rustup_is() {
        assert_eq!(lines(Cure::Component("clippy"), ALL), ["rustup component add clippy"]);
        assert!(lines(Cure::Component("clippy"), Means { rustup: false, apt: true }).is_empty());
    }

    #[test]
    fn packages_are_installed_by_root_on_debian_only() {
        let install = "DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends gcc";
        assert_eq!(lines(Cure::Debian(&["gcc"]), ALL), ["apt-get update", install]);
        assert!(lines(Cure::Debian(&["gcc"]), Means { rustup: true, apt: false }).is_empty());
    }

    #[test]
    fn everything_missing_is_named_at_once() {
        let absent =
            |name, cure| Need { name, reason: "a test", probe: || Child::new("no-such-program", &[]), cure };
        let present = Need {
            name: "cargo",
            reason: "a test",
            probe: || Child::cargo(&["--version"]),
            cure: Cure::Debian(&[]),
        };
        let needs = [absent("one", Cure::Component("one")), present, absent("two", Cure::Debian(&["two"]))];
        let error = provide(Path::new("."), &needs, NONE).unwrap_err().to_string();
        assert_eq!(error, "missing, and not to be installed from here: one, two");
    }

    #[test]
    fn what_is_only_wished_for_is_not_installed_but_its_absence_is_told() {
        let go = &WISHES[0];
        assert!(lines(go.cure, ALL).is_empty());
        let words = absence(go);
        assert!(
            words.contains("Go is missing") && words.contains("skipped") && words.contains("go.dev"),
            "{words}"
        );
    }

    #[test]
    fn servers_of_tests_are_brought_by_the_package_that_their_absence_names() {
        // The testbed's error names the same package.
        let redis = NEEDS.iter().find(|need| need.name == "redis-server").unwrap();
        assert!(lines(redis.cure, ALL)[1].ends_with(" redis-server"));
    }

    #[test]
    fn advice_names_the_command() {
        assert!(advice(Cure::Component("clippy")).contains("`rustup component add clippy`"));
        assert!(advice(Cure::Debian(&["gcc", "libc6-dev"])).contains("`apt-get install gcc libc6-dev`"));
    }
}
