//! Containers and blobs as the service works with them; `stored` has their form on disk.

use std::time::Duration;

use bytes::Bytes;
use trestle_model::time::Ticks;
use uuid::Uuid;

use crate::{etag::ETag, lease::ResourceLease, tags::Tags, tier::AssignedTier};

/// The number of a container in every key of its blobs. Never used twice, so a deleted container and its successor
/// have no key in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContainerId(pub(crate) u64);

/// The number in the names of the objects of a content. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ContentId(pub(crate) u64);

/// Names and values of the application, by name.
pub(crate) type Metadata = Vec<(String, String)>;

/// A container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerRecord {
    /// The number in the keys of its blobs.
    pub(crate) id: ContainerId,
    /// The version of metadata and access policies.
    pub(crate) etag: ETag,
    /// When it was created.
    pub(crate) created_at: Ticks,
    /// The metadata.
    pub(crate) metadata: Metadata,
    /// Its access policies, encoded; empty where there are none.
    pub(crate) policies: Bytes,
    /// Its lease.
    pub(crate) lease: ResourceLease,
    /// Set where it is deleted and can be restored.
    pub(crate) deletion: Option<Deletion>,
    /// What callers without credentials may read.
    pub(crate) public_access: PublicAccess,
}

/// What callers without credentials may read of a container. Each has more than the one before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PublicAccess {
    /// Nothing.
    #[default]
    None,
    /// Its blobs.
    Blobs,
    /// Its blobs, its listing and itself.
    Container,
}

/// A blob with committed content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlobRecord {
    /// The version of content, properties and metadata.
    pub(crate) etag: ETag,
    /// When its content was written.
    pub(crate) created_at: Ticks,
    /// The HTTP properties.
    pub(crate) properties: ContentProperties,
    /// The metadata.
    pub(crate) metadata: Metadata,
    /// Its lease.
    pub(crate) lease: ResourceLease,
    /// Where its bytes are.
    pub(crate) content: Content,
    /// Its access tier, if one was set.
    pub(crate) tier: Option<AssignedTier>,
    /// Its snapshots.
    pub(crate) history: BlobHistory,
    /// The copy that wrote it, until properties or metadata are changed.
    pub(crate) copy: Option<BlobCopy>,
    /// Set where it is deleted and can be restored.
    pub(crate) deletion: Option<Deletion>,
    /// Its tags.
    pub(crate) tags: Tags,
    /// The id of the version that it is, if it is one: the time of the write that made it.
    pub(crate) version: Option<Ticks>,
}

/// The deletion of a container or of a state of a blob that can be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deletion {
    /// When it was deleted.
    pub(crate) at: Ticks,
    /// How long it can be restored.
    pub(crate) until: Ticks,
}

impl Deletion {
    /// One that can be undone for this long.
    pub(crate) fn at(now: Ticks, period: Duration) -> Self {
        Self { at: now, until: now.after(period) }
    }
}

/// What is kept of the states that changes replace, by the settings of the account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Retention {
    /// How long deleted states can be restored; absent: not at all.
    pub(crate) deleted_for: Option<Duration>,
    /// Whether each write of content or metadata makes a version.
    pub(crate) versions: bool,
    /// How long deleted containers can be restored; absent: not at all.
    pub(crate) containers_deleted_for: Option<Duration>,
}

impl Retention {
    /// Whether a state that is replaced is kept.
    pub(crate) fn keeps(self) -> bool {
        self.versions || self.deleted_for.is_some()
    }

    /// The deletion of a state now, if it can be restored then.
    pub(crate) fn deletion(self, now: Ticks) -> Option<Deletion> {
        self.deleted_for.map(|period| Deletion::at(now, period))
    }
}

/// The settings of an account that only REST uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RestSettings {
    /// The version of calls that state none; empty: none is set.
    pub(crate) default_version: String,
    /// The website of the container `$web`.
    pub(crate) website: Website,
}

/// A website; empty texts are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Website {
    /// Whether it is served.
    pub(crate) is_enabled: bool,
    /// The name of the blob in each folder that is served for the folder.
    pub(crate) index_document: String,
    /// The blob that is served where there is none.
    pub(crate) error_document: String,
    /// The blob that is served for every folder.
    pub(crate) default_index_document: String,
}

/// Names a copy and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CopyOrigin {
    /// The id of the copy.
    pub(crate) id: Uuid,
    /// The source, as text for clients.
    pub(crate) source: String,
}

/// A copy that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlobCopy {
    /// Its id and its source.
    pub(crate) origin: CopyOrigin,
    /// When it was complete.
    pub(crate) completed_at: Ticks,
    /// How much was copied, in bytes; none: as much as the blob has.
    pub(crate) size: Option<u64>,
}

/// What a blob has in common with its past states.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BlobHistory {
    /// How many snapshots it has.
    pub(crate) snapshots: u64,
    /// The newest past state that may share a part of the content.
    pub(crate) newest_shared: Option<Ticks>,
}

impl BlobRecord {
    /// Whether a past state may share a part of the content.
    pub(crate) fn is_shared(&self) -> bool {
        self.history.newest_shared.is_some()
    }
}

impl BlobRecord {
    /// The time of the newest snapshot that may share chunks of pages.
    pub(crate) fn newest_snapshot(&self) -> Option<Ticks> {
        self.history.newest_shared
    }
}

/// HTTP properties of a blob; empty ones are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ContentProperties {
    /// Media type.
    pub(crate) content_type: String,
    /// Content encoding.
    pub(crate) encoding: String,
    /// Natural languages.
    pub(crate) language: String,
    /// Presentation.
    pub(crate) disposition: String,
    /// Caching.
    pub(crate) cache_control: String,
    /// MD5 of the content.
    pub(crate) md5: Option<[u8; 16]>,
}

/// Where the bytes of a blob are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// In a row beside the record.
    Inline {
        /// Length, in bytes.
        size: u64,
    },
    /// In the objects of one content.
    Whole(Part),
    /// In the objects of a list of blocks.
    Blocks {
        /// The number of the list in its key: the etag of the commit that wrote it.
        list: u64,
        /// Length, in bytes.
        size: u64,
    },
    /// In rows and objects that are added at the end.
    Append(AppendContent),
    /// In rows of pages.
    Pages(PageContent),
}

/// How the content of a blob is written. It cannot change while the blob exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlobKind {
    /// As a whole, or from blocks.
    Block,
    /// At its end.
    Append,
    /// In pages.
    Page,
}

/// The content of a page blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageContent {
    /// The number in the keys of its chunks: the version of the change that created the blob.
    pub(crate) generation: u64,
    /// Length, in bytes: whole pages.
    pub(crate) size: u64,
    /// The sequence number that clients maintain.
    pub(crate) sequence_number: u64,
}

/// The content of an append blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AppendContent {
    /// The number in the keys of its pieces: the version of the change that created the blob.
    pub(crate) generation: u64,
    /// Length, in bytes.
    pub(crate) size: u64,
    /// How many blocks were appended.
    pub(crate) blocks: u64,
    /// Whether no more can be appended.
    pub(crate) is_sealed: bool,
    /// Where the first piece begins that may still be compacted, in bytes.
    pub(crate) compacted_to: u64,
    /// Length of the rows with bytes from there on, in bytes.
    pub(crate) row_bytes: u64,
}

impl AppendContent {
    /// An empty one.
    pub(crate) fn new(generation: u64) -> Self {
        let (size, blocks, compacted_to, row_bytes) = (0, 0, 0, 0);
        Self { generation, size, blocks, is_sealed: false, compacted_to, row_bytes }
    }
}

impl Content {
    /// Length, in bytes.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Inline { size } | Self::Blocks { size, .. } => *size,
            Self::Whole(part) => part.size,
            Self::Append(content) => content.size,
            Self::Pages(content) => content.size,
        }
    }

    /// The number of its pieces or its chunks, if it has any.
    pub(crate) fn generation(&self) -> Option<u64> {
        match self {
            Self::Inline { .. } | Self::Whole(_) | Self::Blocks { .. } => None,
            Self::Append(content) => Some(content.generation),
            Self::Pages(content) => Some(content.generation),
        }
    }

    /// Whether this content has the bytes of an earlier one at the same offsets.
    pub(crate) fn has_bytes_of(&self, earlier: &Self) -> bool {
        match self.generation() {
            None => self == earlier,
            generation => generation == earlier.generation(),
        }
    }

    /// Content of a kind, without bytes.
    pub(crate) fn empty(kind: BlobKind) -> Self {
        match kind {
            BlobKind::Block => Self::Inline { size: 0 },
            BlobKind::Append => Self::Append(AppendContent::new(0)),
            BlobKind::Page => {
                Self::Pages(PageContent { generation: 0, size: 0, sequence_number: 0 })
            }
        }
    }

    /// How it is written.
    pub(crate) fn kind(&self) -> BlobKind {
        match self {
            Self::Inline { .. } | Self::Whole(_) | Self::Blocks { .. } => BlobKind::Block,
            Self::Append(_) => BlobKind::Append,
            Self::Pages(_) => BlobKind::Page,
        }
    }
}

/// Bytes in the objects of one content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// The number in the names of the objects.
    pub(crate) content: ContentId,
    /// What the checksums of the objects are over beside their bytes and names: random, so that bytes which another
    /// server wrote under the same name differ from their checksums. 0 in contents that earlier versions wrote.
    pub(crate) mark: u64,
    /// Length, in bytes; at least 1.
    pub(crate) size: u64,
}

/// A block: its id and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredBlock {
    /// The id that its client chose.
    pub(crate) id: Bytes,
    /// Its bytes.
    pub(crate) part: Part,
}

/// The staged blocks of a blob as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Staging {
    /// The number in the keys of the blocks: the version of the change that staged the first.
    pub(crate) generation: u64,
    /// The version of the change that staged the last.
    pub(crate) changed_at: Ticks,
    /// The length of each id.
    pub(crate) id_bytes: u64,
    /// How many blocks there are.
    pub(crate) count: u64,
    /// Their length together, in bytes.
    pub(crate) size: u64,
}

/// What a change left behind, to be deleted once no reader can need it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Retired {
    /// Contents that nothing refers to.
    pub(crate) parts: Vec<Part>,
    /// The number of a block list, with the contents of its blocks.
    pub(crate) list: Option<u64>,
    /// The number of staged blocks.
    pub(crate) staging: Option<RetiredStaging>,
    /// The number of the pieces of an append blob, or of the chunks of a page blob.
    pub(crate) generation: Option<u64>,
}

/// Staged blocks that are no longer staged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetiredStaging {
    /// The number in their keys.
    pub(crate) generation: u64,
    /// Whether their contents go too; otherwise some were committed, and the others are retired by themselves.
    pub(crate) with_contents: bool,
}

impl Retired {
    /// Retires the objects of a content.
    pub(crate) fn content(&mut self, content: &Content) {
        match content {
            Content::Inline { .. } => {}
            Content::Whole(part) => self.parts.push(*part),
            Content::Blocks { list, .. } => self.list = Some(*list),
            Content::Append(_) | Content::Pages(_) => self.generation = content.generation(),
        }
    }

    /// Retires staged blocks with their contents.
    pub(crate) fn staging(&mut self, staging: Option<&Staging>) {
        self.staging = staging
            .map(|staging| RetiredStaging { generation: staging.generation, with_contents: true });
    }

    /// Whether there is nothing.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
