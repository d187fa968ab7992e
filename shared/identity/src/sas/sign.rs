//! The text that is signed: the terms of a token in the layout of its version.

use super::{Delegation, ResourceScope, Scope, Terms};

/// Since this version addresses and protocols are signed.
const SIGNS_PEERS: &str = "2015-04-05";
/// Since this version the resource begins with the name of its service.
const NAMES_SERVICE: &str = "2015-02-21";
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
    let scope = match &terms.scope {
        Scope::Resource(scope) => scope,
        Scope::Account { services, resource_types, encryption_scope } => {
            let mut lines = vec![account, permissions, services, resource_types, start, expiry];
            lines.extend([addresses, protocol, version.as_str()]);
            if version.since(SIGNS_ENCRYPTION) {
                lines.push(encryption_scope);
            }
            // A line break after the last line too, unlike below.
            lines.push("");
            return lines.join("\n");
        }
    };
    let resource = resource(scope, terms, account);
    let mut lines = vec![permissions, start, expiry, resource.as_str()];
    match &terms.delegation {
        None => lines.push(terms.policy.as_deref().unwrap_or_default()),
        Some(delegation) => lines.extend(delegation.signed(scope.service, version)),
    }
    if version.since(SIGNS_PEERS) {
        lines.extend([addresses, protocol]);
    }
    lines.push(version.as_str());
    for (field, value) in scope.signed(version) {
        if terms.delegation.is_some() {
            lines.extend(Delegation::signed_before(field, version));
        }
        lines.push(value);
    }
    lines.join("\n")
}

/// The resource of a service signature. It contains the account once, for any style of the
/// request address.
fn resource(scope: &ResourceScope, terms: &Terms, account: &str) -> String {
    let (service, name) = (scope.service.name, scope.service.folded(&scope.name));
    if terms.version.since(NAMES_SERVICE) {
        format!("/{service}/{account}/{name}")
    } else {
        format!("/{account}/{name}")
    }
}
