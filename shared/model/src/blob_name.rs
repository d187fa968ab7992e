//! The names of containers and blobs: parsed once at the boundary, valid everywhere inside.

use std::fmt;

use crate::{
    fault::{Reason, Violations, quoted},
    limits::{
        BLOB_NAME_CHARS_MAX, BLOB_NAME_SEGMENTS_MAX, CONTAINER_NAME_CHARS_MAX,
        CONTAINER_NAME_CHARS_MIN,
    },
    name::broken_label_rule,
};

/// Containers whose names break the rule, by their meaning in Azure.
const SYSTEM_CONTAINERS: [&str; 3] = ["$root", "$logs", "$web"];

/// The name of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerName(String);

impl ContainerName {
    /// Parses a container name: 3 to 63 lower-case ASCII letters, digits and `-`; a letter or digit at both ends, no
    /// two `-` in a row; or that of a system container. Records every broken rule under `field`.
    pub fn parse(name: String, field: &str, violations: &mut Violations) -> Option<Self> {
        if name.is_empty() {
            let rule = "required: the name of a container";
            violations.push(Reason::PropertiesNeedValue, field, rule);
            return None;
        }
        if SYSTEM_CONTAINERS.contains(&name.as_str()) {
            return Some(Self(name));
        }
        match broken_label_rule(&name, CONTAINER_NAME_CHARS_MIN..=CONTAINER_NAME_CHARS_MAX) {
            None => Some(Self(name)),
            Some((reason, rule)) => {
                violations.push(reason, field, rule);
                None
            }
        }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of a blob. It is data: nothing in it is a path, and it is never normalised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobName(String);

impl BlobName {
    /// Parses a blob name: 1 to 1,024 characters, at most 254 segments separated by `/`. Records every broken rule.
    pub fn parse(name: String, violations: &mut Violations) -> Option<Self> {
        let rule = if name.is_empty() {
            "required: the name of a blob"
        } else if name.chars().count() > BLOB_NAME_CHARS_MAX {
            "must have at most 1,024 characters"
        } else if name.split('/').count() > BLOB_NAME_SEGMENTS_MAX {
            "must have at most 254 segments separated by `/`"
        } else {
            return Some(Self(name));
        };
        let rule = format!("{rule}: value=`{}`", quoted(&name));
        violations.push(Reason::InvalidUri, "blob", rule);
        None
    }

    /// A name from a stored key.
    #[must_use]
    pub fn stored(name: String) -> Self {
        Self(name)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
