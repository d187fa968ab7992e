//! The terms of a token as text.

use crate::sas::{Check, Protocol, Scope, Terms};

/// Whether a check passes for every connection.
pub(super) fn is_free(check: Check, terms: &Terms) -> bool {
    match check {
        Check::Protocol => terms.protocol != Some(Protocol::Https),
        Check::Address => terms.addresses.is_none(),
        _ => false,
    }
}

pub(super) fn described(check: Check, terms: &Terms) -> String {
    match check {
        Check::Protocol if is_free(check, terms) => "over every connection".to_owned(),
        Check::Protocol => "over encrypted connections only".to_owned(),
        Check::Address => match &terms.addresses {
            Some(addresses) => format!("from {addresses} only"),
            None => "from every address".to_owned(),
        },
        _ => {
            let start = terms.start.as_ref().map_or("at once".to_owned(), |at| format!("at {at}"));
            let end = terms.expiry.as_ref();
            let end = end.map_or("when the policy ends".to_owned(), |at| format!("at {at}"));
            format!("begins {start}, ends {end}")
        }
    }
}

pub(super) fn stated(terms: &Terms) -> Vec<(&'static str, String)> {
    let mut stated = vec![("version", terms.version.to_string())];
    let mut add = |name, value: Option<String>| {
        stated.extend(value.filter(|value| !value.is_empty()).map(|value| (name, value)));
    };
    match &terms.scope {
        Scope::Account { services, resource_types, .. } => {
            add("services", Some(services.clone()));
            add("resource types", Some(resource_types.clone()));
        }
        Scope::Resource(scope) => {
            let bounds = (scope.service.describe)(&scope.fields);
            add(scope.service.name, Some(scope.name.clone()));
            add("range", Some(bounds.trim_start().to_owned()));
        }
    }
    add("permissions", Some(terms.permissions.clone()));
    add("start", terms.start.as_ref().map(ToString::to_string));
    add("expiry", terms.expiry.as_ref().map(ToString::to_string));
    add("policy", terms.policy.clone());
    if let Some(key) = terms.delegation.as_ref().map(|delegation| &delegation.key) {
        add("user", Some(key.user.clone()));
        add("issuer", Some(key.issuer.clone()));
        add("key start", Some(key.start.to_string()));
        add("key expiry", Some(key.expiry.to_string()));
    }
    add("addresses", terms.addresses.as_ref().map(ToString::to_string));
    add("protocol", terms.protocol.map(|protocol| protocol.as_str().to_owned()));
    stated
}
