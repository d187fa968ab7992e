//! The configuration reference, made from the comments of the settings: `docs/configuration.md`.
//!
//! `TRESTLE_WRITE_DOCS=1 cargo test -p trestle-tests --test tidy configuration` writes it anew.

use std::{fmt::Write as _, fs, path::Path};

use crate::source::Source;

/// The document.
const DOCUMENT: &str = "docs/configuration.md";
/// The files of the settings, in the order of the document.
const FILES: [&str; 10] = [
    "services/server/src/settings/server.rs",
    "services/server/src/settings/tls.rs",
    "services/server/src/settings/storage.rs",
    "services/server/src/settings/backup.rs",
    "services/server/src/settings/accounts.rs",
    "services/server/src/settings/gateway.rs",
    "services/server/src/settings/issuers.rs",
    "services/server/src/settings/limits.rs",
    "services/server/src/settings/quotas.rs",
    "shared/runtime/src/telemetry/settings.rs",
];
const HEAD: &str = "\
# Configuration

Made from the comments of the settings by `tests/tidy/configuration.rs`; change those.

Settings come from defaults, then a TOML file, then variables, then flags of `trestle serve`. The file is that of
`--config`, of the variable `TRESTLE_CONFIG`, or `./trestle.toml` where it exists. The variable of a key is
`TRESTLE__SECTION__KEY`: `storage.cache_bytes` is `TRESTLE__STORAGE__CACHE_BYTES`. Numbers of bytes may have a unit:
`128MiB`, `1.5GiB`, `500MB`. `trestle config print` prints the settings that result, never a key of an account;
`trestle config check` reports every mistake with its file and line.
";

/// A section of the settings: its name, its comment, and its keys.
struct Section {
    name: String,
    text: String,
    keys: Vec<[String; 3]>,
}

/// The sections in a file: structs whose comment names one.
fn sections(source: &str) -> Vec<Section> {
    let (mut sections, mut comment, mut is_open) = (Vec::new(), String::new(), false);
    let mut is_flat = false;
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            comment = format!("{comment} {}", text.trim());
        } else if line.starts_with("#[") || line.ends_with(")]") {
            is_flat |= line.contains("flatten");
        } else if line.starts_with("pub struct ") {
            let name = comment.split_once("section").and_then(|(_, rest)| rest.split('`').nth(1));
            is_open = line.ends_with('{') && name.is_some();
            if let Some(name) = name {
                let (name, text) = (name.to_owned(), comment.trim().to_owned());
                sections.push(Section { name, text, keys: Vec::new() });
            }
            comment.clear();
        } else if line == "}" {
            (is_open, is_flat) = (false, false);
            comment.clear();
        } else {
            let field = line.strip_prefix("pub ").and_then(|line| line.split_once(": "));
            if let (true, Some((field, _)), Some(section)) = (is_open, field, sections.last_mut()) {
                section.keys.push(key(field, comment.trim(), is_flat));
            }
            is_flat = false;
            comment.clear();
        }
    }
    sections.retain(|section| !section.keys.is_empty() || !section.text.contains("sections"));
    sections
}

/// The key, default and meaning of a field. A field with a key for each role names them first in its comment.
fn key(field: &str, comment: &str, is_flat: bool) -> [String; 3] {
    let (names, text) = match comment.split_once(": ").filter(|_| is_flat) {
        Some((names, text)) => (names.to_owned(), text),
        None => (format!("`{field}`"), comment),
    };
    let (meaning, default) = match text.split_once("Default: ") {
        Some((meaning, default)) => (meaning, default),
        None => (text, "none"),
    };
    let meaning = meaning.replace("No default.", "").replace("[`RoleSpec`]", "role");
    let default = default.replace("[`RoleSpec`]", "role");
    [names, default.trim().trim_end_matches('.').to_owned(), meaning.trim().to_owned()]
}

/// The document.
fn document(sources: &[&str]) -> String {
    let mut text = HEAD.to_owned();
    for section in sources.iter().flat_map(|source| sections(source)) {
        let _ = write!(text, "\n## `{}`\n\n{}\n\n", section.name, wrapped(&section.text));
        text.push_str("| key | default | meaning |\n|---|---|---|\n");
        for [names, default, meaning] in section.keys {
            let _ = writeln!(text, "| {names} | {default} | {} |", meaning.replace('|', "\\|"));
        }
    }
    text
}

/// Text in lines of at most 120 columns.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().unwrap();
        if !last.is_empty() && last.chars().count() + word.chars().count() >= 120 {
            lines.push(word.to_owned());
        } else {
            let space = if last.is_empty() { "" } else { " " };
            last.push_str(&format!("{space}{word}"));
        }
    }
    lines.join("\n")
}

/// Checks that the document is what the settings say, or writes it.
pub(crate) fn check(sources: &[Source]) {
    let text = |path: &str| sources.iter().find(|source| source.path == path);
    let files = FILES.map(|path| text(path).map(|source| source.text.as_str()).expect(path));
    let expected = document(&files);
    if is_written() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        fs::write(root.join(DOCUMENT), &expected).unwrap();
    }
    let found = text(DOCUMENT).map(|source| source.text.as_str()).unwrap_or_default();
    assert!(found == expected || is_written(), "{DOCUMENT} is outdated: see its first line");
}

#[expect(clippy::disallowed_methods, reason = "the one switch of the test")]
fn is_written() -> bool {
    std::env::var_os("TRESTLE_WRITE_DOCS").is_some()
}

#[test]
fn a_section_has_its_keys_with_their_defaults() {
    let source = "/// The section `a`.\npub struct A {\n    /// Bytes. Default: 1.\n    #[serde(default)]\n    \
                  pub b: u64,\n    /// `x_c` …: an address. No default.\n    #[serde(flatten)]\n    \
                  pub c: X,\n}\n/// No section.\npub struct B {\n    /// D.\n    pub d: u64,\n}\n";

    let found = sections(&source.replace("No section", "Nothing"));

    assert_eq!(found.len(), 1);
    assert_eq!(found[0].keys[0], ["`b`", "1", "Bytes."]);
    assert_eq!(found[0].keys[1], ["`x_c` …", "none", "an address."]);
}
