//! `$select`: the properties of a response, including those that an entity lacks.

use std::collections::HashSet;

use trestle_proto::table::v1::PropertyMask;

/// A selection of properties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Select {
    /// As the client wrote it, percent-decoded.
    text: String,
    partition_key: bool,
    row_key: bool,
    timestamp: bool,
    /// The other names, each once, in the order of properties in entities.
    custom: Vec<String>,
}

impl Select {
    /// Parses the parameter; none if every property is selected.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let names: HashSet<&str> =
            text.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if names.is_empty() || names.contains("*") {
            return None;
        }
        let has = |name| names.contains(name);
        let system = |name: &str| matches!(name, "PartitionKey" | "RowKey" | "Timestamp");
        // No property has such a name; the metadata level determines members with it.
        let control = |name: &str| name.starts_with("odata.") || name.contains('@');
        let custom = names.iter().filter(|name| !system(name) && !control(name));
        let mut custom: Vec<String> = custom.map(|name| (*name).to_owned()).collect();
        custom.sort_unstable_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
        Some(Self {
            text: text.to_owned(),
            partition_key: has("PartitionKey"),
            row_key: has("RowKey"),
            timestamp: has("Timestamp"),
            custom,
        })
    }

    /// The same for the table service, which always returns keys and timestamp.
    pub(crate) fn mask(&self) -> PropertyMask {
        let mut paths = self.custom.clone();
        if paths.is_empty() {
            // An empty mask would mean every property; no property has this name.
            paths.push("PartitionKey".to_owned());
        }
        PropertyMask { paths }
    }

    /// As the client wrote it, percent-decoded.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the partition key, the row key and the timestamp are selected.
    pub(crate) fn system(&self) -> [bool; 3] {
        [self.partition_key, self.row_key, self.timestamp]
    }

    /// The other names, in the order of properties in entities.
    pub(crate) fn custom(&self) -> &[String] {
        &self.custom
    }
}

#[cfg(test)]
mod tests;
