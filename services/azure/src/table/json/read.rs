//! Bodies of requests: JSON in one pass, without a tree.

use std::borrow::Cow;

use serde::{
    Deserialize,
    de::{Deserializer, IgnoredAny, MapAccess, Visitor},
};
use serde_json::{error::Category, value::RawValue};
use trestle_model::edm::EdmType;
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_proto::table::v1::{Entity, Property};

use super::value::{self, JsonText};
use crate::table::path::Key;

/// Most members of an entity in JSON that have a value: far more than the 252 properties and the
/// system properties that it can have. Bounds what a body of a million members takes.
const MEMBERS_MAX: usize = 1100;
/// Most nulls of a body that are stored for validation; those after them are ignored, as any null
/// is in the end.
const NULLS_MAX: usize = 1100;
/// Most declared types. No client declares those of properties that it does not send.
const TYPES_MAX: usize = 32 * 1024;

/// The suffix of the member that declares the type of another one.
const TYPE_SUFFIX: &str = "@odata.type";
/// The member with the name of a new table.
const TABLE_NAME: &str = "TableName";

/// The entity in the body of a write. The key of the address overrides one in the body; without it
/// the body must have one.
///
/// Nulls become properties without a value, which are checked and dropped where data is stored.
///
/// # Errors
/// A body that is not one JSON object, values that do not match their types, repeated members, and
/// a missing key.
pub fn entity_of(body: &[u8], key: Option<Key>) -> Result<Entity, Fault> {
    let members = members_of(body)?;
    members.check_repeated()?;
    let mut entity = Entity::default();
    match key {
        Some(Key { partition_key, row_key }) => {
            entity.partition_key = partition_key;
            entity.row_key = row_key;
        }
        None => {
            members.check_key_types()?;
            entity.partition_key = members.key("PartitionKey")?;
            entity.row_key = members.key("RowKey")?;
        }
    }
    entity.properties = members.properties()?;
    Ok(entity)
}

/// The name in the body of Create Table; empty if absent.
///
/// # Errors
/// A body that is not one JSON object, a name that is not a string, and a repeated one.
pub(crate) fn table_name_of(body: &[u8]) -> Result<String, Fault> {
    let members = members_of(body)?;
    let mut names = members.custom.iter().filter(|(name, _)| name == TABLE_NAME);
    let name = names.next().filter(|(_, value)| !is_null(value));
    if names.next().is_some() {
        return Err(twice(TABLE_NAME));
    }
    name.map_or_else(|| Ok(String::new()), |(name, value)| text_of(name, value))
}

/// The members of the JSON object of a body.
fn members_of(body: &[u8]) -> Result<Members<'_>, Fault> {
    let members: Members<'_> = parse(body)?;
    if members.are_too_many() {
        let rule = format!("entity has more than {MEMBERS_MAX} members");
        return Err(Fault::violation(Reason::TooManyProperties, "body", rule));
    }
    Ok(members)
}

/// One JSON value, and nothing after it.
fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Fault> {
    let text = str::from_utf8(body).map_err(|_| malformed("not UTF-8"))?;
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    serde_json::from_str(text).map_err(|error| {
        let at = format!("at line {}, column {}", error.line(), error.column());
        malformed(&match error.classify() {
            Category::Eof => format!("it ends too early, {at}"),
            Category::Data => format!("it has another JSON value {at}"),
            Category::Syntax | Category::Io => format!("malformed JSON {at}"),
        })
    })
}

fn malformed(rule: &str) -> Fault {
    Fault::violation(Reason::InvalidInput, "body", format!("not a JSON object: {rule}"))
}

/// The members of an entity, by what they mean.
#[derive(Default)]
struct Members<'a> {
    /// Keys and timestamp.
    system: Vec<(Cow<'a, str>, &'a RawValue)>,
    /// Names of other members, with their declared types.
    types: Vec<(Cow<'a, str>, &'a RawValue)>,
    /// The properties.
    custom: Vec<(Cow<'a, str>, &'a RawValue)>,
    /// How many of the system properties and the others have a value.
    valued: usize,
    /// How many of them are null.
    nulls: usize,
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Collect)
    }
}

struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut members = Members::default();
        while let Some(JsonText(name)) = map.next_key()? {
            members.add(name, map.next_value()?);
            if members.are_too_many() {
                // The rest must still be JSON, and none of it is stored.
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                break;
            }
        }
        Ok(members)
    }
}

impl<'a> Members<'a> {
    fn add(&mut self, name: Cow<'a, str>, value: &'a RawValue) {
        if let Some(of) = name.strip_suffix(TYPE_SUFFIX) {
            let of = match &name {
                // Borrowed from the body, not from the name.
                Cow::Borrowed(name) => Cow::Borrowed(name.get(..of.len()).unwrap_or_default()),
                Cow::Owned(_) => Cow::Owned(of.to_owned()),
            };
            self.types.push((of, value));
        } else if !name.starts_with("odata.") && !name.contains("@odata.") && self.count(value) {
            match &*name {
                "PartitionKey" | "RowKey" | "Timestamp" => self.system.push((name, value)),
                _ => self.custom.push((name, value)),
            }
        }
    }

    /// Counts a member; returns whether to store it.
    fn count(&mut self, value: &RawValue) -> bool {
        if is_null(value) {
            self.nulls += 1;
            return self.nulls <= NULLS_MAX;
        }
        self.valued += 1;
        true
    }

    fn are_too_many(&self) -> bool {
        self.valued > MEMBERS_MAX || self.types.len() > TYPES_MAX
    }

    /// The value of a key.
    fn key(&self, name: &str) -> Result<String, Fault> {
        let member = self.system.iter().find(|(own, _)| own == name);
        let Some((_, value)) = member.filter(|(_, value)| !is_null(value)) else {
            return Err(Fault::violation(Reason::PropertiesNeedValue, name, "required"));
        };
        text_of(name, value)
    }

    /// Rejects a repeated key or timestamp; the service does so for properties.
    fn check_repeated(&self) -> Result<(), Fault> {
        for (at, (name, _)) in self.system.iter().enumerate() {
            if self.system.iter().skip(at + 1).any(|(other, _)| other == name) {
                return Err(twice(name));
            }
        }
        Ok(())
    }

    /// Rejects a key with another type than that of every key. Where the address has the keys, those
    /// of the body are ignored, and so are their types: clients send those of their own values.
    fn check_key_types(&self) -> Result<(), Fault> {
        let of_keys = |(name, _): &&(Cow<'_, str>, _)| matches!(&**name, "PartitionKey" | "RowKey");
        for (name, annotation) in self.types.iter().filter(of_keys) {
            if !value::declared_type(annotation.get()).is_ok_and(|edm| edm == EdmType::String) {
                let annotation = quoted(annotation.get().trim_matches('"'));
                let rule = format!("must be of Edm.String, as every key is: type=`{annotation}`");
                return Err(Fault::violation(Reason::InvalidInput, &**name, rule));
            }
        }
        Ok(())
    }

    /// The properties with their types.
    fn properties(mut self) -> Result<Vec<Property>, Fault> {
        self.types.sort_by(|a, b| a.0.cmp(&b.0));
        let neighbours = self.types.iter().zip(self.types.iter().skip(1));
        if let Some((name, _)) = neighbours.filter(|(a, b)| a.0 == b.0).map(|(a, _)| a).next() {
            return Err(twice(name));
        }
        let types = &self.types;
        let property = |(name, value): (Cow<'a, str>, &RawValue)| {
            let at = types.binary_search_by(|(of, _)| of.cmp(&name)).ok();
            let annotation = at.and_then(|at| types.get(at)).map(|(_, edm)| edm.get());
            let value = value::parse(value.get(), annotation)
                .map_err(|rule| Fault::violation(Reason::InvalidInput, quoted(&name), rule))?;
            Ok(Property { name: name.into_owned(), value })
        };
        self.custom.into_iter().map(property).collect()
    }
}

fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

/// The text of a string member.
fn text_of(name: &str, value: &RawValue) -> Result<String, Fault> {
    let text: Result<JsonText<'_>, _> = serde_json::from_str(value.get());
    let rule = "must be text";
    let text = text.map_err(|_| Fault::violation(Reason::InvalidInput, name, rule))?;
    Ok(text.0.into_owned())
}

fn twice(name: &str) -> Fault {
    let rule = "member is specified twice";
    Fault::violation(Reason::DuplicatePropertiesSpecified, quoted(name), rule)
}
