//! Values by the names of their fields: the fields of a token, and the bounds of a grant.

use std::{borrow::Cow, collections::BTreeMap};

/// Values by the names of their fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FieldValues(BTreeMap<Cow<'static, str>, String>);

impl FieldValues {
    /// The value of a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Sets the value of a field.
    pub fn set(&mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// Removes a field.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Retains the fields whose name and value pass `filter`.
    pub fn retain(&mut self, filter: impl Fn(&str, &str) -> bool) {
        self.0.retain(|name, value| filter(name, value));
    }

    /// The names with their values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (&**name, value.as_str()))
    }

    /// Whether no field has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: Into<Cow<'static, str>>, V: Into<String>> FromIterator<(N, V)> for FieldValues {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(values: I) -> Self {
        Self(values.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}
