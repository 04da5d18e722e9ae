//! The manifests of the house, and the rules for one of them: versions, features and lints live in the root only,
//! and the architecture page names every crate.

use anyhow::{Context, Result, anyhow};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Finding;
use super::tree::Tree;

const RULE: &str = "manifest";
const ARCHITECTURE: &str = "docs/ARCHITECTURE.md";

/// What a package takes from `[workspace.package]`.
const INHERITED: [&str; 5] = ["version", "edition", "rust-version", "license", "repository"];

/// All manifests, parsed.
pub(crate) struct House<'t> {
    root: Manifest<'t>,
    pub(crate) crates: Vec<Manifest<'t>>,
}

/// One `Cargo.toml`.
pub(crate) struct Manifest<'t> {
    pub(crate) path: &'t str,
    text: &'t str,
    table: DeTable<'t>,
}

/// One entry of a dependency table.
pub(crate) struct Dependency<'m> {
    pub(crate) name: &'m str,
    /// From `[dev-dependencies]`, which tests alone may use.
    pub(crate) dev: bool,
    pub(crate) line: usize,
    value: &'m DeValue<'m>,
}

impl<'t> House<'t> {
    /// Parses the root manifest and those of `crates/*` and `tests`.
    pub(crate) fn read(tree: &'t Tree) -> Result<Self> {
        let root = Manifest::read(tree, "Cargo.toml")?;
        let is_member = |path: &&str| *path == "tests/Cargo.toml" || crate_dir(path).is_some();
        let members = tree.files.iter().map(|file| file.path.as_str()).filter(is_member);
        let crates = members.map(|path| Manifest::read(tree, path)).collect::<Result<_>>()?;
        Ok(Self { root, crates })
    }

    /// The directory under `crates/` that a dependency comes from (`acceptance` for `tests`); none for a foreign one.
    pub(crate) fn home_of(&self, dependency: &Dependency<'_>) -> Option<&str> {
        let shared = self.root.section(&["workspace", "dependencies"])?.get(dependency.name)?;
        let path = shared.get_ref().get("path")?.get_ref().as_str()?;
        if path == "tests" { Some("acceptance") } else { path.strip_prefix("crates/") }
    }
}

/// `x` of `crates/x/Cargo.toml`.
fn crate_dir(path: &str) -> Option<&str> {
    let dir = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    (!dir.contains('/')).then_some(dir)
}

impl<'t> Manifest<'t> {
    fn read(tree: &'t Tree, path: &'t str) -> Result<Self> {
        let text = &tree.get(path).with_context(|| format!("expected {path}, found no such file"))?.text;
        let table = DeTable::parse(text).map_err(|error| anyhow!("{path}: {error}"))?.into_inner();
        Ok(Self { path, text, table })
    }

    /// The name of its directory; `acceptance` for `tests`.
    pub(crate) fn dir(&self) -> &'t str {
        crate_dir(self.path).unwrap_or("acceptance")
    }

    fn line<T>(&self, value: &Spanned<T>) -> usize {
        1 + self.text[..value.span().start].matches('\n').count()
    }

    /// The table at a path of keys.
    fn section(&self, keys: &[&str]) -> Option<&DeTable<'t>> {
        keys.iter().try_fold(&self.table, |table, key| table.get(*key)?.get_ref().as_table())
    }

    /// All entries of all dependency tables, those of `[target.…]` too.
    pub(crate) fn dependencies(&self) -> Vec<Dependency<'_>> {
        let targets = self.section(&["target"]).into_iter().flat_map(|targets| targets.values());
        let targets = targets.filter_map(|target| target.get_ref().as_table());
        std::iter::once(&self.table).chain(targets).flat_map(|table| self.entries(table)).collect()
    }

    fn entries<'m>(&'m self, table: &'m DeTable<'t>) -> Vec<Dependency<'m>> {
        let mut entries = Vec::new();
        for (section, dev) in
            [("dependencies", false), ("build-dependencies", false), ("dev-dependencies", true)]
        {
            let section = table.get(section).and_then(|section| section.get_ref().as_table());
            for (name, value) in section.into_iter().flatten() {
                let line = self.line(name);
                entries.push(Dependency { name: name.get_ref(), dev, line, value: value.get_ref() });
            }
        }
        entries
    }
}

/// Checks every crate's manifest.
pub(crate) fn check(tree: &Tree, house: &House<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in &house.crates {
        inherited(manifest, &mut findings);
        lints(manifest, &mut findings);
        for dependency in manifest.dependencies() {
            shared(manifest, &dependency, &mut findings);
        }
    }
    architecture(tree, house, &mut findings);
    findings
}

fn is_workspace(value: Option<&DeValue<'_>>) -> bool {
    value.and_then(|value| value.get("workspace")).and_then(|flag| flag.get_ref().as_bool()) == Some(true)
}

fn inherited(manifest: &Manifest<'_>, findings: &mut Vec<Finding>) {
    let package = manifest.section(&["package"]);
    for key in INHERITED {
        let value = package.and_then(|package| package.get(key));
        if !is_workspace(value.map(Spanned::get_ref)) {
            let line = value.map_or(1, |value| manifest.line(value));
            findings.push(Finding::new(
                manifest.path,
                line,
                RULE,
                format!("expected `{key}.workspace = true`"),
            ));
        }
    }
}

fn lints(manifest: &Manifest<'_>, findings: &mut Vec<Finding>) {
    let lints = manifest.table.get("lints");
    if !is_workspace(lints.map(Spanned::get_ref)) {
        let line = lints.map_or(1, |lints| manifest.line(lints));
        let message = "expected `[lints]` with `workspace = true`";
        findings.push(Finding::new(manifest.path, line, RULE, message));
    }
}

/// A dependency says `workspace = true` and perhaps `optional`; the root says the rest.
fn shared(manifest: &Manifest<'_>, dependency: &Dependency<'_>, findings: &mut Vec<Finding>) {
    let name = dependency.name;
    let mut report = |message: String| {
        findings.push(Finding::new(manifest.path, dependency.line, RULE, message));
    };
    if !is_workspace(Some(dependency.value)) {
        report(format!(
            "expected `{name}.workspace = true`: versions and paths live in the root manifest and nowhere else"
        ));
    }
    for key in ["features", "default-features"] {
        if dependency.value.get(key).is_some() {
            report(format!(
                "`{key}` of {name} belongs in the root manifest, so that every selection of packages builds the same"
            ));
        }
    }
}

fn architecture(tree: &Tree, house: &House<'_>, findings: &mut Vec<Finding>) {
    let Some(page) = tree.get(ARCHITECTURE) else {
        findings.push(Finding::new(
            ARCHITECTURE,
            1,
            RULE,
            "expected the page that names every crate, found no file",
        ));
        return;
    };
    for dir in house.crates.iter().filter_map(|manifest| crate_dir(manifest.path)) {
        if !names(&page.text, dir) {
            let message = format!("expected crate `{dir}` to be named here, as `{dir}` or crates/{dir}");
            findings.push(Finding::new(ARCHITECTURE, 1, RULE, message));
        }
    }
}

/// Whether a page speaks of a crate's directory: in backticks, or by its path.
fn names(page: &str, dir: &str) -> bool {
    let continues = |rest: &str| rest.starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_');
    let path = format!("crates/{dir}");
    page.contains(&format!("`{dir}`"))
        || page.match_indices(&path).any(|(at, _)| !continues(&page[at + path.len()..]))
}

#[cfg(test)]
mod tests {
    use super::super::tree::fixture;
    use super::*;

    const GOOD: &str = "[package]\nname = \"poolwright-a\"\nversion.workspace = true\nedition.workspace = true\n\
        rust-version.workspace = true\nlicense.workspace = true\nrepository.workspace = true\n\
        [lints]\nworkspace = true\n";

    fn check_crate(manifest: &str, page: &str) -> Vec<String> {
        let tree = fixture(&[
            ("Cargo.toml", "[workspace]"),
            ("crates/a/Cargo.toml", manifest),
            ("crates/a/tests/ui/Cargo.toml", "[package]"),
            ("docs/ARCHITECTURE.md", page),
        ]);
        check(&tree, &House::read(&tree).unwrap()).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_manifest_that_inherits_everything_is_tidy() {
        let text = format!(
            "{GOOD}[dependencies]\nx.workspace = true\ny = {{ workspace = true, optional = true }}\n\
            [target.'cfg(unix)'.dependencies]\nlibc.workspace = true"
        );
        assert!(check_crate(&text, "the crate `a`").is_empty());
    }

    #[test]
    fn a_literal_version_or_path_is_found_in_every_table() {
        let tables =
            ["dependencies", "dev-dependencies", "build-dependencies", "target.'cfg(unix)'.dependencies"];
        for table in tables {
            for value in ["\"1\"", "{ version = \"1\" }", "{ path = \"../x\" }", "{ workspace = false }"] {
                let found = check_crate(&format!("{GOOD}[{table}]\nx = {value}\n"), "`a`");
                assert_eq!(found.len(), 1, "{table} {value}: {found:?}");
                assert!(
                    found[0].starts_with("crates/a/Cargo.toml:11: manifest: expected `x.workspace"),
                    "{found:?}"
                );
            }
        }
    }

    #[test]
    fn features_are_listed_in_the_root_only() {
        let text = format!("{GOOD}[dependencies]\nx = {{ workspace = true, features = [\"f\"] }}\n");
        let found = check_crate(&text, "`a`");
        assert!(found.len() == 1 && found[0].contains("`features` of x"), "{found:?}");
    }

    #[test]
    fn a_package_of_its_own_version_is_found() {
        let found = check_crate(&GOOD.replace("edition.workspace = true", "edition = \"2024\""), "`a`");
        assert_eq!(found, ["crates/a/Cargo.toml:4: manifest: expected `edition.workspace = true`"]);
    }

    #[test]
    fn missing_lints_are_found() {
        let found = check_crate(GOOD.split("[lints]").next().unwrap(), "`a`");
        assert_eq!(found, ["crates/a/Cargo.toml:1: manifest: expected `[lints]` with `workspace = true`"]);
    }

    #[test]
    fn a_crate_absent_from_the_architecture_page_is_found() {
        assert!(check_crate(GOOD, "see crates/a/src/lib.rs").is_empty());
        for page in ["a", "crates/ab", "crates/a-b", "`ab`"] {
            assert_eq!(check_crate(GOOD, page).len(), 1, "{page}");
        }
    }

    #[test]
    fn a_missing_architecture_page_is_found() {
        let tree = fixture(&[("Cargo.toml", "[workspace]")]);
        let found = check(&tree, &House::read(&tree).unwrap());
        assert_eq!((found.len(), found[0].path.as_str()), (1, ARCHITECTURE));
    }

    #[test]
    fn a_manifest_that_does_not_parse_names_itself() {
        let tree = fixture(&[("Cargo.toml", ""), ("crates/a/Cargo.toml", "[package")]);
        let error = House::read(&tree).err().unwrap().to_string();
        assert!(error.starts_with("crates/a/Cargo.toml: "), "{error}");
    }
}
