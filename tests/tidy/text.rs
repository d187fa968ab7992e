//! Rules on every text file.

use crate::{
    rust::in_sequences,
    source::{Finding, Source},
    tokens::{is_word, name},
};

const LINES_MAX: usize = 500;
const COLUMNS_MAX: usize = 120;

/// Files that are written by hand and read as a whole.
fn is_code(source: &Source) -> bool {
    let lock = source.file_name() == "package-lock.json";
    matches!(source.extension(), "rs" | "proto" | "sh" | "py" | "js" | "c") && !lock
}

/// Rust files of more than 500 lines.
pub(crate) fn long_files(source: &Source) -> Vec<Finding> {
    let lines = source.text.lines().count();
    if source.is_rust() && lines > LINES_MAX {
        let what = format!("file is too long: lines=`{lines}`, max=`{LINES_MAX}`");
        return vec![source.finding(LINES_MAX, what)];
    }
    Vec::new()
}

/// Lines of code of more than 120 columns.
pub(crate) fn long_lines(source: &Source) -> Vec<Finding> {
    let long = |line: &str| is_code(source) && line.chars().count() > COLUMNS_MAX;
    lines_where(source, long, "line is too long")
}

/// Marks of unfinished work without an issue: `(#12)` must follow.
pub(crate) fn open_ends(source: &Source) -> Vec<Finding> {
    // Split, so that this file does not break its own rule.
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];
    let is_open = |line: &str| {
        marks.iter().any(|mark| {
            line.match_indices(mark).any(|(at, _)| {
                let whole = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
                whole && !is_tracked(&line[at + mark.len()..])
            })
        })
    };
    lines_where(source, is_open, "undone work names no issue, as in `(#12)`")
}

fn is_tracked(after_mark: &str) -> bool {
    let number = after_mark.strip_prefix("(#").and_then(|rest| rest.split_once(')'));
    number.is_some_and(|(number, _)| number.parse::<u32>().is_ok())
}

/// Hosts of package registries: which one is used is a matter of the machine that builds.
pub(crate) fn registry_hosts(source: &Source) -> Vec<Finding> {
    if source.file_name() == "Cargo.lock" {
        return Vec::new();
    }
    let hosts = [
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("python", "hosted.org"),
        concat!("registry.npm", "js"),
        concat!("npm", "js.com"),
        concat!("deb.", "debian.org"),
        concat!("docker", ".io"),
    ];
    let names_one = |line: &str| hosts.iter().any(|host| line.contains(host));
    lines_where(source, names_one, "the host of a package registry")
}

/// Files and folders with an empty name. Those of the protocol of OpenTelemetry are published.
pub(crate) fn empty_names(source: &Source) -> Vec<Finding> {
    const NAMES: [&str; 8] =
        ["common", "core", "helper", "helpers", "misc", "shared_code", "util", "utils"];
    let mut findings = Vec::new();
    if source.path.starts_with("proto/opentelemetry/")
        || source.path == "proto/src/opentelemetry.rs"
    {
        return findings;
    }
    for part in source.path.split('/') {
        let stem = part.split('.').next().unwrap_or_default();
        if NAMES.contains(&stem) {
            findings.push(source.finding(0, format!("a name without a meaning: `{stem}`")));
        }
    }
    findings.extend(in_sequences(source, "mod ", |tokens| match tokens {
        [keyword, module, ..] if is_word(keyword, "mod") => {
            let module = name(module).filter(|module| NAMES.contains(&module.as_str()))?;
            Some(format!("a name without a meaning: `{module}`"))
        }
        _ => None,
    }));
    findings
}

fn lines_where(source: &Source, bad: impl Fn(&str) -> bool, what: &str) -> Vec<Finding> {
    let lines = source.text.lines().enumerate();
    lines.filter(|(_, line)| bad(line)).map(|(index, _)| source.finding(index, what)).collect()
}

#[cfg(test)]
mod tests;
