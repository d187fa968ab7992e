//! Every mistake in a configuration at once, each with its place.
//!
//! Decoding stops at the first malformed value, so each setting is decoded by itself on top of the defaults. Rules over
//! several settings are checked on what is well-formed.

use std::{collections::HashSet, error::Error as _, path::Path};

use config::{Config, File, FileFormat, Map, Value, ValueKind};
use serde::{Deserialize as _, Serialize, de::DeserializeOwned};
use toml::de::DeTable;

use super::{
    ConfigError, Sources, built,
    contradictions::{contradictions, resolve_layers},
    decode, defaults_of, flags_of, layer,
    places::{Places, flag_of, key_of, line_of, located, names_any, variable_of, within},
    quoted_numbers::quote_numbers,
    redacted::{in_words, is_duplicate},
    repeated_variables, variables_of,
};

/// A layer of settings above the defaults.
struct Layer {
    values: Value,
    places: Places,
}

/// Every mistake in the layers above the defaults, each with its file and line, variable or flag. `rules` returns the
/// problems of settings that are well-formed, each with its key first.
///
/// # Errors
/// Layers that cannot be decoded at all.
pub fn mistakes<T>(
    defaults: &T,
    sources: Sources<'_>,
    rules: impl FnOnce(&T) -> Vec<String>,
) -> Result<Vec<String>, ConfigError>
where
    T: Serialize + DeserializeOwned,
{
    let (defaults, file, range) = (defaults_of(defaults)?, sources.file, sources.range);
    let exclusive = sources.exclusive;
    let variables = repeated_variables(&sources.environment);
    let (mut layers, mut mistakes) = layers(sources)?;
    let values: Vec<_> = layers.iter().map(|layer| &layer.values).collect();
    let excluded = contradictions(exclusive, &values);
    layers.iter_mut().for_each(|layer| resolve_layers(exclusive, &mut layer.values));
    // What is missing in the other layers may be in the file.
    let is_file_unread = !mistakes.is_empty();
    mistakes.extend(variables);
    let mut valid = Config::builder().add_source(defaults.clone());
    let mut malformed = Vec::new();
    for layer in &layers {
        for (path, value) in units(&[], &defaults.cache, &layer.values) {
            let (one, key) = (nested(&path, value), path.join("."));
            let alone = Config::builder().add_source(defaults.clone()).add_source(one.clone());
            let found = match decode::<T>(&defaults, range, alone) {
                Ok(_) => {
                    valid = valid.add_source(one);
                    continue;
                }
                Err(ConfigError::UnknownKeys { keys }) => {
                    let unknown =
                        |key: &String| format!("{}: {key}: unknown key", layer.places.of(key));
                    keys.iter().map(unknown).collect()
                }
                Err(ConfigError::Malformed(text)) => {
                    let named = key_of(&text);
                    // A table in place of a value is split into units, and the mistake is that of the value.
                    let is_named = within(named, &key) || within(&key, named);
                    let known = if is_named { named } else { &key };
                    malformed.push(known.to_owned());
                    vec![format!("{}: {text}", layer.places.of(known))]
                }
                Err(other) => vec![format!("{}: {other}", layer.places.of(&key))],
            };
            mistakes.extend(found);
            let section = path.get(..path.len().saturating_sub(1)).unwrap_or_default();
            let named = nested(section, Value::new(None, ValueKind::Table(Map::new())));
            let alone = Config::builder().add_source(defaults.clone()).add_source(named.clone());
            // The rules for the name of a section apply whatever is in it.
            if !section.is_empty() && decode::<T>(&defaults, range, alone).is_ok() {
                valid = valid.add_source(named);
            }
        }
    }
    let settings = decode::<T>(&defaults, range, valid)?;
    let places: Vec<_> = layers.iter().map(|layer| &layer.places).collect();
    // A malformed value is missing in the settings, which is no mistake of its own, nor of a setting that needs it.
    let others = rules(&settings).into_iter().filter(|problem| {
        let is_set = places.iter().any(|places| places.has(key_of(problem)));
        !names_any(problem, &malformed) && (is_set || !is_file_unread)
    });
    mistakes.extend(others.chain(excluded).map(|problem| located(&problem, &places)));
    if let Some(file) = file {
        mistakes.sort_by_key(|mistake| line_in(file, mistake));
    }
    let mut known = HashSet::new();
    mistakes.retain(|mistake| known.insert(mistake.clone()));
    Ok(mistakes)
}

/// The line of the file that a mistake begins with; those of other layers follow the file.
fn line_in(file: &Path, mistake: &str) -> usize {
    let rest = mistake.strip_prefix(&format!("{}:", file.display()));
    let line = rest.and_then(|rest| rest.split(':').next()).map(str::parse);
    line.and_then(Result::ok).unwrap_or(usize::MAX)
}

/// The layer of the file, and its mistakes. It has no layer where it cannot be read, or has mistakes in its syntax
/// behind which the rest may be read wrongly; a key that is written twice hides nothing else.
fn file_layer(path: &Path) -> Result<(Option<Layer>, Vec<String>), ConfigError> {
    let text = match super::read(path) {
        Ok(text) => text,
        Err(error) => return Ok((None, vec![with_cause(&error)])),
    };
    let (table, errors) = DeTable::parse_recoverable(&text);
    let mistake = |error: &toml::de::Error| {
        let at = error.span().map_or(0, |span| span.start);
        format!("{}: {}", line_of(path, &text, at), in_words(error, &text))
    };
    let mistakes = errors.iter().map(mistake).collect();
    let places = Places::of_file(path, &text, table.get_ref());
    let readable = match errors.is_empty() {
        true => Some(quote_numbers(&text)),
        false if errors.iter().all(is_duplicate) => {
            let first_values = toml::Table::deserialize(toml::de::Deserializer::from(table));
            first_values.ok().map(|values| values.to_string())
        }
        false => None,
    };
    let Some(readable) = readable else { return Ok((None, mistakes)) };
    let values = File::from_str(&readable, FileFormat::Toml);
    let values = built(Config::builder().add_source(values))?;
    Ok((Some(Layer { values, places }), mistakes))
}

fn with_cause(error: &ConfigError) -> String {
    let cause = error.source().map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

/// The layers, and the mistakes of the file before its values are decoded.
fn layers(sources: Sources<'_>) -> Result<(Vec<Layer>, Vec<String>), ConfigError> {
    let (mut layers, mut mistakes) = (Vec::new(), Vec::new());
    for (variable, key) in sources.foreign {
        if let Some(value) = sources.environment.get(*variable) {
            let path: Vec<_> = key.split('.').map(str::to_owned).collect();
            let values = nested(&path, Value::from(value.clone())).cache;
            let place = |_: &str| (*variable).to_owned();
            layers.push(Layer { values, places: Places::of_keys(vec![(*key).to_owned()], place) });
        }
    }
    if let Some(path) = sources.file {
        let (layer, found) = file_layer(path)?;
        layers.extend(layer);
        mistakes = found;
    }
    let values = built(Config::builder().add_source(variables_of(sources.environment)))?;
    let places = Places::of_keys(keys("", &values), variable_of);
    layers.push(Layer { values, places });
    let values = built(flags_of(Config::builder(), sources.flags)?)?;
    let places = Places::of_keys(keys("", &values), flag_of);
    layers.push(Layer { values, places });
    Ok((layers, mistakes))
}

/// Every key of a layer, those of its tables included.
fn keys(prefix: &str, values: &Value) -> Vec<String> {
    let ValueKind::Table(values) = &values.kind else { return Vec::new() };
    let mut found = Vec::new();
    for (name, value) in values {
        let key = joined(prefix, name);
        found.extend(keys(&key, value));
        found.push(key);
    }
    found
}

/// The settings of a layer, each with the names of its key. A section is split into its settings, also where its name
/// is not in the defaults.
fn units(path: &[String], defaults: &Value, values: &Value) -> Vec<(Vec<String>, Value)> {
    let ValueKind::Table(values) = &values.kind else { return Vec::new() };
    let mut found = Vec::new();
    let mut names: Vec<_> = values.iter().collect();
    names.sort_by_key(|(name, _)| *name);
    let unnamed = Value::new(None, ValueKind::Table(Map::new()));
    for (name, value) in names {
        let path = [path, std::slice::from_ref(name)].concat();
        let default = match &defaults.kind {
            ValueKind::Table(defaults) => defaults.get(name).unwrap_or(&unnamed),
            _ => &unnamed,
        };
        let is_empty = matches!(&value.kind, ValueKind::Table(values) if values.is_empty());
        if is_table(default) && is_table(value) && !is_empty {
            found.extend(units(&path, default, value));
        } else {
            found.push((path, value.clone()));
        }
    }
    found
}

fn is_table(value: &Value) -> bool {
    matches!(value.kind, ValueKind::Table(_))
}

pub(super) fn joined(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

/// A configuration with one setting.
fn nested(path: &[String], value: Value) -> Config {
    let tables = path.iter().rev().fold(value, |value, name| {
        let table = Map::from_iter([(name.clone(), value)]);
        Value::new(None, ValueKind::Table(table))
    });
    layer(tables)
}
