//! Tokens that a user delegation key signs: a key that a user with a bearer token requests, for a week at most.
//!
//! The key is derived from a key of the account and from everything about it: account, issuer, user, times,
//! service, version, and the role of the user. Nothing is stored, and no field can be changed. A token does not contain
//! the role: it is the one whose derivation made the signature.

use std::fmt;

use super::{Malformed, ResourceScope, Scope, Time, Version, fields::Fields, scope::must_sign};
use crate::{
    account::{Account, Signature, matches_any},
    bearer::Role,
    spec::{DelegationForm, ServiceSpec},
};
use trestle_model::fault::quoted;

/// Since this version headers and parameters of the request are signed too. A token here has none.
const SIGNS_REQUESTS: &str = "2026-04-06";
/// The field that follows them.
const AFTER_REQUESTS: &str = "rscc";
/// The fields that restrict a token in a way that this server does not enforce, and why.
const REFUSED: [(&str, &str); 5] = [
    ("suoid", "blobs have no permissions of single users"),
    ("skdutid", "a key is for the user of its bearer token only"),
    ("sduoid", "a token cannot be bound to the bearer token of another user"),
    ("srh", "a token cannot be bound to headers of the request"),
    ("srq", "a token cannot be bound to parameters of the request"),
];

/// What a token contains about the user delegation key that signs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegation {
    /// The key.
    pub key: DelegationTerms,
    /// The user for whom the token was made (`saoid`); empty where none is stated. Signed, and not checked.
    pub authorized_user: String,
    /// An id to find the token by (`scid`); may be empty. Signed, and not checked.
    pub correlation_id: String,
}

/// The terms of a user delegation key, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegationTerms {
    /// The user (`skoid`): the claim `oid` of its bearer token, or without it `sub`.
    pub user: String,
    /// The issuer of that token (`sktid`): its claim `iss`.
    pub issuer: String,
    /// The time from which it is valid (`skt`).
    pub start: Time,
    /// The time from which it is not valid (`ske`).
    pub expiry: Time,
    /// The letter of the service whose tokens it signs (`sks`).
    pub service: String,
    /// The version of the request for it (`skv`).
    pub version: Version,
}

/// The value of a user delegation key: a secret, which is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct DelegationValue(Signature);

impl DelegationValue {
    /// The bytes of the key.
    #[must_use]
    pub fn reveal(&self) -> &Signature {
        &self.0
    }
}

impl fmt::Debug for DelegationValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DelegationValue(redacted)")
    }
}

impl DelegationTerms {
    /// The key with these terms for a user with this role, derived from the first key of the account; none where it has
    /// no key.
    #[must_use]
    pub fn value(&self, account: &Account, role: Role) -> Option<DelegationValue> {
        let derivation = self.derivation(account.name.as_str(), role);
        account.keys.first().map(|key| DelegationValue(key.delegated(&derivation)))
    }

    /// The role of the user whose key with these terms made `signature` of `text`; none where no key of the account
    /// derives it. Takes as long for an absent account.
    pub(super) fn role(
        &self,
        account: (&str, Option<&Account>),
        text: &str,
        signature: &Signature,
    ) -> Option<Role> {
        let (name, account) = account;
        Role::ALL.into_iter().find(|role| {
            let derivation = self.derivation(name, *role);
            matches_any(account, |key| key.delegated_verifies(&derivation, text, signature))
        })
    }

    /// What the key is derived from. Each value is on a line of its own, since control characters are rejected in
    /// tokens and claims. Times are points in time, however they are written.
    fn derivation(&self, account: &str, role: Role) -> String {
        let Self { user, issuer, start, expiry, service, version } = self;
        let (start, expiry) = (start.ticks().get(), expiry.ticks().get());
        format!("{account}\n{role}\n{issuer}\n{user}\n{start}\n{expiry}\n{service}\n{version}")
    }

    fn take(fields: &mut Fields, service: &ServiceSpec) -> Result<Self, Malformed> {
        let mut required = |field| {
            let value = fields.filled(field);
            value.ok_or_else(|| {
                Malformed::new(field, "required in a token that a user delegation key signs")
            })
        };
        let key = Self {
            user: required("skoid")?,
            issuer: required("sktid")?,
            start: Time::parse("skt", required("skt")?)?,
            expiry: Time::parse("ske", required("ske")?)?,
            service: required("sks")?,
            version: version(required("skv")?)?,
        };
        if key.service != service.letter.to_string() {
            let rule = format!("must be `{}`, the service of the token", service.letter);
            let rule = format!("{rule}: value=`{}`", quoted(&key.service));
            return Err(Malformed::new("sks", rule));
        }
        Ok(key)
    }

    fn fields(&self) -> [(&'static str, &str); 6] {
        [
            ("skoid", &self.user),
            ("sktid", &self.issuer),
            ("skt", self.start.as_str()),
            ("ske", self.expiry.as_str()),
            ("sks", &self.service),
            ("skv", self.version.as_str()),
        ]
    }
}

fn version(text: String) -> Result<Version, Malformed> {
    Version::parse(text).map_err(|malformed| Malformed { field: "skv", ..malformed })
}

impl Delegation {
    /// Takes the fields of the key from those of a token; none for a token that a key of the account signs.
    pub(super) fn take(
        fields: &mut Fields,
        scope: &Scope,
        version: &Version,
    ) -> Result<Option<Box<Self>>, Malformed> {
        if !fields.has("skoid") {
            return Ok(None);
        }
        let (service, form) = form(scope).ok_or_else(|| {
            let rule = "must be in a token of a container, a blob or a queue: a user delegation key signs no other";
            Malformed::new("skoid", rule)
        })?;
        must_sign(version, "skoid", form.since)?;
        if fields.filled("si").is_some() {
            let rule = "must not be in a token that a user delegation key signs";
            return Err(Malformed::new("si", rule));
        }
        for (field, why) in REFUSED {
            if fields.filled(field).is_some() {
                return Err(Malformed::new(field, format!("is not supported: {why}")));
            }
        }
        let mut optional = |field| {
            let value = fields.filled(field).unwrap_or_default();
            match form.fields.iter().find(|(name, _)| *name == field) {
                _ if value.is_empty() => Ok(value),
                None => Err(Malformed::new(field, "does not belong to such a token")),
                Some((_, since)) => must_sign(version, field, since).map(|()| value),
            }
        };
        let (authorized_user, correlation_id) = (optional("saoid")?, optional("scid")?);
        let key = DelegationTerms::take(fields, service)?;
        Ok(Some(Box::new(Self { key, authorized_user, correlation_id })))
    }

    /// The values that are signed instead of that of the stored access policy.
    pub(super) fn signed<'a>(
        &'a self,
        service: &ServiceSpec,
        version: &'a Version,
    ) -> impl Iterator<Item = &'a str> {
        let users = service.delegation.map(|form| form.fields).unwrap_or_default();
        let users = users.iter().filter(|(_, since)| version.since(since));
        let key = self.key.fields().into_iter().map(|(_, value)| value);
        key.chain(users.map(|(field, _)| match *field {
            "saoid" => self.authorized_user.as_str(),
            "scid" => self.correlation_id.as_str(),
            // A token that has one of the others is rejected.
            _ => "",
        }))
    }

    /// The lines of the request, which are empty, before that of `field`.
    pub(super) fn signed_before(field: &str, version: &Version) -> &'static [&'static str] {
        let is_signed = field == AFTER_REQUESTS && version.since(SIGNS_REQUESTS);
        if is_signed { &["", ""] } else { &[] }
    }

    /// The fields of a token.
    pub(super) fn query(&self) -> impl Iterator<Item = (&'static str, Option<&str>)> {
        let users = [("saoid", &self.authorized_user), ("scid", &self.correlation_id)];
        let users = users.into_iter().filter(|(_, value)| !value.is_empty());
        let key = self.key.fields().into_iter();
        key.chain(users.map(|(field, value)| (field, value.as_str())))
            .map(|(field, value)| (field, Some(value)))
    }
}

/// The service of a token that a user delegation key may sign, and the form of such tokens.
fn form(scope: &Scope) -> Option<(&'static ServiceSpec, DelegationForm)> {
    match scope {
        Scope::Resource(ResourceScope { service, .. }) => Some((service, service.delegation?)),
        Scope::Account { .. } => None,
    }
}
