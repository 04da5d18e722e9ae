//! Who has the last word on a value, and the loading that asks them.
//!
//! ```text
//!   settings  >  POOLWRIGHT_POOL_<NAME>_WORKERS  >  the declared variable  >  the file  >  the default
//! ```
//!
//! Invariant: an override that is no good changes nothing but the list of warnings; what the file says then holds.

use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

use poolwright_core::SettingsSource;
use poolwright_core::settings::NoSettings;
use serde::Serialize;

use crate::error::Error;
use crate::file::keys::{TIMEOUT_MIN, WORKERS};
use crate::file::kind::Kind;
use crate::file::{Got, Session};
use crate::problem::{Fault, Lines, Warning};
use crate::suggest::quote;
use crate::topology::Topology;
use crate::{check, duration};

/// A larger file than this (1 MiB) is no `queues.toml`; it is refused before it is read.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The setting with this key.
    Settings(String),
    /// This environment variable.
    Env(String),
    /// The file.
    File {
        /// The line, from 1.
        line: usize,
    },
    /// Nobody said anything.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(key) => write!(f, "setting {key}"),
            Self::Env(name) => write!(f, "variable {name}"),
            Self::File { line } => write!(f, "line {line}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value that may be overridden, and where it came from. It derefs to the value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resolved<T> {
    /// The value in force.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
}

impl<T> Deref for Resolved<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

/// Reads files, with settings and variables that may override them.
///
/// ```
/// use std::collections::BTreeMap;
/// use poolwright_registry::{Loader, Origin};
///
/// let text = "version = 1\n[pools.core]\nworkers = 8\nsetting = \"core.workers\"\nqueues = { default = 1 }\n";
/// let settings = BTreeMap::from([("core.workers".to_owned(), "12".to_owned())]);
/// let (topology, warnings) = Loader::new().settings(&settings).parse("queues.toml", text)?;
/// let core = topology.pool("core").unwrap();
/// assert_eq!((*core.workers, &core.workers.origin), (12, &Origin::Settings("core.workers".into())));
/// assert!(warnings.is_empty());
/// # Ok::<(), poolwright_registry::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Loader<'a> {
    settings: &'a dyn SettingsSource,
    env: &'a dyn Fn(&str) -> Option<String>,
    names: &'a dyn Fn() -> Vec<String>,
}

impl fmt::Debug for Loader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader").finish_non_exhaustive()
    }
}

impl Default for Loader<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Loader<'a> {
    /// A loader that overrides nothing.
    #[must_use]
    pub fn new() -> Self {
        Self { settings: &NoSettings, env: &|_| None, names: &Vec::new }
    }

    /// A loader that asks the environment of this process.
    #[must_use]
    pub fn from_process() -> Self {
        // A value that is no Unicode becomes one that is no number either, and is warned about as such.
        Self::new()
            .env(&|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
            .env_names(&|| std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect())
    }

    /// Asks these settings first.
    #[must_use]
    pub fn settings(self, settings: &'a dyn SettingsSource) -> Self {
        Self { settings, ..self }
    }

    /// Asks this for environment variables. Names that were listed before belong to another environment and are
    /// forgotten.
    #[must_use]
    pub fn env(self, env: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { env, names: &Vec::new, ..self }
    }

    /// Asks this which environment variables there are, to warn of one that is meant for a pool which does not exist.
    /// Call it after [`env`](Self::env). Default: none are known, and nothing is warned of.
    #[must_use]
    pub fn env_names(self, names: &'a dyn Fn() -> Vec<String>) -> Self {
        Self { names, ..self }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// [`Error::Read`] when it cannot be read or is larger than 1 MiB; [`Error::Refused`] with every mistake in it.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<(Topology, Vec<Warning>), Error> {
        let path = path.as_ref();
        let bytes = read(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let name = path.display().to_string();
        match String::from_utf8(bytes) {
            Ok(text) => self.parse(&name, &text),
            Err(why) => Err(no_text(&name, why.utf8_error().valid_up_to(), why.as_bytes())),
        }
    }

    /// Reads the text of a file; `name` stands for it in messages.
    ///
    /// # Errors
    /// [`Error::Refused`] with every mistake in it.
    pub fn parse(&self, name: &str, text: &str) -> Result<(Topology, Vec<Warning>), Error> {
        check::parse(self, name, text)
    }

    /// The environment variables that are set to something, in the order of their names.
    pub(crate) fn set_variables(&self) -> Vec<String> {
        let mut names = (self.names)();
        names.retain(|name| self.ask(&Origin::Env(name.clone())).is_some());
        names.sort();
        names
    }

    fn ask(&self, source: &Origin) -> Option<String> {
        let found = match source {
            Origin::Settings(key) => self.settings.get(key),
            Origin::Env(name) => (self.env)(name),
            Origin::File { .. } | Origin::Default => None,
        }?;
        // A setting may be kept as JSON, so a quoted number is one. What is blank says nothing.
        let bare = found.trim();
        let bare = bare.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(bare).trim();
        (!bare.is_empty()).then(|| bare.to_owned())
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let mut file = std::fs::File::open(path)?.take(FILE_BYTES_MAX + 1);
    file.read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(std::io::Error::other("it is larger than 1 MiB, which no `queues.toml` is"));
    }
    Ok(bytes)
}

fn no_text(name: &str, valid: usize, bytes: &[u8]) -> Error {
    let text = String::from_utf8_lossy(bytes);
    let wrong = valid..valid + char::REPLACEMENT_CHARACTER.len_utf8();
    let fault = Fault::new(&wrong, "this is no UTF-8 text").help("save the file as UTF-8");
    Error::refused(name, &text, Lines::new(&text).locate(vec![fault]))
}

/// A value that settings and variables may override.
pub(crate) trait Overridable: Clone {
    /// What an override must look like, for a warning.
    fn expected() -> String;
    fn from_override(text: &str) -> Option<Self>;
    fn show(&self) -> String;
}

/// A number of workers.
impl Overridable for usize {
    fn expected() -> String {
        WORKERS.expected()
    }
    fn from_override(text: &str) -> Option<Self> {
        let Kind::Integer { min, max, .. } = WORKERS else { return None };
        text.parse::<u64>().ok().filter(|n| (min..=max).contains(n)).and_then(|n| Self::try_from(n).ok())
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

/// A timeout; only the file may lift the limit.
impl Overridable for Duration {
    fn expected() -> String {
        format!("a duration {}", Kind::duration_range(None, TIMEOUT_MIN, duration::MAX))
    }
    fn from_override(text: &str) -> Option<Self> {
        duration::parse(text).ok().filter(|value| *value >= TIMEOUT_MIN)
    }
    fn show(&self) -> String {
        duration::show(*self)
    }
}

impl Overridable for bool {
    fn expected() -> String {
        "true or false (also 1, on, yes, 0, off, no)".to_owned()
    }
    fn from_override(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Some(true),
            "false" | "0" | "off" | "no" => Some(false),
            _ => None,
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

/// Asks the sources in turn; the first that says anything decides, or is warned about.
pub(crate) fn resolve<T: Overridable>(
    session: &Session<'_>,
    got: Got<T>,
    sources: Vec<Origin>,
) -> Resolved<T> {
    let said = sources.into_iter().find_map(|source| Some((session.loader.ask(&source)?, source)));
    let Some((text, source)) = said else { return Resolved { value: got.value, origin: got.origin } };
    match T::from_override(&text) {
        Some(value) => {
            session.row(got.path, value.show(), &source);
            Resolved { value, origin: source }
        }
        None => {
            let stays = match &got.origin {
                Origin::File { line } => format!("line {line} of {}", session.name),
                other => other.to_string(),
            };
            session.warn(format!(
                "{source} is {}, expected {}; `{}` stays {} ({stays})",
                quote(&text),
                T::expected(),
                got.path,
                got.value.show()
            ));
            Resolved { value: got.value, origin: got.origin }
        }
    }
}

/// The sources of an overridable value: a setting, then variables.
pub(crate) fn sources(setting: Option<&str>, variables: impl IntoIterator<Item = String>) -> Vec<Origin> {
    let setting = setting.map(|key| Origin::Settings(key.to_owned()));
    setting.into_iter().chain(variables.into_iter().map(Origin::Env)).collect()
}
