//! Rules on manifests: which crate may depend on which, and where versions are.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use crate::source::{Finding, Source};

/// Each crate with those of ours that it may depend on. No service depends on another one.
const LAYERS: &[(&str, &[&str])] = &[
    ("trestle-proto", &[]),
    ("trestle-model", &["trestle-proto"]),
    ("trestle-kv", &["trestle-model"]),
    ("trestle-kv-fjall", &["trestle-kv", "trestle-model"]),
    ("trestle-kv-postgres", &["trestle-kv", "trestle-model"]),
    ("trestle-rpc", &["trestle-kv", "trestle-model", "trestle-proto"]),
    ("trestle-objects", &["trestle-kv", "trestle-model"]),
    ("trestle-filter", &["trestle-kv", "trestle-model"]),
    ("trestle-identity", &["trestle-model", "trestle-proto", "trestle-rpc"]),
    ("trestle-runtime", &["trestle-model", "trestle-proto", "trestle-rpc"]),
    (
        "trestle-table",
        &[
            "trestle-filter",
            "trestle-identity",
            "trestle-kv",
            "trestle-model",
            "trestle-proto",
            "trestle-rpc",
        ],
    ),
    (
        "trestle-queue",
        &["trestle-identity", "trestle-kv", "trestle-model", "trestle-proto", "trestle-rpc"],
    ),
    (
        "trestle-blob",
        &[
            "trestle-identity",
            "trestle-kv",
            "trestle-model",
            "trestle-objects",
            "trestle-proto",
            "trestle-rpc",
        ],
    ),
    (
        "trestle-log",
        &[
            "trestle-filter",
            "trestle-identity",
            "trestle-kv",
            "trestle-model",
            "trestle-objects",
            "trestle-proto",
            "trestle-rpc",
        ],
    ),
    ("trestle-gateway", &["trestle-identity", "trestle-model", "trestle-proto", "trestle-rpc"]),
    ("trestle-azure", &["trestle-identity", "trestle-model", "trestle-proto", "trestle-rpc"]),
    ("trestle-command", &["trestle-identity", "trestle-model", "trestle-proto", "trestle-rpc"]),
    (
        "trestle-cli",
        &["trestle-command", "trestle-identity", "trestle-model", "trestle-proto", "trestle-rpc"],
    ),
    ("trestle-import", &["trestle-command", "trestle-identity", "trestle-model", "trestle-proto"]),
    (
        "trestle-backup",
        &["trestle-command", "trestle-kv", "trestle-kv-fjall", "trestle-model", "trestle-objects"],
    ),
    (
        "trestle",
        &[
            "trestle-azure",
            "trestle-backup",
            "trestle-blob",
            "trestle-cli",
            "trestle-command",
            "trestle-gateway",
            "trestle-identity",
            "trestle-import",
            "trestle-kv",
            "trestle-kv-fjall",
            "trestle-kv-postgres",
            "trestle-log",
            "trestle-model",
            "trestle-objects",
            "trestle-proto",
            "trestle-queue",
            "trestle-rpc",
            "trestle-runtime",
            "trestle-table",
        ],
    ),
    (
        "trestle-tests",
        &[
            "trestle",
            "trestle-azure",
            "trestle-blob",
            "trestle-cli",
            "trestle-command",
            "trestle-gateway",
            "trestle-identity",
            "trestle-import",
            "trestle-kv",
            "trestle-kv-fjall",
            "trestle-kv-postgres",
            "trestle-log",
            "trestle-model",
            "trestle-objects",
            "trestle-proto",
            "trestle-queue",
            "trestle-rpc",
            "trestle-runtime",
            "trestle-table",
        ],
    ),
    // Calls a server from outside, by what Microsoft publishes.
    ("trestle-azure-clients", &[]),
    (
        "trestle-fuzz",
        &[
            "trestle-azure",
            "trestle-backup",
            "trestle-blob",
            "trestle-cli",
            "trestle-command",
            "trestle-filter",
            "trestle-gateway",
            "trestle-identity",
            "trestle-import",
            "trestle-kv",
            "trestle-kv-fjall",
            "trestle-log",
            "trestle-model",
            "trestle-proto",
            "trestle-queue",
            "trestle-rpc",
            "trestle-table",
        ],
    ),
    ("trestle-peers", &["trestle-proto"]),
];

/// The engine that tests of any crate may run on; a service depends on none.
const TEST_ENGINE: &str = "trestle-kv-fjall";

/// Where each dependency has its reason.
const PAGE: &str = "docs/dependencies.md";

/// The parts of a manifest that name dependencies.
const SECTIONS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Crates that depend on what is not below them, and crates without a layer.
pub(crate) fn misplaced(sources: &[Source]) -> Vec<Finding> {
    let manifests = sources.iter().filter(|source| source.file_name() == "Cargo.toml");
    manifests.flat_map(misplaced_in).collect()
}

fn misplaced_in(manifest: &Source) -> Vec<Finding> {
    let mut parsed = parse(manifest);
    let tests =
        parsed.remove("dev-dependencies").map(|section| [("dependencies".to_owned(), section)]);
    let tests: Table = tests.into_iter().flatten().collect();
    let Some(name) = parsed.get("package").and_then(|package| package.get("name")?.as_str()) else {
        return Vec::new();
    };
    let Some((_, below)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
        let what = format!("the crate is in no layer: `{name}`");
        return vec![manifest.finding(0, what)];
    };
    // A crate may turn on features of its own for its tests.
    let is_wrong = |other: &str| is_ours(other) && other != name && !below.contains(&other);
    let is_wrong_in_tests = |other: &str| is_wrong(other) && other != TEST_ENGINE;
    let product = dependencies(&parsed).filter(|(other, _)| is_wrong(other));
    let tests = dependencies(&tests).filter(|(other, _)| is_wrong_in_tests(other));
    let mut findings = Vec::new();
    for (other, _) in product.chain(tests) {
        let what = format!("`{name}` must not depend on `{other}`");
        findings.push(manifest.finding(0, what));
    }
    findings
}

/// Versions outside of the root manifest. The fuzz targets and the peers are workspaces of their own.
pub(crate) fn own_versions(source: &Source) -> Vec<Finding> {
    if source.file_name() != "Cargo.toml" {
        return Vec::new();
    }
    let parsed = parse(source);
    if parsed.contains_key("workspace") {
        return Vec::new();
    }
    let has_version = |value: &Value| value.is_str() || value.get("version").is_some();
    let own = dependencies(&parsed).filter(|(_, value)| has_version(value));
    own.map(|(name, _)| source.finding(0, format!("a version of its own: `{name}`"))).collect()
}

/// Dependencies that the page on them does not list, and those it lists that no manifest has.
pub(crate) fn unlisted(sources: &[Source]) -> Vec<Finding> {
    let Some(page) = sources.iter().find(|source| source.path == PAGE) else {
        return Vec::new();
    };
    let listed: BTreeMap<&str, usize> = page.text.lines().enumerate().filter_map(listed).collect();
    let manifests = sources.iter().filter(|source| source.file_name() == "Cargo.toml");
    let used: BTreeSet<String> = manifests.flat_map(used_by).collect();
    let missing = used.iter().filter(|name| !listed.contains_key(name.as_str()));
    let missing = missing.map(|name| page.finding(0, format!("no reason for `{name}`")));
    let unused = listed.iter().filter(|(name, _)| !used.contains(**name));
    let unused = unused.map(|(name, line)| page.finding(*line, format!("not used: `{name}`")));
    missing.chain(unused).collect()
}

/// The dependency of a row of the page, if it has a reason.
fn listed((index, line): (usize, &str)) -> Option<(&str, usize)> {
    let (name, reason) = line.strip_prefix("| `")?.split_once("` | ")?;
    (!reason.trim_end_matches(" |").is_empty()).then_some((name, index))
}

/// The names of the dependencies of a manifest that are not our own crates.
fn used_by(manifest: &Source) -> Vec<String> {
    let parsed = parse(manifest);
    let shared = parsed.get("workspace").and_then(Value::as_table);
    let tables = std::iter::once(&parsed).chain(shared);
    let names = tables.flat_map(|table| dependencies(table).map(|(name, _)| name.to_owned()));
    names.filter(|name| !is_ours(name)).collect()
}

fn is_ours(name: &str) -> bool {
    name == "trestle" || name.starts_with("trestle-")
}

fn parse(manifest: &Source) -> Table {
    manifest.text.parse().unwrap_or_else(|error| panic!("{}: {error}", manifest.path))
}

/// The dependencies of a manifest, for any platform.
fn dependencies(manifest: &Table) -> impl Iterator<Item = (&str, &Value)> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let tables = std::iter::once(manifest).chain(targets);
    tables
        .flat_map(|table| SECTIONS.iter().filter_map(|section| table.get(*section)?.as_table()))
        .flat_map(|section| section.iter().map(|(name, value)| (name.as_str(), value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str, dependencies: &str) -> Source {
        let text = format!("[package]\nname = \"{name}\"\n[dependencies]\n{dependencies}");
        Source::new("a/Cargo.toml", &text)
    }

    #[test]
    fn reports_a_dependency_on_a_higher_layer() {
        for (name, other) in [
            ("trestle-kv", "trestle-rpc"),
            ("trestle-model", "trestle-kv"),
            ("trestle-rpc", "trestle-kv-fjall"),
            ("trestle-rpc", "trestle-table"),
            ("trestle-table", "trestle-gateway"),
            ("trestle-gateway", "trestle-table"),
            ("trestle-table", "trestle-runtime"),
            ("trestle-cli", "trestle-table"),
            ("trestle-cli", "trestle-import"),
            ("trestle-import", "trestle-cli"),
            ("trestle-command", "trestle-cli"),
            ("trestle-runtime", "trestle"),
        ] {
            let in_tests = if other == TEST_ENGINE { "" } else { "[dev-dependencies]\n" };
            for section in ["", in_tests, "[target.'cfg(unix)'.dependencies]\n"] {
                let text = format!("{section}{other}.workspace = true\n");
                let found = misplaced(&[manifest(name, &text)]);
                assert_eq!(found.len(), 1, "{name} {other} {section}");
            }
        }
        let fine = "trestle-kv.workspace = true\nserde.workspace = true\n";
        assert_eq!(misplaced(&[manifest("trestle-table", fine)]), []);
        let tested = "[dev-dependencies]\ntrestle-kv-fjall.workspace = true\n";
        assert_eq!(misplaced(&[manifest("trestle-table", tested)]), []);
        let own = "[dev-dependencies]\ntrestle-kv = { path = \".\", features = [\"testing\"] }\n";
        assert_eq!(misplaced(&[manifest("trestle-kv", own)]), []);
    }

    #[test]
    fn reports_a_crate_outside_the_layers() {
        assert_eq!(misplaced(&[manifest("trestle-misc", "")]).len(), 1);
    }

    #[test]
    fn reports_a_version_outside_the_workspace() {
        for own in ["serde = \"1\"", "serde = { version = \"1\", features = [] }"] {
            assert_eq!(own_versions(&manifest("trestle-kv", own)).len(), 1, "{own}");
        }
        let shared = "serde.workspace = true\ntokio = { workspace = true, features = [] }";
        assert_eq!(own_versions(&manifest("trestle-kv", shared)), []);
        let root = "[workspace.dependencies]\nserde = \"1\"\n";
        assert_eq!(own_versions(&Source::new("Cargo.toml", root)), []);
    }

    #[test]
    fn reports_a_dependency_without_a_reason() {
        let root = "[workspace]\n[workspace.dependencies]\nserde = \"1\"\ntrestle-kv = {}\n";
        let found = |page: &str| {
            let own = manifest("trestle-fuzz", "[dev-dependencies]\nbytes = \"1\"\n");
            unlisted(&[Source::new("Cargo.toml", root), own, Source::new(PAGE, page)]).len()
        };
        assert_eq!(found("# A\n| `serde` | JSON |\n| `bytes` | buffers |\n"), 0);
        assert_eq!(found("| `serde` | JSON |\n"), 1);
        assert_eq!(found("| `serde` |  |\n| `bytes` | buffers |\n"), 1);
        assert_eq!(found("| `serde` | JSON |\n| `bytes` | buffers |\n| `h2` | HTTP |\n"), 1);
    }
}
