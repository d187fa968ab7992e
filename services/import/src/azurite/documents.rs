//! Documents of Azurite's databases, parsed: entities, tables, queues, messages.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::value::RawValue;
use trestle_command::entity_json;
use trestle_model::edm::{self, EdmType, datetime};
use trestle_model::time::Ticks;
use trestle_proto::table::v1::{Entity, value::Kind};

use crate::plan::PolicyDocument;

/// An expiry from this time on means no expiry: Azurite writes the last moment of the year 9999.
const NEVER_FROM: i64 = 253_370_764_800;

/// An entity. Its keys are members of its own and properties too.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EntityDocument<'a> {
    partition_key: String,
    row_key: String,
    #[serde(borrow, rename = "properties")]
    properties: &'a RawValue,
}

/// Reads an entity.
pub(super) fn entity(json: &str, number: u64) -> Result<Entity, (String, String)> {
    let document: EntityDocument<'_> = serde_json::from_str(json)
        .map_err(|error| (format!("document {number}"), format!("is not an entity: {error}")))?;
    let which =
        || format!("PartitionKey=`{}` RowKey=`{}`", document.partition_key, document.row_key);
    let properties = document.properties.get().as_bytes();
    let mut entity =
        entity_json::parse_by(properties, value).map_err(|error| (which(), error.to_string()))?;
    entity.partition_key = document.partition_key;
    entity.row_key = document.row_key;
    Ok(entity)
}

/// Values are as on the wire, but for identifiers, whose text is encoded in base64 by newer
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
    pub(super) policies: Option<Vec<PolicyDocument>>,
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
    pub(super) policies: Option<Vec<PolicyDocument>>,
}

/// A message, whose text is stored separately.
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
    pub(super) persistency: TextLocation,
}

/// The position of a text in a file of message texts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct TextLocation {
    /// The name of the file.
    pub(super) id: String,
    pub(super) offset: u64,
    pub(super) count: u64,
}

impl MessageDocument {
    /// When it becomes visible.
    pub(super) fn visible(&self) -> Option<Ticks> {
        let millis = self.time_next_visible;
        let nanos = i32::try_from(millis.rem_euclid(1000)).ok()?.checked_mul(1_000_000)?;
        Ticks::from_unix(millis.div_euclid(1000), nanos)
    }

    /// Its expiry, if it has one.
    pub(super) fn expires(&self) -> Result<Option<Ticks>, String> {
        expiry(&self.expiration_time)
    }
}

fn expiry(text: &str) -> Result<Option<Ticks>, String> {
    let at = datetime::parse(text)
        .ok_or_else(|| format!("expirationTime `{text}`: {}", datetime::RULE))?;
    Ok(Some(at)
        .filter(|at| at.seconds < NEVER_FROM)
        .and_then(|at| Ticks::from_unix(at.seconds, at.nanos)))
}

#[cfg(test)]
mod tests;
