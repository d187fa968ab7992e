//! A mistake in the file of contexts: a key that no context has, or a value that is not a text.

use toml::de::{DeTable, DeValue};

/// The keys of the file.
const OF_FILE: [&str; 2] = ["contexts", "current"];
/// The keys of a context; each is a text.
pub(super) const OF_CONTEXT: [&str; 11] = [
    "account",
    "account_key",
    "account_key_file",
    "ca_file",
    "cert_file",
    "connection_string",
    "endpoint",
    "key_file",
    "sas",
    "sas_file",
    "server_name",
];

/// The first mistake of a file, with its line; a value may be a secret and is not in it.
pub(super) fn mistake(text: &str) -> Option<(usize, String)> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut found: Vec<_> = errors
        .iter()
        .map(|error| (error.span().map_or(0, |span| span.start), error.message().to_owned()))
        .collect();
    if found.is_empty() {
        of_file(table.get_ref(), &mut found);
    }
    let (at, mistake) = found.into_iter().min()?;
    let before = text.get(..at).unwrap_or_default();
    Some((before.matches('\n').count() + 1, mistake))
}

/// The mistakes of a file, each with the byte of its key.
fn of_file(table: &DeTable<'_>, found: &mut Vec<(usize, String)>) {
    for (name, value) in table {
        let (name, at) = (name.get_ref().as_ref(), name.span().start);
        match (name, value.get_ref()) {
            ("contexts", DeValue::Table(contexts)) => {
                for (context, value) in contexts {
                    let key = format!("contexts.{}", context.get_ref());
                    match value.get_ref() {
                        DeValue::Table(fields) => of_context(&key, fields, found),
                        _ => found.push((context.span().start, format!("{key}: {SECTION}"))),
                    }
                }
            }
            ("contexts", _) => found.push((at, format!("contexts: {SECTION}"))),
            ("current", DeValue::String(_)) => {}
            ("current", _) => found.push((at, format!("current: {TEXT}"))),
            _ => found.push((at, unknown(name, &OF_FILE))),
        }
    }
}

fn of_context(context: &str, fields: &DeTable<'_>, found: &mut Vec<(usize, String)>) {
    for (name, value) in fields {
        let (key, at) = (format!("{context}.{}", name.get_ref()), name.span().start);
        if !OF_CONTEXT.contains(&name.get_ref().as_ref()) {
            found.push((at, unknown(&key, &OF_CONTEXT)));
        } else if !matches!(value.get_ref(), DeValue::String(_)) {
            found.push((at, format!("{key}: {TEXT}")));
        }
    }
}

/// The rule for a context.
const SECTION: &str = "must be a section, such as [contexts.dev]";
/// The rule for a value.
const TEXT: &str = "must be a text in quotes";

fn unknown(key: &str, known: &[&str]) -> String {
    format!("{key}: unknown key, must be one of {}", known.join(", "))
}
