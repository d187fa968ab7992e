//! Configuration in layers: defaults, then a TOML file, then the environment, then flags.
//!
//! A key that nothing reads is an error that names it: a misspelt limit must not silently be the
//! default. This is the one module that reads the environment.

use std::{
    collections::HashMap,
    env,
    path::{Path, PathBuf},
};

use config::{Config, Environment, File, FileFormat, Value};
use serde::{Serialize, de::DeserializeOwned};

/// What every variable of ours begins with: `TRESTLE__SECTION__KEY`.
const PREFIX: &str = "TRESTLE";
/// What parts sections and keys in the name of a variable.
const SEPARATOR: &str = "__";

/// Configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("configuration file cannot be read: path=`{}`", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Keys that nothing reads.
    #[error("configuration has unknown keys: keys=`{}`", keys.join("`, `"))]
    UnknownKeys {
        /// Them, with their sections.
        keys: Vec<String>,
    },
    /// A value of the wrong form.
    #[error("configuration is malformed: {0}")]
    Malformed(String),
    /// Values that are well formed and yet wrong.
    #[error("configuration is invalid: {}", problems.join("; "))]
    Invalid {
        /// Each with its key and its rule.
        problems: Vec<String>,
    },
}

/// The layers above the defaults.
#[derive(Debug, Default)]
pub struct Sources<'a> {
    /// The file, if there is one.
    pub file: Option<&'a Path>,
    /// The environment, ours and others'.
    pub environment: HashMap<String, String>,
    /// Variables of others that set a key of ours, below the file: name and key.
    pub foreign: &'a [(&'a str, &'a str)],
    /// Keys and values of the flags that were given.
    pub flags: Vec<(&'static str, String)>,
}

/// The environment of the process. Variables that are not Unicode cannot be ours and are left out.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
pub fn environment() -> HashMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    env::vars_os().filter_map(text).collect()
}

/// Settings out of their defaults and the layers above.
///
/// # Errors
/// Every kind of [`ConfigError`] but the last, which is the caller's to find.
pub fn load<T>(defaults: &T, sources: Sources<'_>) -> Result<T, ConfigError>
where
    T: Serialize + DeserializeOwned,
{
    let malformed =
        |error: config::ConfigError| ConfigError::Malformed(without_text(&error.to_string()));
    let mut builder = Config::builder().add_source(Config::try_from(defaults).map_err(malformed)?);
    let mut foreign = Config::builder();
    for (variable, key) in sources.foreign {
        let value = sources.environment.get(*variable).cloned();
        foreign = foreign.set_override_option(*key, value).map_err(malformed)?;
    }
    builder = builder.add_source(foreign.build().map_err(malformed)?);
    if let Some(path) = sources.file {
        builder = builder.add_source(file(path)?);
    }
    let environment = Environment::with_prefix(PREFIX)
        .prefix_separator(SEPARATOR)
        .separator(SEPARATOR)
        .try_parsing(true)
        .source(Some(sources.environment));
    builder = builder.add_source(environment);
    for (key, value) in sources.flags {
        builder = builder.set_override(key, Value::from(value)).map_err(malformed)?;
    }
    let layered = builder.build().map_err(malformed)?;

    let mut keys = Vec::new();
    let settings = serde_ignored::deserialize(layered, |path| keys.push(path.to_string()));
    let settings = settings.map_err(malformed)?;
    if keys.is_empty() { Ok(settings) } else { Err(ConfigError::UnknownKeys { keys }) }
}

/// An error without the text that stands where something else should: it may be a secret in the
/// wrong place.
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

/// The file, read here so that a file that is not there differs from one that is malformed.
fn file(path: &Path) -> Result<File<config::FileSourceString, FileFormat>, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::File { path: path.to_owned(), source: source.into() })?;
    if let Err(error) = toml::from_str::<toml::Table>(&text) {
        // Not the whole error: it repeats the line, which may hold a key.
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let message = format!("{}: line {line}: {}", path.display(), error.message());
        return Err(ConfigError::Malformed(message));
    }
    Ok(File::from_str(&text, FileFormat::Toml))
}

/// Settings as TOML that [`load`] reads back. Keys without a value are left out.
///
/// # Errors
/// Settings that TOML cannot hold.
pub fn print<T: Serialize>(settings: &T) -> Result<String, ConfigError> {
    toml::to_string_pretty(settings).map_err(|error| ConfigError::Malformed(error.to_string()))
}
