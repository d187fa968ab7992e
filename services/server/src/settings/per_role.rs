//! Keys that a section has once for each role, such as `azure_table` and `azure_queue`: flattened
//! into the section, so that a role adds its keys without a field of its own.

use std::{collections::BTreeMap, fmt, marker::PhantomData, str::FromStr};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};
use trestle_runtime::config::shown;

/// How the keys of a setting are formed: the name of the role between two fixed parts.
pub trait RoleKey {
    /// The section, such as `server`.
    const SECTION: &'static str;
    /// Before the name of the role.
    const PREFIX: &'static str;
    /// After the name of the role.
    const SUFFIX: &'static str;

    /// The key of a role, without its section.
    #[must_use]
    fn key(role: &str) -> String {
        format!("{}{role}{}", Self::PREFIX, Self::SUFFIX)
    }

    /// The key of a role, with its section.
    #[must_use]
    fn full_key(role: &str) -> String {
        format!("{}.{}", Self::SECTION, Self::key(role))
    }
}

/// The values by role. A key of another form, and a value that cannot be parsed, is reported by
/// `unknown` and `problems`: the list of roles is not available
/// while a section is parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerRole<T> {
    values: BTreeMap<String, T>,
    malformed: Vec<String>,
    foreign: Vec<String>,
}

impl<T> Default for PerRole<T> {
    fn default() -> Self {
        Self { values: BTreeMap::new(), malformed: Vec::new(), foreign: Vec::new() }
    }
}

impl<T: RoleKey> PerRole<T> {
    /// The value of a role.
    #[must_use]
    pub fn get(&self, role: &str) -> Option<&T> {
        self.values.get(role)
    }

    /// Sets the value of a role.
    pub fn set(&mut self, role: &str, value: T) {
        self.values.insert(role.to_owned(), value);
    }

    /// The values that are set, by the name of the role.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.values.iter().map(|(role, value)| (role.as_str(), value))
    }

    /// Values that cannot be parsed, each with its key and the rule.
    pub(super) fn problems(&self) -> Vec<String> {
        self.malformed.clone()
    }

    /// Keys that belong to none of these roles.
    pub(super) fn unknown(&self, roles: &[&str]) -> Vec<String> {
        let foreign = self.foreign.iter().map(|key| format!("{}.{key}", T::SECTION));
        let others = self.values.keys().filter(|role| !roles.contains(&role.as_str()));
        foreign.chain(others.map(|role| T::full_key(role))).collect()
    }
}

impl<T: RoleKey + fmt::Display> Serialize for PerRole<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entry = |(role, value): (&String, &T)| (T::key(role), value.to_string());
        serializer.collect_map(self.values.iter().map(entry))
    }
}

impl<'de, T> Deserialize<'de> for PerRole<T>
where
    T: RoleKey + FromStr<Err: fmt::Display>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PerRoleVisitor(PhantomData))
    }
}

struct PerRoleVisitor<T>(PhantomData<T>);

impl<'de, T> Visitor<'de> for PerRoleVisitor<T>
where
    T: RoleKey + FromStr<Err: fmt::Display>,
{
    type Value = PerRole<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a section")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PerRole<T>, A::Error> {
        let mut read = PerRole::default();
        while let Some((key, ScalarText(text))) = map.next_entry::<String, ScalarText>()? {
            let role = key.strip_prefix(T::PREFIX).and_then(|role| role.strip_suffix(T::SUFFIX));
            match role.map(|role| (role, text.as_deref().unwrap_or_default().parse())) {
                Some((role, Ok(value))) => read.set(role, value),
                Some((role, Err(rule))) => {
                    let key = T::full_key(role);
                    let value = text.map_or_else(String::new, |text| shown(&key, &text));
                    read.malformed.push(format!("{key}: {rule}{value}"));
                }
                None => read.foreign.push(key),
            }
        }
        Ok(read)
    }
}

/// Any value, as text: numbers as they are written; none for a list or a section.
struct ScalarText(Option<String>);

impl<'de> Deserialize<'de> for ScalarText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Scalar {
            Text(String),
            Bool(bool),
            Whole(i64),
            Number(f64),
            Other(serde::de::IgnoredAny),
        }
        Ok(Self(match Scalar::deserialize(deserializer)? {
            Scalar::Text(text) => Some(text),
            Scalar::Bool(yes) => Some(yes.to_string()),
            Scalar::Whole(number) => Some(number.to_string()),
            Scalar::Number(number) => Some(number.to_string()),
            Scalar::Other(_) => None,
        }))
    }
}
