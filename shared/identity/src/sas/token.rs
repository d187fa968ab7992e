//! The content of a token: its fields with their meaning, and the rules of their form.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    AddressRange, Delegation, Malformed, NamedResource, Protocol, Scope, Terms, Time, Version,
    fields::Fields, query::write,
};
use crate::{account::Signature, caller::Letters};
use trestle_model::{fault::quoted, limits::ACCESS_POLICY_ID_CHARS_MAX};

/// A token: terms and a signature that is still to be checked.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// Its terms.
    pub terms: Terms,
    pub(super) signature: Signature,
}

/// Prints the terms without the signature, which is the secret part.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("terms", &self.terms).finish_non_exhaustive()
    }
}

impl Token {
    /// Reads a token of an account, of a resource that it names, or of `resource`.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn parse(text: &str, resource: Option<NamedResource>) -> Result<Self, Malformed> {
        let service = resource.as_ref().map(|named| named.service);
        let mut fields = Fields::parse(text, service)?;
        let fields = &mut fields;
        let version = fields.take("sv").ok_or_else(|| Malformed::new("sv", "required"))?;
        let version = Version::parse(version)?;
        let signature = signature(fields)?;
        let scope = Scope::take(fields, resource, &version)?;
        let time =
            |field, text: Option<String>| text.map(|text| Time::parse(field, text)).transpose();
        let delegation = Delegation::take(fields, &scope, &version)?;
        let terms = Terms {
            delegation,
            permissions: permissions(fields, &scope)?,
            start: time("st", fields.filled("st"))?,
            expiry: time("se", fields.filled("se"))?,
            policy: if matches!(scope, Scope::Account { .. }) { None } else { policy(fields)? },
            addresses: fields.filled("sip").map(AddressRange::parse).transpose()?,
            protocol: fields.filled("spr").as_deref().map(Protocol::parse).transpose()?,
            version,
            scope,
        };
        if let Some(left) = fields.left() {
            return Err(Malformed::new(left, "does not belong to such a token"));
        }
        terms.check()?;
        Ok(Self { terms, signature })
    }

    /// The token as a query string, with its signature.
    #[must_use]
    pub fn to_query(&self) -> String {
        let terms = &self.terms;
        let signature = STANDARD.encode(self.signature);
        let mut query = vec![("sv", Some(terms.version.as_str()))];
        match &terms.scope {
            Scope::Account { services, resource_types, encryption_scope } => {
                query.extend([("ss", Some(services.as_str())), ("srt", Some(resource_types))]);
                query.push(("ses", filled(encryption_scope)));
            }
            Scope::Resource(scope) => query.extend(scope.query()),
        }
        query.extend([
            ("sp", filled(&terms.permissions)),
            ("st", terms.start.as_ref().map(Time::as_str)),
            ("se", terms.expiry.as_ref().map(Time::as_str)),
            ("si", terms.policy.as_deref()),
            ("sip", terms.addresses.as_ref().map(AddressRange::as_str)),
            ("spr", terms.protocol.map(Protocol::as_str)),
        ]);
        query.extend(terms.delegation.iter().flat_map(|delegation| delegation.query()));
        query.push(("sig", Some(&signature)));
        write(query)
    }
}

fn filled(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

fn signature(fields: &mut Fields) -> Result<Signature, Malformed> {
    let text = fields.take("sig").ok_or_else(|| Malformed::new("sig", "required"))?;
    let bytes = STANDARD.decode(text).ok();
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| {
        Malformed::new("sig", "must be base64 of 32 bytes, with + / = escaped as %2B %2F %3D")
    })
}

/// A required field of letters out of `allowed`, without repetitions.
pub(super) fn letters(
    fields: &mut Fields,
    field: &'static str,
    allowed: &str,
) -> Result<String, Malformed> {
    let text = fields.filled(field).ok_or_else(|| Malformed::new(field, "required"))?;
    if Letters::parse(&text).is_some() && text.chars().all(|letter| allowed.contains(letter)) {
        return Ok(text);
    }
    let rule = format!("must be letters of `{allowed}`, none twice: value=`{}`", quoted(&text));
    Err(Malformed::new(field, rule))
}

fn permissions(fields: &mut Fields, scope: &Scope) -> Result<String, Malformed> {
    if !fields.has("sp") {
        return Ok(String::new());
    }
    let allowed = scope.permissions();
    let text = letters(fields, "sp", &allowed)?;
    let is_ordered = matches!(scope, Scope::Resource(scope) if scope.service.orders_permissions);
    let positions = text.chars().map(|letter| allowed.find(letter));
    if is_ordered && !positions.is_sorted() {
        let rule = format!("must be in the order `{allowed}`: value=`{}`", quoted(&text));
        return Err(Malformed::new("sp", rule));
    }
    Ok(text)
}

fn policy(fields: &mut Fields) -> Result<Option<String>, Malformed> {
    let policy = fields.filled("si");
    let chars = policy.as_ref().map_or(0, |id| id.chars().count());
    if chars > ACCESS_POLICY_ID_CHARS_MAX {
        let rule = format!("must have at most {ACCESS_POLICY_ID_CHARS_MAX} characters");
        return Err(Malformed::new("si", format!("{rule}: characters=`{chars}`")));
    }
    Ok(policy)
}
