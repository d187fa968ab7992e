//! Documents of Azurite's databases as what they mean: entities, tables, queues, messages.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::value::RawValue;
use trestle_proto::service::v1::AccessPolicy;
use trestle_proto::table::v1::{Entity, value::Kind};
use trestle_service::clock::Ticks;

use crate::{
    datetime,
    edm::{self, EdmType},
    entity_json,
};

/// Years from here on stand for "never": Azurite writes the last moment of the year 9999.
const NEVER_FROM: i64 = 253_370_764_800;

/// An entity. Its keys stand beside its properties, and among them.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EntityDocument<'a> {
    partition_key: String,
    row_key: String,
    #[serde(borrow, rename = "properties")]
    properties: &'a RawValue,
}

/// Reads an entity.
///
/// # Errors
/// Which entity it is, as far as that can be told, and the rule it breaks.
pub(super) fn entity(json: &str, number: u64) -> Result<Entity, (String, String)> {
    let document: EntityDocument<'_> = serde_json::from_str(json)
        .map_err(|error| (format!("document {number}"), format!("is no entity: {error}")))?;
    let which =
        || format!("PartitionKey=`{}` RowKey=`{}`", document.partition_key, document.row_key);
    let properties = document.properties.get().as_bytes();
    let mut entity =
        entity_json::parse_by(properties, value).map_err(|error| (which(), error.to_string()))?;
    entity.partition_key = document.partition_key;
    entity.row_key = document.row_key;
    Ok(entity)
}

/// Values stand as on the wire, but for identifiers, whose text is encoded in base64 by newer
/// versions.
fn value(edm: EdmType, text: &str) -> Result<Kind, String> {
    if edm != EdmType::Guid || edm::is_guid(text) {
        return edm::parse_value(edm, text);
    }
    let decoded = STANDARD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    edm::parse_value(edm, decoded.as_deref().unwrap_or(text))
}

/// A table in the list of tables.
#[derive(Deserialize)]
pub(super) struct TableDocument {
    pub(super) account: String,
    pub(super) table: String,
    #[serde(default, rename = "tableAcl")]
    acl: Option<Vec<PolicyDocument>>,
}

impl TableDocument {
    /// Its stored access policies.
    ///
    /// # Errors
    /// The rule that one of them breaks.
    pub(super) fn policies(&mut self) -> Result<Vec<AccessPolicy>, String> {
        policies(self.acl.take())
    }
}

/// A queue in the list of queues.
#[derive(Deserialize)]
pub(super) struct QueueDocument {
    #[serde(rename = "accountName")]
    pub(super) account: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) metadata: Option<HashMap<String, String>>,
    #[serde(default, rename = "queueAcl")]
    acl: Option<Vec<PolicyDocument>>,
}

impl QueueDocument {
    /// Its stored access policies.
    ///
    /// # Errors
    /// The rule that one of them breaks.
    pub(super) fn policies(&mut self) -> Result<Vec<AccessPolicy>, String> {
        policies(self.acl.take())
    }
}

#[derive(Deserialize)]
struct PolicyDocument {
    id: String,
    #[serde(default, rename = "accessPolicy")]
    access: Option<AccessDocument>,
}

#[derive(Default, Deserialize)]
struct AccessDocument {
    #[serde(default)]
    start: Option<String>,
    #[serde(default)]
    expiry: Option<String>,
    #[serde(default)]
    permission: Option<String>,
}

fn policies(documents: Option<Vec<PolicyDocument>>) -> Result<Vec<AccessPolicy>, String> {
    documents.unwrap_or_default().into_iter().map(policy).collect()
}

fn policy(document: PolicyDocument) -> Result<AccessPolicy, String> {
    let AccessDocument { start, expiry, permission } = document.access.unwrap_or_default();
    let time = |text: Option<String>| {
        let text = text.filter(|text| !text.is_empty());
        text.map(|text| datetime::parse(&text).ok_or_else(|| format!("time `{text}`")))
            .transpose()
            .map_err(|what| format!("policy `{}`: {what}: {}", document.id, datetime::RULE))
    };
    let (start_time, expiry_time) = (time(start)?, time(expiry)?);
    let permissions = permission.filter(|letters| !letters.is_empty());
    Ok(AccessPolicy { id: document.id.clone(), start_time, expiry_time, permissions })
}

/// A message, whose text is elsewhere.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageDocument {
    pub(super) account_name: String,
    pub(super) queue_name: String,
    pub(super) message_id: String,
    /// Milliseconds since 1970.
    time_next_visible: i64,
    expiration_time: String,
    #[serde(default)]
    pub(super) dequeue_count: u32,
    pub(super) persistency: Stretch,
}

/// A stretch of a file of message texts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Stretch {
    /// The name of the file.
    pub(super) id: String,
    pub(super) offset: u64,
    pub(super) count: u64,
}

impl MessageDocument {
    /// When it can be received.
    pub(super) fn visible(&self) -> Option<Ticks> {
        let millis = self.time_next_visible;
        let nanos = i32::try_from(millis.rem_euclid(1000)).ok()?.checked_mul(1_000_000)?;
        Ticks::from_unix(millis.div_euclid(1000), nanos)
    }

    /// When it is gone; none for never.
    ///
    /// # Errors
    /// The rule that the time breaks.
    pub(super) fn expires(&self) -> Result<Option<Ticks>, String> {
        expiry(&self.expiration_time)
    }
}

/// The time at which a message is gone; none for never.
///
/// # Errors
/// The rule that the text breaks.
fn expiry(text: &str) -> Result<Option<Ticks>, String> {
    let at = datetime::parse(text)
        .ok_or_else(|| format!("expirationTime `{text}`: {}", datetime::RULE))?;
    if at.seconds >= NEVER_FROM {
        return Ok(None);
    }
    Ok(Ticks::from_unix(at.seconds, at.nanos))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn of(properties: &str) -> Result<Entity, (String, String)> {
        let keys = r#""PartitionKey":"p","RowKey":"r""#;
        let json = format!(r#"{{{keys},"properties":{{{keys},{properties}}},"eTag":"x"}}"#);
        entity(&json, 7)
    }

    fn kind_of(properties: &str) -> Kind {
        of(properties).unwrap().properties.remove(0).value.unwrap().kind.unwrap()
    }

    #[test]
    fn every_type_is_read_as_azurite_writes_it() {
        let guid = "c9da6455-213d-42c9-9a79-3e9149a57833".to_owned();
        for (properties, kind) in [
            (r#""v":"t""#, Kind::StringValue("t".to_owned())),
            (r#""v":5"#, Kind::Int32Value(5)),
            (r#""v":"9223372036854775807","v@odata.type":"Edm.Int64""#, Kind::Int64Value(i64::MAX)),
            (r#""v":3,"v@odata.type":"Edm.Double""#, Kind::DoubleValue(3.0)),
            (r#""v":1.5,"v@odata.type":"Edm.Double""#, Kind::DoubleValue(1.5)),
            (
                r#""v":"-Infinity","v@odata.type":"Edm.Double""#,
                Kind::DoubleValue(f64::NEG_INFINITY),
            ),
            (r#""v":true"#, Kind::BooleanValue(true)),
            (
                r#""v":"1970-01-01T00:00:01.0000001Z","v@odata.type":"Edm.DateTime""#,
                Kind::DatetimeValue(prost_types::Timestamp { seconds: 1, nanos: 100 }),
            ),
            (
                r#""v":"QzlEQTY0NTUtMjEzRC00MkM5LTlBNzktM0U5MTQ5QTU3ODMz","v@odata.type":"Edm.Guid""#,
                Kind::GuidValue(guid.clone()),
            ),
            (
                r#""v":"C9DA6455-213D-42C9-9A79-3E9149A57833","v@odata.type":"Edm.Guid""#,
                Kind::GuidValue(guid),
            ),
            (
                r#""v":"AP8B","v@odata.type":"Edm.Binary""#,
                Kind::BinaryValue(vec![0, 255, 1].into()),
            ),
        ] {
            assert_eq!(kind_of(properties), kind, "{properties}");
        }
    }

    #[test]
    fn documents_of_wrong_types_are_refused_by_name() {
        let (which, why) = of(r#""v":"x","v@odata.type":"Edm.Guid""#).unwrap_err();
        assert_eq!(which, "PartitionKey=`p` RowKey=`r`");
        assert!(why.contains("8-4-4-4-12"), "{why}");
        assert!(of(r#""v":1e999,"v@odata.type":"Edm.Double""#).is_err());
        for json in ["1", "{}", r#"{"PartitionKey":1,"RowKey":"r","properties":{}}"#] {
            let (which, why) = entity(json, 7).unwrap_err();
            assert!(which == "document 7" && why.starts_with("is no entity"), "{which}: {why}");
        }
    }

    #[test]
    fn the_end_of_the_year_9999_stands_for_never() {
        assert_eq!(expiry("9999-12-31T23:59:59.999Z"), Ok(None));
        assert_eq!(expiry("1970-01-01T00:00:02.500Z"), Ok(Ticks::from_unix(2, 500_000_000)));
        assert!(expiry("soon").unwrap_err().contains("`soon`"));
    }
}
