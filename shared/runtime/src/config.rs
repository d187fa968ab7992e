//! Configuration in layers: defaults, then a TOML file, then the environment, then flags.
//!
//! An unknown key is an error that names it: a misspelt limit must not silently leave the default in force. This is the
//! one module that reads the environment.

use std::{
    collections::HashMap,
    env,
    path::{Path, PathBuf},
};

use config::{Config, Environment, File, FileFormat, Value, ValueKind};
use serde::{
    Deserialize as _, Deserializer, Serialize,
    de::{DeserializeOwned, Error as _, IntoDeserializer as _},
};

/// The prefix of every variable of Trestle: `TRESTLE__SECTION__KEY`.
const PREFIX: &str = "TRESTLE";
/// The separator of sections and keys in the name of a variable.
const SEPARATOR: &str = "__";

/// Invalid configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("configuration file cannot be read: path=`{}`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Unknown keys.
    #[error("configuration has unknown keys: keys=`{}`", keys.join("`, `"))]
    UnknownKeys {
        /// The keys, with their sections.
        keys: Vec<String>,
    },
    /// A malformed value.
    #[error("configuration is malformed: {0}")]
    Malformed(String),
    /// Well-formed values that violate a rule.
    #[error("configuration is invalid: {}", problems.join("; "))]
    Invalid {
        /// Each with its key and its rule.
        problems: Vec<String>,
    },
}

/// The layers above the defaults.
#[derive(Debug, Default)]
pub struct Sources<'a> {
    /// The file, if one is given.
    pub file: Option<&'a Path>,
    /// The environment: variables of Trestle and standard ones.
    pub environment: HashMap<String, String>,
    /// Standard variables that set a key of Trestle, with a lower priority than the file: name and key.
    pub foreign: &'a [(&'a str, &'a str)],
    /// Keys and values of the flags that were given.
    pub flags: Vec<(String, String)>,
}

/// The environment of the process. Variables that are not Unicode cannot belong to Trestle and are omitted.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
pub fn environment() -> HashMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    env::vars_os().filter_map(text).collect()
}

/// Settings from their defaults and the layers above.
///
/// # Errors
/// Every kind of [`ConfigError`] but the last, which the caller checks.
pub fn load<T>(defaults: &T, sources: Sources<'_>) -> Result<T, ConfigError>
where
    T: Serialize + DeserializeOwned,
{
    let malformed = |error: config::ConfigError| ConfigError::Malformed(redacted(error));
    let defaults = Config::try_from(defaults).map_err(malformed)?;
    let mut builder = Config::builder().add_source(defaults.clone());
    let mut foreign = Config::builder();
    for (variable, key) in sources.foreign {
        let value = sources.environment.get(*variable).cloned();
        foreign = foreign.set_override_option(*key, value).map_err(malformed)?;
    }
    builder = builder.add_source(foreign.build().map_err(malformed)?);
    if let Some(path) = sources.file {
        builder = builder.add_source(file(path)?);
    }
    // As texts, which every type parses: a number of an inferred type may have lost digits.
    let environment = Environment::with_prefix(PREFIX)
        .prefix_separator(SEPARATOR)
        .separator(SEPARATOR)
        .source(Some(sources.environment));
    builder = builder.add_source(environment);
    for (key, value) in sources.flags {
        builder = builder.set_override(key, Value::from(value)).map_err(malformed)?;
    }
    let layered = builder.build().map_err(malformed)?;
    let mut problems = Vec::new();
    reject_fractions("", Some(&defaults.cache), &layered.cache, &mut problems);
    let mut keys = Vec::new();
    let settings = serde_ignored::deserialize(layered, |path| keys.push(path.to_string()));
    // The number of an unknown key is not checked.
    if settings.is_ok() && !keys.is_empty() {
        return Err(ConfigError::UnknownKeys { keys });
    }
    if !problems.is_empty() {
        return Err(ConfigError::Malformed(problems.join("; ")));
    }
    settings.map_err(malformed)
}

/// Collects values of integer settings that are not integers: the crate would round or truncate them. A setting without
/// a default is an integer too, since all others have one.
fn reject_fractions(key: &str, default: Option<&Value>, given: &Value, problems: &mut Vec<String>) {
    use ValueKind as Kind;
    if let Kind::Table(table) = &given.kind {
        for (name, value) in table {
            let default = default.and_then(|default| match &default.kind {
                Kind::Table(table) => table.get(name),
                _ => None,
            });
            let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            reject_fractions(&key, default, value, problems);
        }
        return;
    }
    let is_whole =
        |kind: &Kind| matches!(kind, Kind::I64(_) | Kind::U64(_) | Kind::I128(_) | Kind::U128(_));
    let fits = match (&given.kind, default.map(|default| &default.kind)) {
        (Kind::Float(_), None) => false,
        (Kind::String(text), Some(kind)) if is_whole(kind) => text.trim().parse::<u64>().is_ok(),
        (Kind::Float(_) | Kind::Boolean(_), Some(kind)) => !is_whole(kind),
        _ => true,
    };
    if !fits {
        let rule = format!("must be a whole number, 0 to {}", u64::MAX);
        problems.push(format!("{key}: {rule}{}", shown(&given.to_string())));
    }
}

/// A value as part of an error, where it is a number or one with a unit. Any other text may be a
/// secret in the wrong place.
fn shown(text: &str) -> String {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || "+-._".contains(c));
    let is_number = unit.len() < text.len() && unit.len() <= UNIT_MAX && text.len() <= NUMBER_MAX;
    let is_harmless = is_number && unit.chars().all(|c| c.is_ascii_alphabetic());
    if is_harmless { format!(": value=`{text}`") } else { String::new() }
}

/// Longest unit behind a number, in bytes.
const UNIT_MAX: usize = 5;
/// Longest number that is shown, in bytes, its unit included.
const NUMBER_MAX: usize = 24;

/// An error with its key first, and no text that may be a secret in the wrong place.
fn redacted(error: config::ConfigError) -> String {
    use config::ConfigError as E;
    match error {
        E::At { error, key: Some(key), .. } => format!("{key}: {}", redacted(*error)),
        E::At { error, key: None, .. } => redacted(*error),
        E::Type { key: Some(key), unexpected, expected, .. } => {
            let value = match unexpected.to_string().split_once('`') {
                Some((_, rest)) => shown(rest.trim_end_matches('`')),
                None => text_of(&unexpected.to_string()).map_or_else(String::new, shown),
            };
            let expected = if expected == "an integer" { "a whole number" } else { expected };
            format!("{key}: must be {expected}{value}")
        }
        E::Message(message) if message.contains(", expected struct ") => {
            "must be a section".to_owned()
        }
        other => without_text(&other.to_string()),
    }
}

/// The text in `string "text"`.
fn text_of(unexpected: &str) -> Option<&str> {
    unexpected.strip_prefix("string \"")?.strip_suffix('"')
}

/// Parses the name of an enum value; the error lists the valid names.
///
/// # Errors
/// Any other value.
pub fn choice<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let text = String::deserialize(deserializer)?;
    T::deserialize(text.as_str().into_deserializer()).map_err(|error: serde::de::value::Error| {
        let error = error.to_string();
        let words = error.split_once(", expected ").map_or(error.as_str(), |(_, words)| words);
        D::Error::custom(format!("must be {words}: value=`{text}`"))
    })
}

/// An error without the unexpected text: it may be a secret in the wrong place.
fn without_text(error: &str) -> String {
    let (start, end) = ("string \"", "\", expected");
    match (error.find(start), error.rfind(end)) {
        (Some(from), Some(to)) if from < to => {
            let (before, after) = (error.get(..from), error.get(to + 1..));
            format!("{}text{}", before.unwrap_or_default(), after.unwrap_or_default())
        }
        _ => error.to_owned(),
    }
}

/// The file, read here so that a missing file differs from a malformed one.
fn file(path: &Path) -> Result<File<config::FileSourceString, FileFormat>, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::File { path: path.to_owned(), source: source.into() })?;
    if let Err(error) = toml::from_str::<toml::Table>(&text) {
        // Not the whole error: it repeats the line, which may contain a key.
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let message = format!("{}: line {line}: {}", path.display(), error.message());
        return Err(ConfigError::Malformed(message));
    }
    Ok(File::from_str(&text, FileFormat::Toml))
}

/// Settings as TOML that [`load`] reads back. Keys without a value are omitted.
///
/// # Errors
/// Settings that TOML cannot represent.
pub fn print<T: Serialize>(settings: &T) -> Result<String, ConfigError> {
    toml::to_string_pretty(settings).map_err(|error| ConfigError::Malformed(error.to_string()))
}
