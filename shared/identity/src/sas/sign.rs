//! The text that is signed: the terms of a token in the layout of its version.

use super::token::{BlobScope, Scope, Terms};
use crate::caller::KeyRange;

/// Since this version addresses and protocols are signed.
const SIGNS_PEERS: &str = "2015-04-05";
/// Since this version the resource begins with the name of its service.
const NAMES_SERVICE: &str = "2015-02-21";
/// Since this version a blob's response headers are signed.
const SIGNS_HEADERS: &str = "2013-08-15";
/// Since this version the kind of a blob resource and its snapshot are signed.
const SIGNS_KIND: &str = "2018-11-09";
/// Since this version the encryption scope is signed.
const SIGNS_ENCRYPTION: &str = "2020-12-06";

/// The text whose signature makes `terms` a token of `account`.
#[must_use]
pub fn string_to_sign(terms: &Terms, account: &str) -> String {
    let [start, expiry] =
        [&terms.start, &terms.expiry].map(|time| time.as_ref().map_or("", |time| time.as_str()));
    let addresses = terms.addresses.as_ref().map_or("", |addresses| addresses.as_str());
    let protocol = terms.protocol.map_or("", |protocol| protocol.as_str());
    let (permissions, version) = (terms.permissions.as_str(), &terms.version);
    if let Scope::Account { services, resource_types, encryption_scope } = &terms.scope {
        let mut lines = vec![account, permissions, services, resource_types, start, expiry];
        lines.extend([addresses, protocol, version.as_str()]);
        if version.since(SIGNS_ENCRYPTION) {
            lines.push(encryption_scope);
        }
        // A line break after the last line too, unlike below.
        lines.push("");
        return lines.join("\n");
    }
    let resource = resource(terms, account);
    let policy = terms.policy.as_deref().unwrap_or_default();
    let mut lines = vec![permissions, start, expiry, resource.as_str(), policy];
    if version.since(SIGNS_PEERS) {
        lines.extend([addresses, protocol]);
    }
    lines.push(version.as_str());
    match &terms.scope {
        Scope::Table { range, .. } => lines.extend(ends(range)),
        Scope::Blob(blob) => extend_with_blob(&mut lines, terms, blob),
        Scope::Queue { .. } | Scope::Account { .. } => {}
    }
    lines.join("\n")
}

/// The resource of a service signature. It contains the account once, whatever the style of the
/// request address.
fn resource(terms: &Terms, account: &str) -> String {
    let (service, path) = match &terms.scope {
        Scope::Table { name, .. } => ("table", name.to_ascii_lowercase()),
        Scope::Queue { name } => ("queue", name.clone()),
        Scope::Blob(blob) => ("blob", blob.path.clone()),
        Scope::Account { .. } => return String::new(),
    };
    if terms.version.since(NAMES_SERVICE) {
        format!("/{service}/{account}/{path}")
    } else {
        format!("/{account}/{path}")
    }
}

fn ends(range: &KeyRange) -> [&str; 4] {
    let ends = [
        &range.start_partition_key,
        &range.start_row_key,
        &range.end_partition_key,
        &range.end_row_key,
    ];
    ends.map(|end| end.as_deref().unwrap_or_default())
}

fn extend_with_blob<'a>(lines: &mut Vec<&'a str>, terms: &Terms, blob: &'a BlobScope) {
    if terms.version.since(SIGNS_KIND) {
        // The time of a snapshot would follow; tokens of snapshots are not created here.
        lines.extend([if blob.is_container { "c" } else { "b" }, ""]);
    }
    if terms.version.since(SIGNS_ENCRYPTION) {
        lines.push(&blob.encryption_scope);
    }
    if terms.version.since(SIGNS_HEADERS) {
        lines.extend(blob.headers.iter().map(String::as_str));
    }
}
