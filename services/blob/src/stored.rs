//! The form of records on disk: a format byte, then a message of our own. Field numbers never change. It is independent
//! of the contract, so that a change of the contract never changes what is on disk.

mod container;
mod rest_settings;
mod retention;
#[cfg(test)]
mod tests;
mod tier;

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use trestle_model::time::Ticks;
use uuid::Uuid;

use self::tier::{TierForm, tier_form, tier_of};
use crate::{
    error::BlobError,
    etag::ETag,
    lease::{LeaseTerm, ResourceLease},
    record::{
        AppendContent, BlobCopy, BlobHistory, BlobRecord, Content, ContentId, ContentProperties,
        CopyOrigin, Deletion, Metadata, PageContent, Part, Retired, RetiredStaging, Staging,
        StoredBlock,
    },
};

/// The first byte of a record.
const FORMAT: u8 = 1;

/// A record with a form on disk.
pub(crate) trait Stored: Sized {
    /// The message.
    type Form: Message + Default;
    /// What it is, for the error.
    const WHAT: &'static str;

    /// The message of a record.
    fn to_form(&self) -> Self::Form;

    /// The record of a message; none if a field is out of range.
    fn of_form(form: Self::Form) -> Option<Self>;

    /// The stored form.
    fn encode(&self) -> Bytes {
        let form = self.to_form();
        let mut value = Vec::with_capacity(1 + form.encoded_len());
        value.push(FORMAT);
        form.encode_raw(&mut value);
        value.into()
    }

    /// From the stored form.
    ///
    /// # Errors
    /// [`BlobError::Corrupt`].
    fn decode(value: &[u8]) -> Result<Self, BlobError> {
        let form = value.strip_prefix(&[FORMAT]).and_then(|it| Self::Form::decode(it).ok());
        form.and_then(Self::of_form).ok_or_else(|| BlobError::corrupt(Self::WHAT))
    }
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BlobForm {
    #[prost(uint64, tag = "1")]
    etag: u64,
    #[prost(uint64, tag = "2")]
    created_at: u64,
    #[prost(string, tag = "3")]
    content_type: String,
    #[prost(string, tag = "4")]
    encoding: String,
    #[prost(string, tag = "5")]
    language: String,
    #[prost(string, tag = "6")]
    disposition: String,
    #[prost(string, tag = "7")]
    cache_control: String,
    #[prost(bytes = "bytes", tag = "8")]
    md5: Bytes,
    #[prost(message, repeated, tag = "9")]
    metadata: Vec<MetadataForm>,
    #[prost(message, optional, tag = "10")]
    lease: Option<LeaseForm>,
    #[prost(uint64, tag = "11")]
    size: u64,
    /// Set where the bytes are in one content.
    #[prost(uint64, optional, tag = "12")]
    content: Option<u64>,
    /// The mark of that content.
    #[prost(fixed64, tag = "16")]
    mark: u64,
    /// Set where the bytes are in a list of blocks.
    #[prost(uint64, optional, tag = "13")]
    list: Option<u64>,
    /// Set where the bytes are added at the end.
    #[prost(message, optional, tag = "14")]
    append: Option<AppendForm>,
    /// Set where the bytes are in pages.
    #[prost(message, optional, tag = "15")]
    pages: Option<PagesForm>,
    #[prost(message, optional, tag = "20")]
    tier: Option<TierForm>,
    #[prost(uint64, tag = "30")]
    snapshots: u64,
    #[prost(uint64, optional, tag = "31")]
    newest_shared: Option<u64>,
    #[prost(message, optional, tag = "32")]
    copy: Option<CopyForm>,
    #[prost(uint64, optional, tag = "33")]
    deleted_at: Option<u64>,
    #[prost(uint64, tag = "34")]
    deleted_until: u64,
    #[prost(uint64, optional, tag = "36")]
    version: Option<u64>,
    #[prost(message, repeated, tag = "40")]
    tags: Vec<MetadataForm>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PagesForm {
    #[prost(uint64, tag = "1")]
    generation: u64,
    #[prost(uint64, tag = "2")]
    sequence_number: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AppendForm {
    #[prost(uint64, tag = "1")]
    generation: u64,
    #[prost(uint64, tag = "2")]
    blocks: u64,
    #[prost(bool, tag = "3")]
    is_sealed: bool,
    #[prost(uint64, tag = "4")]
    compacted_to: u64,
    #[prost(uint64, tag = "5")]
    row_bytes: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CopyForm {
    #[prost(bytes = "bytes", tag = "1")]
    id: Bytes,
    #[prost(string, tag = "2")]
    source: String,
    #[prost(uint64, tag = "3")]
    completed_at: u64,
    #[prost(uint64, optional, tag = "4")]
    size: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct MetadataForm {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct LeaseForm {
    #[prost(bytes = "bytes", tag = "1")]
    id: Bytes,
    #[prost(bool, tag = "2")]
    is_breaking: bool,
    /// The end; absent where it has no expiry.
    #[prost(uint64, optional, tag = "3")]
    until: Option<u64>,
    #[prost(uint64, tag = "4")]
    duration_seconds: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct PartForm {
    #[prost(uint64, tag = "1")]
    content: u64,
    #[prost(uint64, tag = "2")]
    size: u64,
    /// The id of the block, where it is one.
    #[prost(bytes = "bytes", tag = "3")]
    block: Bytes,
    #[prost(fixed64, tag = "4")]
    mark: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BlockListForm {
    #[prost(message, repeated, tag = "1")]
    blocks: Vec<PartForm>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StagingForm {
    #[prost(uint64, tag = "1")]
    generation: u64,
    #[prost(uint64, tag = "2")]
    changed_at: u64,
    #[prost(uint64, tag = "3")]
    id_bytes: u64,
    #[prost(uint64, tag = "4")]
    count: u64,
    #[prost(uint64, tag = "5")]
    size: u64,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RetiredForm {
    #[prost(message, repeated, tag = "1")]
    parts: Vec<PartForm>,
    #[prost(uint64, optional, tag = "2")]
    list: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    staging: Option<u64>,
    #[prost(bool, tag = "4")]
    with_contents: bool,
    #[prost(uint64, optional, tag = "5")]
    generation: Option<u64>,
}

/// None for numbers that are not times.
fn deletion_of(at: Option<u64>, until: u64) -> Option<Option<Deletion>> {
    let Some(at) = at else { return Some(None) };
    Some(Some(Deletion { at: Ticks::new(at)?, until: Ticks::new(until)? }))
}

impl Stored for BlobRecord {
    type Form = BlobForm;
    const WHAT: &'static str = "record of a blob";

    fn to_form(&self) -> BlobForm {
        let properties = self.properties.clone();
        BlobForm {
            etag: self.etag.0.get(),
            created_at: self.created_at.get(),
            content_type: properties.content_type,
            encoding: properties.encoding,
            language: properties.language,
            disposition: properties.disposition,
            cache_control: properties.cache_control,
            md5: properties.md5.map(|md5| Bytes::copy_from_slice(&md5)).unwrap_or_default(),
            metadata: metadata_form(&self.metadata),
            lease: lease_form(&self.lease),
            size: self.content.size(),
            content: match self.content {
                Content::Whole(part) => Some(part.content.0),
                _ => None,
            },
            mark: match self.content {
                Content::Whole(part) => part.mark,
                _ => 0,
            },
            list: match self.content {
                Content::Blocks { list, .. } => Some(list),
                _ => None,
            },
            append: match self.content {
                Content::Append(content) => Some(append_form(content)),
                _ => None,
            },
            pages: match self.content {
                Content::Pages(PageContent { generation, sequence_number, .. }) => {
                    Some(PagesForm { generation, sequence_number })
                }
                _ => None,
            },
            tier: self.tier.map(tier_form),
            snapshots: self.history.snapshots,
            newest_shared: self.history.newest_shared.map(Ticks::get),
            copy: self.copy.as_ref().map(copy_form),
            deleted_at: self.deletion.map(|deletion| deletion.at.get()),
            deleted_until: self.deletion.map_or(0, |deletion| deletion.until.get()),
            version: self.version.map(Ticks::get),
            tags: metadata_form(&self.tags),
        }
    }

    fn of_form(form: BlobForm) -> Option<Self> {
        let size = form.size;
        let content = match (form.content, form.list, form.append, form.pages) {
            (None, None, None, None) => Content::Inline { size },
            (Some(content), None, None, None) => {
                Content::Whole(Part { content: ContentId(content), mark: form.mark, size })
            }
            (None, Some(list), None, None) => Content::Blocks { list, size },
            (None, None, Some(form), None) => Content::Append(append_of(&form, size)),
            (None, None, None, Some(PagesForm { generation, sequence_number })) => {
                Content::Pages(PageContent { generation, size, sequence_number })
            }
            _ => return None,
        };
        let md5 = if form.md5.is_empty() { None } else { Some(form.md5.as_ref().try_into().ok()?) };
        Some(Self {
            etag: ETag(Ticks::new(form.etag)?),
            created_at: Ticks::new(form.created_at)?,
            properties: ContentProperties {
                content_type: form.content_type,
                encoding: form.encoding,
                language: form.language,
                disposition: form.disposition,
                cache_control: form.cache_control,
                md5,
            },
            metadata: metadata_of(form.metadata),
            lease: lease_of(form.lease)?,
            content,
            tier: match form.tier {
                Some(form) => Some(tier_of(&form)?),
                None => None,
            },
            history: BlobHistory {
                snapshots: form.snapshots,
                newest_shared: match form.newest_shared {
                    Some(ticks) => Some(Ticks::new(ticks)?),
                    None => None,
                },
            },
            copy: match form.copy {
                Some(form) => Some(copy_of(form)?),
                None => None,
            },
            deletion: deletion_of(form.deleted_at, form.deleted_until)?,
            tags: metadata_of(form.tags),
            version: match form.version {
                Some(ticks) => Some(Ticks::new(ticks)?),
                None => None,
            },
        })
    }
}

impl Stored for Part {
    type Form = PartForm;
    const WHAT: &'static str = "staged block";

    fn to_form(&self) -> PartForm {
        let Self { content, mark, size } = *self;
        PartForm { content: content.0, size, block: Bytes::new(), mark }
    }

    fn of_form(form: PartForm) -> Option<Self> {
        Some(Self { content: ContentId(form.content), mark: form.mark, size: form.size })
    }
}

/// The blocks of the content of a blob, in its order.
impl Stored for Vec<StoredBlock> {
    type Form = BlockListForm;
    const WHAT: &'static str = "block list";

    fn to_form(&self) -> BlockListForm {
        let form =
            |block: &StoredBlock| PartForm { block: block.id.clone(), ..block.part.to_form() };
        BlockListForm { blocks: self.iter().map(form).collect() }
    }

    fn of_form(form: BlockListForm) -> Option<Self> {
        let block = |form: PartForm| {
            Some(StoredBlock { id: form.block.clone(), part: Part::of_form(form)? })
        };
        form.blocks.into_iter().map(block).collect()
    }
}

impl Stored for Staging {
    type Form = StagingForm;
    const WHAT: &'static str = "record of staged blocks";

    fn to_form(&self) -> StagingForm {
        let Self { generation, changed_at, id_bytes, count, size } = *self;
        StagingForm { generation, changed_at: changed_at.get(), id_bytes, count, size }
    }

    fn of_form(form: StagingForm) -> Option<Self> {
        let StagingForm { generation, changed_at, id_bytes, count, size } = form;
        Some(Self { generation, changed_at: Ticks::new(changed_at)?, id_bytes, count, size })
    }
}

impl Stored for Retired {
    type Form = RetiredForm;
    const WHAT: &'static str = "retired content";

    fn to_form(&self) -> RetiredForm {
        RetiredForm {
            parts: self.parts.iter().map(Part::to_form).collect(),
            list: self.list,
            staging: self.staging.map(|staging| staging.generation),
            generation: self.generation,
            with_contents: self.staging.is_some_and(|staging| staging.with_contents),
        }
    }

    fn of_form(form: RetiredForm) -> Option<Self> {
        let with_contents = form.with_contents;
        let staging = |generation| RetiredStaging { generation, with_contents };
        let parts = form.parts.into_iter().map(Part::of_form).collect::<Option<_>>()?;
        let (list, generation) = (form.list, form.generation);
        Some(Self { parts, list, staging: form.staging.map(staging), generation })
    }
}

fn append_form(content: AppendContent) -> AppendForm {
    let AppendContent { generation, size: _, blocks, is_sealed, compacted_to, row_bytes } = content;
    AppendForm { generation, blocks, is_sealed, compacted_to, row_bytes }
}

fn append_of(form: &AppendForm, size: u64) -> AppendContent {
    let AppendForm { generation, blocks, is_sealed, compacted_to, row_bytes } = *form;
    AppendContent { generation, size, blocks, is_sealed, compacted_to, row_bytes }
}

fn copy_form(copy: &BlobCopy) -> CopyForm {
    let CopyOrigin { id, source } = copy.origin.clone();
    let completed_at = copy.completed_at.get();
    CopyForm { id: Bytes::copy_from_slice(id.as_bytes()), source, completed_at, size: copy.size }
}

fn copy_of(form: CopyForm) -> Option<BlobCopy> {
    let origin = CopyOrigin { id: Uuid::from_slice(&form.id).ok()?, source: form.source };
    Some(BlobCopy { origin, completed_at: Ticks::new(form.completed_at)?, size: form.size })
}

fn metadata_form(metadata: &Metadata) -> Vec<MetadataForm> {
    let form = |(name, value): &(String, String)| MetadataForm {
        name: name.clone(),
        value: value.clone(),
    };
    metadata.iter().map(form).collect()
}

fn metadata_of(forms: Vec<MetadataForm>) -> Metadata {
    forms.into_iter().map(|form| (form.name, form.value)).collect()
}

fn lease_form(lease: &ResourceLease) -> Option<LeaseForm> {
    let id = |id: &Uuid| Bytes::copy_from_slice(id.as_bytes());
    match lease {
        ResourceLease::Absent => None,
        ResourceLease::Held { id: held, term } => Some(LeaseForm {
            id: id(held),
            is_breaking: false,
            until: term.map(|term| term.until.get()),
            duration_seconds: term.map_or(0, |term| term.duration.as_secs()),
        }),
        ResourceLease::Breaking { id: held, until } => Some(LeaseForm {
            id: id(held),
            is_breaking: true,
            until: Some(until.get()),
            duration_seconds: 0,
        }),
    }
}

fn lease_of(form: Option<LeaseForm>) -> Option<ResourceLease> {
    let Some(form) = form else { return Some(ResourceLease::Absent) };
    let id = Uuid::from_slice(&form.id).ok()?;
    let until = match form.until {
        Some(until) => Some(Ticks::new(until)?),
        None => None,
    };
    let duration = Duration::from_secs(form.duration_seconds);
    match (form.is_breaking, until) {
        (false, until) => {
            Some(ResourceLease::Held { id, term: until.map(|until| LeaseTerm { duration, until }) })
        }
        (true, Some(until)) => Some(ResourceLease::Breaking { id, until }),
        (true, None) => None,
    }
}
