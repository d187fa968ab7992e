//! Entities: a two-part key and typed properties, validated once.
//!
//! An [`Entity`] obeys every rule of the data model: legal keys and names, no null, no duplicate,
//! properties in ordinal (UTF-16) order of their names. The outcome of a merge may exceed the
//! limits of a whole entity; check it with [`Entity::check_limits`]. Timestamps and etags are not
//! part of it: they are assigned when it is stored.

mod name;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;

use std::{cmp::Ordering, fmt};

use trestle_filter::shown;
use trestle_kv::order::compare_text;
use trestle_model::fault::{Reason, Violations, property_path, quoted};
use trestle_model::limits;
use trestle_proto::table::v1 as proto;

use crate::value::{RuleBroken, Value, utf16_len};

/// The key of an entity within its table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EntityKey {
    /// Groups entities that are stored together; may be empty.
    pub partition_key: String,
    /// Identifies the entity within its partition; may be empty.
    pub row_key: String,
}

impl EntityKey {
    /// Parses a key. `field_prefix` precedes the names of its fields in violations, such as
    /// `entity.`; it may be empty. None when a rule is broken; `violations` then has every one.
    pub fn parse(
        partition_key: String,
        row_key: String,
        field_prefix: &str,
        violations: &mut Violations,
    ) -> Option<Self> {
        let mut legal = true;
        for (key, field) in [(&partition_key, "partition_key"), (&row_key, "row_key")] {
            if let Err((reason, text)) = check_key(key) {
                violations.push(reason, format!("{field_prefix}{field}"), text);
                legal = false;
            }
        }
        legal.then_some(Self { partition_key, row_key })
    }
}

/// Keys, in the order in which entities are stored and returned.
impl Ord for EntityKey {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_text(&self.partition_key, &other.partition_key)
            .then_with(|| compare_text(&self.row_key, &other.row_key))
    }
}

impl PartialOrd for EntityKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn check_key(key: &str) -> Result<(), (Reason, String)> {
    let (units, max) = (utf16_len(key), limits::KEY_UTF16_UNITS_MAX);
    if units > max {
        let text = format!("key is too long: utf16_units=`{units}`, max=`{max}`");
        return Err((Reason::PropertyValueTooLarge, text));
    }
    // `char::is_control` is exactly U+0000 to U+001F and U+007F to U+009F.
    let forbidden = |c: &char| c.is_control() || matches!(c, '/' | '\\' | '#' | '?');
    match key.chars().find(forbidden) {
        None => Ok(()),
        Some(c) => {
            let text = format!("key contains a forbidden character: character=`{}`", shown(c));
            Err((Reason::OutOfRangeInput, text))
        }
    }
}

/// An entity without its version.
#[derive(Debug, Clone, PartialEq)]
pub struct Entity {
    /// Its key.
    pub key: EntityKey,
    /// Names and values, in ordinal order of the names.
    pub properties: Vec<(String, Value)>,
}

impl Entity {
    /// Parses an entity of a request. `field` is its path in violations, such as `entity`.
    ///
    /// Null properties are dropped; the timestamp and the etag of the message are ignored.
    /// None when a rule is broken; `violations` then has every one.
    pub fn parse(entity: proto::Entity, field: &str, violations: &mut Violations) -> Option<Self> {
        let proto::Entity { partition_key, row_key, properties, .. } = entity;
        let prefix = format!("{field}.");
        let key = EntityKey::parse(partition_key, row_key, &prefix, violations);
        let properties = parse_properties(properties, field, violations);

        let entity = Self { key: key?, properties: properties? };
        entity.check_limits(field, violations).ok().map(|()| entity)
    }

    /// Bytes of the entity as Azure counts them.
    #[must_use]
    pub fn size(&self) -> usize {
        let key = utf16_len(&self.key.partition_key) + utf16_len(&self.key.row_key);
        let properties = self.properties.iter();
        let bytes = properties.map(|(name, value)| 8 + 2 * utf16_len(name) + value.size());
        4 + 2 * key + bytes.sum::<usize>()
    }

    /// Checks the limits of a whole entity: the count of its properties and its size.
    ///
    /// # Errors
    /// When one is exceeded; `violations` then lists it.
    pub fn check_limits(&self, field: &str, violations: &mut Violations) -> Result<(), RuleBroken> {
        let (count, count_max) = (self.properties.len(), limits::PROPERTIES_MAX);
        if count > count_max {
            let text =
                format!("entity has too many properties: count=`{count}`, max=`{count_max}`");
            violations.push(Reason::TooManyProperties, format!("{field}.properties"), text);
        }
        let (size, size_max) = (self.size(), limits::ENTITY_BYTES_MAX);
        if size > size_max {
            let text = format!("entity is larger than 1 MiB: bytes=`{size}`, max=`{size_max}`");
            violations.push(Reason::EntityTooLarge, field, text);
        }
        if count > count_max || size > size_max { Err(RuleBroken) } else { Ok(()) }
    }

    /// The stored entity with the properties of `update` added, or replacing its own.
    #[must_use]
    pub fn merge(stored: Self, update: Self) -> Self {
        let mut properties = Vec::with_capacity(stored.properties.len() + update.properties.len());
        let mut updates = update.properties.into_iter().peekable();
        for (name, value) in stored.properties {
            let before = |update: &(String, Value)| compare_text(&update.0, &name).is_lt();
            while let Some(earlier) = updates.next_if(before) {
                properties.push(earlier);
            }
            let same = updates.next_if(|update| update.0 == name);
            properties.push(same.unwrap_or((name, value)));
        }
        properties.extend(updates);
        Self { key: stored.key, properties }
    }
}

/// The path of a property, formatted only where a rule is broken.
struct PropertyPath<'a> {
    entity: &'a str,
    name: &'a str,
}

impl fmt::Display for PropertyPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.entity, property_path(self.name))
    }
}

/// Sorted by name; none when a rule is broken.
fn parse_properties(
    properties: Vec<proto::Property>,
    entity: &str,
    violations: &mut Violations,
) -> Option<Vec<(String, Value)>> {
    let mut legal = true;
    let mut parsed = Vec::with_capacity(properties.len());
    for proto::Property { name, value } in properties {
        let path = PropertyPath { entity, name: &name };
        if let Err((reason, text)) = name::check(&name) {
            violations.push(reason, path.to_string(), text);
            legal = false;
        }
        match Value::parse(value.unwrap_or_default(), &path, violations) {
            Ok(value) => parsed.push((name, value)),
            Err(RuleBroken) => legal = false,
        }
    }
    // Stable, so that of equal names the later one is reported. A null counts: it is named too.
    parsed.sort_by(|a, b| compare_text(&a.0, &b.0));
    for (earlier, later) in parsed.iter().zip(parsed.iter().skip(1)) {
        if earlier.0 == later.0 {
            let field = PropertyPath { entity, name: &later.0 }.to_string();
            let text = format!("property is specified twice: name=`{}`", quoted(&later.0));
            violations.push(Reason::DuplicatePropertiesSpecified, field, text);
            legal = false;
        }
    }
    let kept = parsed.into_iter().filter_map(|(name, value)| Some((name, value?)));
    legal.then(|| kept.collect())
}
