//! Lists of containers, blobs and pages of an account, in XML.

use std::collections::HashMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use trestle_proto::blob::v1::{AccessTier, HttpProperties};

use crate::{
    azurite::tier_of,
    blobs::{ImportedBlob, ImportedKind, PagesWithData},
};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ContainersPage {
    #[serde(default)]
    containers: ContainerElements,
    #[serde(default)]
    pub(super) next_marker: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct ContainerElements {
    container: Vec<ContainerElement>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ContainerElement {
    pub(super) name: String,
    #[serde(default)]
    pub(super) properties: PublicAccessElement,
    #[serde(default)]
    pub(super) metadata: HashMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct PublicAccessElement {
    pub(super) public_access: String,
}

impl ContainersPage {
    pub(super) fn into_containers(self) -> Vec<ContainerElement> {
        self.containers.container
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct BlobsPage {
    #[serde(default)]
    blobs: BlobElements,
    #[serde(default)]
    pub(super) next_marker: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct BlobElements {
    blob: Vec<BlobElement>,
}

impl BlobsPage {
    pub(super) fn into_blobs(self) -> Vec<BlobElement> {
        self.blobs.blob
    }
}

/// A state of a blob.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct BlobElement {
    name: NameElement,
    /// Empty for the blob itself.
    #[serde(default)]
    pub(super) snapshot: String,
    properties: PropertyElements,
    #[serde(default)]
    metadata: HashMap<String, String>,
    #[serde(default)]
    tags: TagsElement,
}

/// A name, which is percent-encoded where XML does not allow its characters.
#[derive(Debug, Clone, Deserialize)]
struct NameElement {
    #[serde(default, rename = "@Encoded")]
    encoded: bool,
    #[serde(default, rename = "$text")]
    text: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct TagsElement {
    tag_set: TagSetElement,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct TagSetElement {
    tag: Vec<TagElement>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct TagElement {
    key: String,
    value: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PropertyElements {
    #[serde(rename = "Content-Length")]
    length: u64,
    blob_type: String,
    etag: String,
    #[serde(default, rename = "Content-Type")]
    content_type: String,
    #[serde(default, rename = "Content-Encoding")]
    content_encoding: String,
    #[serde(default, rename = "Content-Language")]
    content_language: String,
    #[serde(default, rename = "Content-Disposition")]
    content_disposition: String,
    #[serde(default, rename = "Cache-Control")]
    cache_control: String,
    #[serde(default, rename = "Content-MD5")]
    content_md5: String,
    #[serde(default)]
    access_tier: String,
    #[serde(default)]
    access_tier_inferred: String,
    #[serde(default, rename = "x-ms-blob-sequence-number")]
    sequence_number: String,
    #[serde(default)]
    sealed: String,
}

impl BlobElement {
    pub(super) fn name(&self) -> Result<String, String> {
        let NameElement { encoded, text } = &self.name;
        if !*encoded {
            return Ok(text.clone());
        }
        let decoded = percent_decode_str(text).decode_utf8();
        decoded.map(Into::into).map_err(|_| format!("its encoded name is not UTF-8: `{text}`"))
    }

    /// The version that is listed, quoted.
    pub(super) fn etag(&self) -> String {
        let etag = &self.properties.etag;
        if etag.starts_with('"') { etag.clone() } else { format!("\"{etag}\"") }
    }

    /// What is copied of it.
    pub(super) fn described(&self) -> Result<ImportedBlob, String> {
        let (name, found) = (self.name()?, &self.properties);
        let kind = match found.blob_type.as_str() {
            "BlockBlob" => ImportedKind::Block,
            "AppendBlob" => ImportedKind::Append { is_sealed: found.sealed.trim() == "true" },
            "PageBlob" => {
                let number = found.sequence_number.trim();
                let rule = || format!("x-ms-blob-sequence-number is not a number: `{number}`");
                let number = if number.is_empty() { Ok(0) } else { number.parse() };
                ImportedKind::Page { sequence_number: number.map_err(|_| rule())? }
            }
            other => return Err(format!("is of an unknown type: BlobType=`{other}`")),
        };
        let is_inferred = found.access_tier_inferred.trim() == "true";
        let md5 = STANDARD.decode(found.content_md5.trim());
        let md5 = md5.map_err(|_| "Content-MD5 must be base64".to_owned())?;
        let tags = self.tags.tag_set.tag.iter();
        Ok(ImportedBlob {
            name,
            is_snapshot: !self.snapshot.is_empty(),
            kind,
            size: found.length,
            properties: HttpProperties {
                content_type: found.content_type.clone(),
                content_encoding: found.content_encoding.clone(),
                content_language: found.content_language.clone(),
                content_disposition: found.content_disposition.clone(),
                cache_control: found.cache_control.clone(),
                content_md5: md5.into(),
            },
            metadata: self.metadata.clone(),
            tags: tags.map(|tag| (tag.key.clone(), tag.value.clone())).collect(),
            tier: match is_inferred {
                true => AccessTier::Unspecified,
                false => tier_of(&found.access_tier),
            },
        })
    }
}

/// Pages with data; those that were cleared are in other elements.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct PageList {
    #[serde(default)]
    page_range: Vec<PageRangeElement>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PageRangeElement {
    start: u64,
    end: u64,
}

impl PageList {
    /// The parts within a range of the blob, in their order; the error of ranges that have none.
    pub(super) fn within(self, offset: u64, length: u64) -> Result<Vec<PagesWithData>, String> {
        let (end, mut last) = (offset.saturating_add(length), 0);
        let mut pages = Vec::new();
        for PageRangeElement { start, end: inclusive } in self.page_range {
            let end_of = inclusive.saturating_add(1);
            if start < last || end_of <= start {
                return Err(format!("page ranges are not in order: {start} to {inclusive}"));
            }
            last = end_of;
            let (from, to) = (start.max(offset), end_of.min(end));
            if from < to {
                pages.push(PagesWithData { offset: from, length: to - from });
            }
        }
        Ok(pages)
    }
}

#[cfg(test)]
mod tests;
