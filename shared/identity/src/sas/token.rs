//! The content of a token: its fields with their meaning, and the rules of their form.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    AddressRange, Malformed, Time, Version,
    fields::{self, Fields},
};
use crate::{
    account::Signature,
    caller::{KeyRange, Letters},
};
use trestle_service::{
    fault::{Violations, quoted},
    limits::ACCESS_POLICY_ID_CHARS_MAX,
    name::TableName,
};

/// Since this version addresses and protocols are signed, and account signatures exist.
const SIGNS_PEERS: &str = "2015-04-05";
/// Since this version the encryption scope is signed.
const SIGNS_ENCRYPTION: &str = "2020-12-06";
/// The response headers that a blob token may set, in the order in which they are signed.
const HEADERS: [&str; 5] = ["rscc", "rscd", "rsce", "rscl", "rsct"];

/// The terms of a token, which its signature covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Determines the signed text and its layout.
    pub version: Version,
    /// Letters, in the order in which they are signed; empty if the policy sets them.
    pub permissions: String,
    /// The start of its validity; none: valid at once.
    pub start: Option<Time>,
    /// Its expiry.
    pub expiry: Option<Time>,
    /// The stored access policy that sets the terms that are absent here.
    pub policy: Option<String>,
    /// The addresses that it is valid from; none: any address.
    pub addresses: Option<AddressRange>,
    /// The protocols that it is valid over; none: any protocol.
    pub protocol: Option<Protocol>,
    /// Its scope.
    pub scope: Scope,
}

/// The scope of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// A whole account.
    Account {
        /// Letters of `bqtf`.
        services: String,
        /// Letters of `sco`.
        resource_types: String,
        /// For blobs.
        encryption_scope: String,
    },
    /// Entities of one table.
    Table {
        /// The table, as the token spells it.
        name: String,
        /// The range of its entities.
        range: KeyRange,
    },
    /// The messages of one queue.
    Queue {
        /// The queue.
        name: String,
    },
    /// A container, or one blob.
    Blob(BlobScope),
}

/// A container, or one blob.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlobScope {
    /// `container` or `container/blob`.
    pub path: String,
    /// Whether it is the container with all its blobs.
    pub is_container: bool,
    /// The encryption scope.
    pub encryption_scope: String,
    /// Response headers: Cache-Control, Content-Disposition, -Encoding, -Language, -Type.
    pub headers: [String; 5],
}

/// The protocols that a token may be used over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Encrypted connections only.
    Https,
    /// All connections.
    HttpsAndHttp,
    /// The same in the order of one client of Microsoft, which signs it so.
    HttpAndHttps,
}

impl Protocol {
    fn parse(text: &str) -> Result<Self, Malformed> {
        match text {
            "https" => Ok(Self::Https),
            "https,http" => Ok(Self::HttpsAndHttp),
            "http,https" => Ok(Self::HttpAndHttps),
            other => {
                let value = quoted(other);
                let rule = format!("must be `https` or `https,http`: value=`{value}`");
                Err(Malformed::new("spr", rule))
            }
        }
    }

    /// The text, as it is signed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::HttpsAndHttp => "https,http",
            Self::HttpAndHttps => "http,https",
        }
    }
}

/// The resource of a token that does not contain it: the address of the call does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// A queue.
    Queue(String),
    /// A container, or a blob as `container/blob`.
    Blob(String),
}

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
    /// Reads a token of an account or a table, or of `resource`.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn parse(text: &str, resource: Option<Resource>) -> Result<Self, Malformed> {
        let mut fields = Fields::parse(text)?;
        let fields = &mut fields;
        let version = fields.take("sv").ok_or_else(|| Malformed::new("sv", "required"))?;
        let version = Version::parse(version)?;
        let signature = signature(fields)?;
        let scope = scope(fields, resource, &version)?;
        let time =
            |field, text: Option<String>| text.map(|text| Time::parse(field, text)).transpose();
        let terms = Terms {
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
            Scope::Table { name, range } => {
                query.extend([
                    ("tn", Some(name.as_str())),
                    ("spk", range.start_partition_key.as_deref()),
                    ("srk", range.start_row_key.as_deref()),
                    ("epk", range.end_partition_key.as_deref()),
                    ("erk", range.end_row_key.as_deref()),
                ]);
            }
            Scope::Queue { .. } => {}
            Scope::Blob(blob) => {
                query.push(("sr", Some(if blob.is_container { "c" } else { "b" })));
                query.push(("ses", filled(&blob.encryption_scope)));
                let headers = blob.headers.iter().map(|value| filled(value));
                query.extend(HEADERS.into_iter().zip(headers));
            }
        }
        query.extend([
            ("sp", filled(&terms.permissions)),
            ("st", terms.start.as_ref().map(Time::as_str)),
            ("se", terms.expiry.as_ref().map(Time::as_str)),
            ("si", terms.policy.as_deref()),
            ("sip", terms.addresses.as_ref().map(AddressRange::as_str)),
            ("spr", terms.protocol.map(Protocol::as_str)),
            ("sig", Some(&signature)),
        ]);
        fields::write(query)
    }
}

fn filled(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}

impl Terms {
    /// The letters of the permissions.
    #[must_use]
    pub fn letters(&self) -> Letters {
        Letters::parse(&self.permissions).unwrap_or_default()
    }

    /// Checks the rules between fields.
    ///
    /// # Errors
    /// The first rule that they break.
    fn check(&self) -> Result<(), Malformed> {
        let fails = |field, rule: &str| Err(Malformed::new(field, rule));
        let is_of_account = matches!(self.scope, Scope::Account { .. });
        if !self.version.since(SIGNS_PEERS) {
            // Older signatures do not cover them: the holder of the token could remove them.
            let rule = "needs sv 2015-04-05 or newer";
            if is_of_account {
                return fails("sv", "must be 2015-04-05 or newer for a token of an account");
            } else if self.addresses.is_some() {
                return fails("sip", rule);
            } else if self.protocol.is_some() {
                return fails("spr", rule);
            }
        }
        if self.policy.is_none() && self.expiry.is_none() {
            return fails("se", "required, unless a stored access policy (si) states it");
        }
        if self.policy.is_none() && self.permissions.is_empty() {
            return fails("sp", "required, unless a stored access policy (si) states it");
        }
        match &self.scope {
            Scope::Table { range, .. } => check_range(range),
            _ => Ok(()),
        }
    }
}

/// The rules of a key range. A signature cannot distinguish an empty field from an absent one: if
/// the two have different meanings, the empty one is rejected, or the holder could remove it for a
/// wider range.
fn check_range(range: &KeyRange) -> Result<(), Malformed> {
    let is_empty = |key: &Option<String>| key.as_ref().is_some_and(String::is_empty);
    let is_filled = |key: &Option<String>| key.as_ref().is_some_and(|key| !key.is_empty());
    let fails = |field, rule: &str| Err(Malformed::new(field, rule));
    if range.start_row_key.is_some() && range.start_partition_key.is_none() {
        fails("srk", "needs spk")
    } else if range.end_row_key.is_some() && range.end_partition_key.is_none() {
        fails("erk", "needs epk")
    } else if is_empty(&range.end_row_key) {
        fails("erk", "must not be empty: its signature would be that of a token without it")
    } else if is_empty(&range.end_partition_key) && !is_filled(&range.end_row_key) {
        fails("epk", "must not be empty: its signature would be that of a token without it")
    } else {
        Ok(())
    }
}

fn signature(fields: &mut Fields) -> Result<Signature, Malformed> {
    let text = fields.take("sig").ok_or_else(|| Malformed::new("sig", "required"))?;
    let bytes = STANDARD.decode(text).ok();
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| {
        Malformed::new("sig", "must be base64 of 32 bytes, with + / = escaped as %2B %2F %3D")
    })
}

fn scope(
    fields: &mut Fields,
    resource: Option<Resource>,
    version: &Version,
) -> Result<Scope, Malformed> {
    if fields.has("ss") || fields.has("srt") {
        let services = letters(fields, "ss", "bqtf")?;
        let resource_types = letters(fields, "srt", "sco")?;
        let encryption_scope = encryption_scope(fields, version)?;
        return Ok(Scope::Account { services, resource_types, encryption_scope });
    }
    if let Some(name) = fields.take("tn") {
        let mut violations = Violations::default();
        if TableName::parse(name.clone(), "tn", &mut violations).is_none() {
            let rule = "must be the name of a table";
            return Err(Malformed::new("tn", format!("{rule}: value=`{}`", quoted(&name))));
        }
        // The empty key is the lowest one: as a start it bounds nothing, so it is read as absent,
        // which is how it is signed. Only with a row key it means the first partition.
        let start_row_key = fields.filled("srk");
        let bounds = |key: &String| !key.is_empty() || start_row_key.is_some();
        let range = KeyRange {
            start_partition_key: fields.take("spk").filter(bounds),
            start_row_key,
            end_partition_key: fields.take("epk"),
            end_row_key: fields.take("erk"),
        };
        return Ok(Scope::Table { name, range });
    }
    match resource {
        Some(Resource::Queue(name)) => Ok(Scope::Queue { name }),
        Some(Resource::Blob(mut path)) => {
            let is_container = match fields.take("sr").as_deref() {
                Some("c") => true,
                Some("b") => false,
                _ => return Err(Malformed::new("sr", "must be `c` or `b`")),
            };
            // It is signed for the container, whichever of its blobs a call uses.
            if is_container && let Some(end) = path.find('/') {
                path.truncate(end);
            }
            let encryption_scope = encryption_scope(fields, version)?;
            let headers = HEADERS.map(|name| fields.take(name).unwrap_or_default());
            Ok(Scope::Blob(BlobScope { path, is_container, encryption_scope, headers }))
        }
        None => {
            let rule = "must be of an account (ss and srt) or of a table (tn); one of a queue needs \
                        the name of the queue beside it";
            Err(Malformed::new("token", rule))
        }
    }
}

fn encryption_scope(fields: &mut Fields, version: &Version) -> Result<String, Malformed> {
    let scope = fields.filled("ses").unwrap_or_default();
    if scope.is_empty() || version.since(SIGNS_ENCRYPTION) {
        Ok(scope)
    } else {
        Err(Malformed::new("ses", "needs sv 2020-12-06 or newer"))
    }
}

/// A required field of letters out of `known`, without repetitions.
fn letters(
    fields: &mut Fields,
    field: &'static str,
    known: &'static str,
) -> Result<String, Malformed> {
    let text = fields.filled(field).ok_or_else(|| Malformed::new(field, "required"))?;
    if Letters::parse(&text).is_some() && text.chars().all(|letter| known.contains(letter)) {
        return Ok(text);
    }
    let rule = format!("must be letters of `{known}`, none twice: value=`{}`", quoted(&text));
    Err(Malformed::new(field, rule))
}

fn permissions(fields: &mut Fields, scope: &Scope) -> Result<String, Malformed> {
    if !fields.has("sp") {
        return Ok(String::new());
    }
    let known = scope.permissions();
    let text = letters(fields, "sp", known)?;
    let places = text.chars().map(|letter| known.find(letter));
    if matches!(scope, Scope::Table { .. }) && !places.is_sorted() {
        let rule = format!("must be in the order `{known}`: value=`{}`", quoted(&text));
        return Err(Malformed::new("sp", rule));
    }
    Ok(text)
}

impl Scope {
    /// The valid permissions, in the order in which clients write them.
    #[must_use]
    pub fn permissions(&self) -> &'static str {
        match self {
            Self::Account { .. } => "rwdxylacupfti",
            Self::Table { .. } => "raud",
            Self::Queue { .. } => "raup",
            Self::Blob(_) => "racwdxyltfmeopi",
        }
    }
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
