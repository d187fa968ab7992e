//! Configuration in layers: defaults, then a TOML file, then the environment, then flags.
//!
//! An unknown key is an error that names it: a misspelt limit must not silently select the default. This is the
//! one module that reads the environment.

mod check;
mod contradictions;
mod places;
mod quoted_numbers;
mod redacted;
mod sections;
mod sizes;
mod whole_numbers;

use std::{
    collections::{BTreeMap, HashMap},
    env,
    ops::RangeInclusive,
    path::{Path, PathBuf},
};

use config::{Config, ConfigBuilder, Environment, File, FileFormat, Value, builder::DefaultState};
use serde::{
    Deserialize as _, Deserializer, Serialize,
    de::{DeserializeOwned, Error as _, IntoDeserializer as _},
};
use trestle_rpc::small_file;

pub use self::{
    check::mistakes, contradictions::Exclusion, redacted::shown, whole_numbers::bounds,
};
use self::{
    contradictions::{contradictions, resolve_layers},
    quoted_numbers::quote_numbers,
    redacted::{in_words, redacted},
    sections::Sections,
    sizes::read_sizes,
    whole_numbers::WholeNumbers,
};

type Builder = ConfigBuilder<DefaultState>;

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

/// The range of the number with a key; none for any other key.
pub type RangeOf = fn(&str) -> Option<RangeInclusive<u64>>;

/// The layers above the defaults.
#[derive(Debug, Default)]
pub struct Sources<'a> {
    /// The file, if any.
    pub file: Option<&'a Path>,
    /// The environment: variables of Trestle and standard ones.
    pub environment: HashMap<String, String>,
    /// Standard variables that set a key of Trestle, with a lower priority than the file: name and key.
    pub foreign: &'a [(&'a str, &'a str)],
    /// Keys and values of the set flags. The flag of a key is its last name: `--data-dir` of `storage.data_dir`.
    pub flags: Vec<(String, String)>,
    /// Keys that a layer must not set both.
    pub exclusive: &'a [Exclusion<'a>],
    /// The ranges of numbers, as errors about their types name them.
    pub range: Option<RangeOf>,
}

/// The environment of the process. Variables that are not Unicode cannot belong to Trestle and are omitted. An empty
/// one is the same as one that is not set, as OpenTelemetry defines it for its own: templates of containers leave out
/// a value so.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
pub fn environment() -> HashMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let is_set = |(_, value): &(String, String)| !value.is_empty();
    env::vars_os().filter_map(text).filter(is_set).collect()
}

/// Settings from their defaults and the layers above.
///
/// # Errors
/// Every kind of [`ConfigError`] but the last, which the caller checks.
pub fn load<T>(defaults: &T, sources: Sources<'_>) -> Result<T, ConfigError>
where
    T: Serialize + DeserializeOwned,
{
    let (defaults, range) = (defaults_of(defaults)?, sources.range);
    let builder = Config::builder().add_source(defaults.clone());
    decode(&defaults, range, layers_of(builder, sources)?)
}

/// Single settings as texts, without their defaults. Nothing else is decoded or checked: for a process other than the
/// one that the settings are for, which may have flags of its own.
///
/// # Errors
/// A file that cannot be read or is malformed, a value that is not a text.
pub fn texts<const N: usize>(
    keys: [&str; N],
    sources: Sources<'_>,
) -> Result<[Option<String>; N], ConfigError> {
    let layers = layers_of(Config::builder(), sources)?.build().map_err(malformed)?;
    let mut found = [const { None }; N];
    for (slot, key) in found.iter_mut().zip(keys) {
        *slot = match layers.get_string(key) {
            Err(config::ConfigError::NotFound(_)) => None,
            text => Some(text.map_err(malformed)?),
        };
    }
    Ok(found)
}

/// The layers above what `builder` has.
fn layers_of(mut builder: Builder, sources: Sources<'_>) -> Result<Builder, ConfigError> {
    let mut foreign = Config::builder();
    for (variable, key) in sources.foreign {
        let value = sources.environment.get(*variable).cloned();
        foreign = foreign.set_override_option(*key, value).map_err(malformed)?;
    }
    builder = builder.add_source(foreign.build().map_err(malformed)?);
    let mut problems = repeated_variables(&sources.environment);
    let mut layers = Vec::new();
    if let Some(path) = sources.file {
        layers.push(built(Config::builder().add_source(file(path)?))?);
    }
    layers.push(built(Config::builder().add_source(variables_of(sources.environment)))?);
    layers.push(built(flags_of(Config::builder(), sources.flags)?)?);
    problems.extend(contradictions(sources.exclusive, &layers.iter().collect::<Vec<_>>()));
    if !problems.is_empty() {
        return Err(ConfigError::Invalid { problems });
    }
    for mut values in layers {
        resolve_layers(sources.exclusive, &mut values);
        builder = builder.add_source(layer(values));
    }
    Ok(builder)
}

/// The values of a layer.
fn built(layer: Builder) -> Result<Value, ConfigError> {
    layer.build().map(|layer| layer.cache).map_err(malformed)
}

/// A layer with these values.
fn layer(values: Value) -> Config {
    let mut layer = Config::default();
    layer.cache = values;
    layer
}

fn malformed(error: config::ConfigError) -> ConfigError {
    ConfigError::Malformed(redacted(error))
}

fn defaults_of(defaults: &impl Serialize) -> Result<Config, ConfigError> {
    Config::try_from(defaults).map_err(malformed)
}

/// The variables of Trestle, as texts, which every type parses: a number of an inferred type may have fewer digits.
fn variables_of(environment: HashMap<String, String>) -> Environment {
    Environment::with_prefix(PREFIX)
        .prefix_separator(SEPARATOR)
        .separator(SEPARATOR)
        .source(Some(environment))
}

/// The mistakes of variables that differ in case only: they set the same key, and their order is random.
fn repeated_variables(environment: &HashMap<String, String>) -> Vec<String> {
    let prefix = format!("{PREFIX}{SEPARATOR}");
    let mut by_key: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in environment.keys() {
        let upper = name.to_ascii_uppercase();
        if upper.starts_with(&prefix) {
            by_key.entry(upper).or_default().push(name);
        }
    }
    let repeated = by_key.into_values().filter(|names| names.len() > 1);
    let problem = |mut names: Vec<&str>| {
        names.sort_unstable();
        format!("{}: set the same key, remove all but one", names.join(" and "))
    };
    repeated.map(problem).collect()
}

fn flags_of(mut builder: Builder, flags: Vec<(String, String)>) -> Result<Builder, ConfigError> {
    for (key, value) in flags {
        builder = builder.set_override(key, Value::from(value)).map_err(malformed)?;
    }
    Ok(builder)
}

/// Settings from their layers.
fn decode<T: DeserializeOwned>(
    defaults: &Config,
    range: Option<RangeOf>,
    layers: Builder,
) -> Result<T, ConfigError> {
    let mut layered = layers.build().map_err(malformed)?;
    read_sizes("", Some(&defaults.cache), &mut layered.cache);
    let mut numbers = WholeNumbers::new(range);
    numbers.check("", Some(&defaults.cache), &layered.cache);
    let mut keys = Vec::new();
    let unknown = |path: serde_ignored::Path<'_>| keys.push(path.to_string());
    let settings = serde_ignored::deserialize(Sections(layered), unknown);
    // The number of an unknown key is not checked.
    if settings.is_ok() && !keys.is_empty() {
        return Err(ConfigError::UnknownKeys { keys });
    }
    if !numbers.problems.is_empty() {
        return Err(ConfigError::Malformed(numbers.problems.join("; ")));
    }
    settings.map_err(malformed)
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
        D::Error::custom(format!("must be {words}{}", shown("", &text)))
    })
}

/// The file, read separately so that a missing file differs from a malformed one.
fn file(path: &Path) -> Result<File<config::FileSourceString, FileFormat>, ConfigError> {
    let text = quote_numbers(&read(path)?);
    if let Err(error) = toml::from_str::<toml::Table>(&text) {
        // Not the whole error: it repeats the line, which may contain a key.
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let rule = in_words(&error, &text);
        let message = format!("{}: line {line}: {rule}", path.display());
        return Err(ConfigError::Malformed(message));
    }
    Ok(File::from_str(&text, FileFormat::Toml))
}

fn read(path: &Path) -> Result<String, ConfigError> {
    let error = |source| ConfigError::File { path: path.to_owned(), source };
    let bytes = small_file::read(path).map_err(|source| error(source.into()))?;
    String::from_utf8(bytes).map_err(|malformed| {
        let valid = malformed.utf8_error().valid_up_to();
        let line =
            malformed.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count() + 1;
        error(format!("must be text in UTF-8: line=`{line}`, byte=`{valid}`").into())
    })
}

/// Settings as TOML that [`load`] reads back. Keys without a value are omitted.
///
/// # Errors
/// Settings that TOML cannot represent.
pub fn print<T: Serialize>(settings: &T) -> Result<String, ConfigError> {
    toml::to_string_pretty(settings).map_err(|error| ConfigError::Malformed(error.to_string()))
}
