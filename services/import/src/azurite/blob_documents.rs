//! Documents of Azurite's database of blobs, parsed: containers, and states of blobs with the places of their content.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::Value;
use trestle_proto::blob::v1::{AccessTier, HttpProperties};

use super::documents::TextLocation;
use crate::{
    blobs::{ImportedBlob, ImportedKind},
    plan::PolicyDocument,
};

/// The name of the extent of pages that were cleared.
const ZEROS: &str = "*ZERO*";
/// Length of a page, in bytes.
const PAGE_BYTES: u64 = 512;
/// Longest page blob, in bytes.
const PAGE_BLOB_BYTES_MAX: u64 = 8 << 40;

/// A container in the list of containers.
#[derive(Deserialize)]
pub(super) struct ContainerDocument {
    #[serde(rename = "accountName")]
    pub(super) account: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) metadata: Option<HashMap<String, String>>,
    #[serde(default)]
    pub(super) properties: ContainerProperties,
    #[serde(default, rename = "containerAcl")]
    pub(super) policies: Option<Vec<PolicyDocument>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ContainerProperties {
    pub(super) public_access: Option<String>,
}

/// What names a state of a blob.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StateKey {
    pub(super) account_name: String,
    pub(super) container_name: String,
    pub(super) name: String,
    /// Empty for the blob itself.
    #[serde(default)]
    pub(super) snapshot: String,
    /// False for a blob that has staged blocks only.
    #[serde(default = "committed")]
    pub(super) is_committed: bool,
}

fn committed() -> bool {
    true
}

/// A state of a blob.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlobDocument {
    properties: PropertiesDocument,
    #[serde(default)]
    metadata: Option<HashMap<String, String>>,
    #[serde(default)]
    blob_tags: Option<TagsDocument>,
    #[serde(default)]
    persistency: Option<TextLocation>,
    #[serde(default)]
    committed_blocks_in_order: Option<Vec<BlockDocument>>,
    #[serde(default)]
    page_ranges_in_order: Option<Vec<PagesDocument>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PropertiesDocument {
    content_length: u64,
    blob_type: String,
    #[serde(default)]
    content_type: Option<String>,
    #[serde(default)]
    content_encoding: Option<String>,
    #[serde(default)]
    content_language: Option<String>,
    #[serde(default)]
    content_disposition: Option<String>,
    #[serde(default)]
    cache_control: Option<String>,
    #[serde(default, rename = "contentMD5")]
    content_md5: Option<Value>,
    #[serde(default)]
    access_tier: Option<String>,
    #[serde(default)]
    access_tier_inferred: Option<bool>,
    #[serde(default)]
    blob_sequence_number: Option<u64>,
    #[serde(default)]
    is_sealed: Option<bool>,
}

#[derive(Deserialize)]
struct TagsDocument {
    #[serde(rename = "blobTagSet")]
    tags: Vec<TagDocument>,
}

#[derive(Deserialize)]
struct TagDocument {
    key: String,
    value: String,
}

#[derive(Deserialize)]
struct BlockDocument {
    size: u64,
    persistency: TextLocation,
}

#[derive(Deserialize)]
struct PagesDocument {
    start: u64,
    end: u64,
    persistency: PagesLocation,
}

/// As [`TextLocation`]; pages that were cleared are nowhere.
#[derive(Deserialize)]
struct PagesLocation {
    id: String,
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    count: u64,
}

/// Where bytes of a blob are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExtentPiece {
    /// Where they begin in the blob, in bytes.
    pub(super) offset: u64,
    /// The bytes in an extent.
    pub(super) location: TextLocation,
}

/// Reads a state of a blob, as that of the blob itself, and where its content is, by offset.
///
/// # Errors
/// The rule that the document breaks.
pub(super) fn blob(json: &str, name: &str) -> Result<(ImportedBlob, Vec<ExtentPiece>), String> {
    let document: BlobDocument =
        serde_json::from_str(json).map_err(|error| format!("is not a blob: {error}"))?;
    let properties = document.properties;
    let size = properties.content_length;
    let (kind, pieces) = match properties.blob_type.as_str() {
        "BlockBlob" => (ImportedKind::Block, None),
        "AppendBlob" => {
            let is_sealed = properties.is_sealed.unwrap_or_default();
            (ImportedKind::Append { is_sealed }, None)
        }
        "PageBlob" => {
            let sequence_number = properties.blob_sequence_number.unwrap_or_default();
            let ranges = document.page_ranges_in_order.unwrap_or_default();
            (ImportedKind::Page { sequence_number }, Some(page_pieces(ranges, size)?))
        }
        other => return Err(format!("is of an unknown type: blobType=`{other}`")),
    };
    let pieces = match pieces {
        Some(pieces) => pieces,
        None => block_pieces(document.persistency, document.committed_blocks_in_order, size)?,
    };
    let is_inferred = properties.access_tier_inferred.unwrap_or_default();
    let tier = properties.access_tier.filter(|_| !is_inferred);
    let tags = document.blob_tags.map(|tags| tags.tags).unwrap_or_default();
    let blob = ImportedBlob {
        name: name.to_owned(),
        is_snapshot: false,
        kind,
        size,
        tier: tier.as_deref().map_or(AccessTier::Unspecified, tier_of),
        metadata: document.metadata.unwrap_or_default(),
        tags: tags.into_iter().map(|tag| (tag.key, tag.value)).collect(),
        properties: HttpProperties {
            content_type: properties.content_type.unwrap_or_default(),
            content_encoding: properties.content_encoding.unwrap_or_default(),
            content_language: properties.content_language.unwrap_or_default(),
            content_disposition: properties.content_disposition.unwrap_or_default(),
            cache_control: properties.cache_control.unwrap_or_default(),
            content_md5: md5(properties.content_md5)?.into(),
        },
    };
    Ok((blob, pieces))
}

/// The tier of a name, such as `Cool` or `P10`; unspecified for one that is not supported.
pub(crate) fn tier_of(name: &str) -> AccessTier {
    let name = format!("ACCESS_TIER_{}", name.trim().to_ascii_uppercase());
    AccessTier::from_str_name(&name).unwrap_or_default()
}

/// An MD5: an array of bytes as LokiJS writes it, by version of Azurite, or base64.
fn md5(value: Option<Value>) -> Result<Vec<u8>, String> {
    let rule = || "contentMD5 must have 16 bytes".to_owned();
    let bytes = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) => STANDARD.decode(text).map_err(|_| rule())?,
        Some(Value::Array(bytes)) => bytes_of(bytes.iter()).ok_or_else(rule)?,
        Some(Value::Object(members)) => match members.get("data") {
            Some(Value::Array(bytes)) => bytes_of(bytes.iter()).ok_or_else(rule)?,
            _ => {
                let indices = (0..members.len()).map(|index| index.to_string());
                let bytes: Option<Vec<_>> =
                    indices.map(|index| members.get(index.as_str())).collect();
                bytes.and_then(|bytes| bytes_of(bytes.into_iter())).ok_or_else(rule)?
            }
        },
        Some(_) => return Err(rule()),
    };
    if bytes.is_empty() || bytes.len() == 16 { Ok(bytes) } else { Err(rule()) }
}

fn bytes_of<'a>(values: impl Iterator<Item = &'a Value>) -> Option<Vec<u8>> {
    values.map(|value| u8::try_from(value.as_u64()?).ok()).collect()
}

/// The content of a block blob or an append blob: at one place, or in blocks.
fn block_pieces(
    whole: Option<TextLocation>,
    blocks: Option<Vec<BlockDocument>>,
    size: u64,
) -> Result<Vec<ExtentPiece>, String> {
    let locations = match (whole, blocks) {
        (_, Some(blocks)) if !blocks.is_empty() => {
            if blocks.iter().any(|block| block.size != block.persistency.count) {
                return Err("has a block of another size than its content".to_owned());
            }
            blocks.into_iter().map(|block| block.persistency).collect()
        }
        (Some(location), _) => vec![location],
        (None, _) => Vec::new(),
    };
    let (mut pieces, mut offset) = (Vec::new(), 0_u64);
    for location in locations {
        let end = offset.saturating_add(location.count);
        if location.count > 0 {
            pieces.push(ExtentPiece { offset, location });
        }
        offset = end;
    }
    if offset != size {
        return Err(format!("has {offset} bytes of content, and contentLength={size}"));
    }
    Ok(pieces)
}

/// The pages with data of a page blob.
fn page_pieces(ranges: Vec<PagesDocument>, size: u64) -> Result<Vec<ExtentPiece>, String> {
    if size > PAGE_BLOB_BYTES_MAX || !size.is_multiple_of(PAGE_BYTES) {
        return Err(format!("is not of whole pages of {PAGE_BYTES} bytes: contentLength={size}"));
    }
    let (mut pieces, mut last) = (Vec::new(), 0);
    for PagesDocument { start, end, persistency } in ranges {
        let invalid = |rule: &str| Err(format!("{rule}: start={start}, end={end}"));
        let end_of = end.saturating_add(1);
        let is_aligned = start % PAGE_BYTES == 0 && end_of % PAGE_BYTES == 0;
        if !is_aligned || start < last || end < start || end_of > size {
            return invalid("has pages that are not in order, or not in the blob");
        }
        last = end_of;
        if persistency.id == ZEROS {
            continue;
        }
        let count = end_of - start;
        if persistency.count < count {
            return invalid("has pages that are longer than their content");
        }
        let location = TextLocation { id: persistency.id, offset: persistency.offset, count };
        pieces.push(ExtentPiece { offset: start, location });
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests;
