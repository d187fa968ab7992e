//! Every mistake in a configuration at once, each with its place.
//!
//! Decoding stops at the first malformed value, so each setting is decoded by itself on top of the defaults. Rules over
//! several settings are checked on what is well-formed.

use std::{collections::HashMap, path::Path};

use config::{Config, Map, Value, ValueKind};
use serde::{Serialize, de::DeserializeOwned};
use toml::de::{DeTable, DeValue};

use super::{ConfigError, PREFIX, SEPARATOR, Sources, decode, defaults_of, flags_of, variables_of};

/// A layer of settings above the defaults.
struct Layer {
    values: Value,
    /// The place of a key.
    place: Box<dyn Fn(&str) -> String>,
}

/// Every mistake in the layers above the defaults, each with its file and line, variable or flag. `rules` returns the
/// problems of settings that are well-formed, each with its key first.
///
/// # Errors
/// A file that cannot be read.
pub fn mistakes<T>(
    defaults: &T,
    sources: Sources<'_>,
    rules: impl FnOnce(&T) -> Vec<String>,
) -> Result<Vec<String>, ConfigError>
where
    T: Serialize + DeserializeOwned,
{
    let defaults = defaults_of(defaults)?;
    let (layers, mut mistakes) = layers(sources)?;
    let mut valid = Config::builder().add_source(defaults.clone());
    let mut places = HashMap::new();
    for layer in &layers {
        for (key, value) in units("", &defaults.cache, &layer.values) {
            let place = (layer.place)(&key);
            let one = nested(&key, value);
            match decode::<T>(
                &defaults,
                Config::builder().add_source(defaults.clone()).add_source(one.clone()),
            ) {
                Ok(_) => {
                    places.insert(key, place);
                    valid = valid.add_source(one);
                }
                Err(ConfigError::UnknownKeys { keys }) => {
                    mistakes.extend(keys.iter().map(|key| format!("{place}: {key}: unknown key")));
                }
                Err(ConfigError::Malformed(text)) => mistakes.push(format!("{place}: {text}")),
                Err(other) => mistakes.push(format!("{place}: {other}")),
            }
        }
    }
    let settings = decode::<T>(&defaults, valid)?;
    for problem in rules(&settings) {
        let key = problem.split(": ").next().unwrap_or_default();
        let place = places.iter().find(|(unit, _)| key == *unit || within(key, unit));
        mistakes.push(match place {
            Some((_, place)) => format!("{place}: {problem}"),
            None => problem,
        });
    }
    Ok(mistakes)
}

fn within(key: &str, unit: &str) -> bool {
    key.strip_prefix(unit).is_some_and(|rest| rest.starts_with('.'))
}

/// The layers, and the mistakes in the syntax of the file.
fn layers(sources: Sources<'_>) -> Result<(Vec<Layer>, Vec<String>), ConfigError> {
    let (mut layers, mut mistakes) = (Vec::new(), Vec::new());
    if let Some(path) = sources.file {
        let text = super::read(path)?;
        let (table, errors) = DeTable::parse_recoverable(&text);
        for error in &errors {
            let at = error.span().map_or(0, |span| span.start);
            mistakes.push(format!("{}: {}", place_of(path, &text, at), error.message()));
        }
        // What follows a mistake in the syntax may be read wrongly.
        if errors.is_empty() {
            let lines = lines("", table.get_ref());
            let lines: HashMap<_, _> =
                lines.into_iter().map(|(key, at)| (key, place_of(path, &text, at))).collect();
            let file = path.display().to_string();
            let place = move |key: &str| lines.get(key).unwrap_or(&file).clone();
            let values = super::file(path)?;
            let values = Config::builder().add_source(values).build();
            layers.push(Layer { values: cache(values)?, place: Box::new(place) });
        }
    }
    let values = Config::builder().add_source(variables_of(sources.environment)).build();
    let variable = |key: &str| {
        let name = key.to_ascii_uppercase().replace('.', SEPARATOR);
        format!("{PREFIX}{SEPARATOR}{name}")
    };
    layers.push(Layer { values: cache(values)?, place: Box::new(variable) });
    let values = flags_of(Config::builder(), sources.flags)?.build();
    layers.push(Layer { values: cache(values)?, place: Box::new(|_| "flag".to_owned()) });
    Ok((layers, mistakes))
}

fn cache(config: Result<Config, config::ConfigError>) -> Result<Value, ConfigError> {
    config.map(|config| config.cache).map_err(super::malformed)
}

fn place_of(path: &Path, text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or_default();
    format!("{}:{}", path.display(), before.matches('\n').count() + 1)
}

/// The byte at which each key of a file is written.
fn lines(prefix: &str, table: &DeTable<'_>) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (name, value) in table {
        let key = joined(prefix, name.get_ref());
        if let DeValue::Table(inner) = value.get_ref() {
            found.extend(lines(&key, inner));
        }
        found.push((key, name.span().start));
    }
    found
}

/// The settings of a layer by key: what the defaults have no table for is one setting.
fn units(prefix: &str, defaults: &Value, values: &Value) -> Vec<(String, Value)> {
    let ValueKind::Table(values) = &values.kind else { return Vec::new() };
    let mut found = Vec::new();
    let mut names: Vec<_> = values.iter().collect();
    names.sort_by_key(|(name, _)| *name);
    for (name, value) in names {
        let key = joined(prefix, name);
        let default = match &defaults.kind {
            ValueKind::Table(defaults) => defaults.get(name),
            _ => None,
        };
        match default {
            Some(default) if is_table(default) && is_table(value) => {
                found.extend(units(&key, default, value));
            }
            _ => found.push((key, value.clone())),
        }
    }
    found
}

fn is_table(value: &Value) -> bool {
    matches!(value.kind, ValueKind::Table(_))
}

fn joined(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

/// A configuration with one setting.
fn nested(key: &str, value: Value) -> Config {
    let tables = key.rsplit('.').fold(value, |value, name| {
        let table = Map::from_iter([(name.to_owned(), value)]);
        Value::new(None, ValueKind::Table(table))
    });
    let mut config = Config::default();
    config.cache = tables;
    config
}
