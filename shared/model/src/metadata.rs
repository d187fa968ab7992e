//! Metadata of queues, containers and blobs: names and values of the application.

use std::collections::HashMap;

use crate::{
    fault::{Reason, Violations, quoted},
    limits::METADATA_BYTES_MAX,
};

/// Metadata, sorted by name. Records every broken rule under `field`.
pub fn parse(
    metadata: HashMap<String, String>,
    field: &str,
    violations: &mut Violations,
) -> Vec<(String, String)> {
    let mut metadata: Vec<_> = metadata.into_iter().collect();
    metadata.sort();
    let bytes: usize = metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > METADATA_BYTES_MAX {
        let rule = format!("must have at most {METADATA_BYTES_MAX} bytes: bytes=`{bytes}`");
        violations.push(Reason::MetadataTooLarge, field, rule);
        return Vec::new();
    }
    for (index, (name, value)) in metadata.iter().enumerate() {
        let mut reject = |reason, rule: &str, value: &str| {
            let rule = format!("{rule}: value=`{}`", quoted(value));
            violations.push(reason, field, rule);
        };
        let is_start = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
        let mut bytes = name.bytes();
        let is_name = bytes.next().is_some_and(is_start)
            && bytes.all(|byte| is_start(byte) || byte.is_ascii_digit());
        if name.is_empty() {
            reject(Reason::EmptyMetadataKey, "names must not be empty", name);
        } else if !is_name {
            let rule = "names must be an ASCII letter or `_`, then those and digits";
            reject(Reason::InvalidMetadata, rule, name);
        }
        let is_same = |(other, _): &(String, String)| other.eq_ignore_ascii_case(name);
        if metadata.iter().take(index).any(is_same) {
            reject(Reason::InvalidMetadata, "names must be unique whatever their case", name);
        }
        if !value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            reject(Reason::InvalidMetadata, "values must be printable ASCII", value);
        }
    }
    metadata
}
