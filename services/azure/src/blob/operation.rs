//! The operations of requests to blobs.

use crate::protocol::{BodyTransfer, Target};

/// Most bytes of a blob that one request writes: 5,000 MiB, as Azure has it.
const BLOB_BYTES_MAX: u64 = 5000 * 1024 * 1024;
/// The unit of the bounds of earlier versions.
const MIB: u64 = 1024 * 1024;
/// Most bytes of a document: a list of the most blocks, each with the longest id.
const DOCUMENT_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Most bytes of a batch of requests.
const BATCH_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// An operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BlobOperation {
    /// One on the account.
    Account(OnBlobAccount),
    /// One on a container, by name.
    Container(String, OnContainer),
    /// One on a blob.
    Blob(BlobPath, OnBlob),
    /// A read of the website of the account, at a path without its first `/`.
    Website(String),
}

/// The names of a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlobPath {
    /// The container.
    pub(crate) container: String,
    /// The blob in it.
    pub(crate) blob: String,
}

/// Operations on an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnBlobAccount {
    /// Lists its containers, one page.
    ListContainers,
    /// Gets the settings of the service.
    GetProperties,
    /// Sets the settings of the service.
    SetProperties,
    /// Gets the replication statistics.
    GetStats,
    /// Gets the kind of the account, also on a container or a blob.
    GetInformation,
    /// Gets a user delegation key.
    GetDelegationKey,
    /// Finds blobs by their tags.
    FindBlobs,
    /// A batch of requests.
    Batch,
}

/// Operations on a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnContainer {
    /// Creates it.
    Create,
    /// Deletes it.
    Delete,
    /// Gets its properties.
    Get,
    /// Sets its metadata.
    SetMetadata,
    /// Gets its stored access policies.
    GetPolicies,
    /// Sets its stored access policies, and its public access.
    SetPolicies,
    /// Changes its lease.
    Lease,
    /// Restores it after it was deleted.
    Undelete,
    /// Lists its blobs, one page.
    ListBlobs,
    /// Finds its blobs by their tags.
    FindBlobs,
    /// A batch of requests to it.
    Batch,
}

/// How a blob is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PutKind {
    /// As a whole or from blocks.
    Block,
    /// At its end.
    Append,
    /// In pages.
    Page,
}

/// Where the data of a write is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataFrom {
    /// In the body of the request.
    Body,
    /// At the URL that a header has.
    Url,
}

/// Operations on a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnBlob {
    /// Writes it, or creates an empty one.
    Put(PutKind),
    /// Writes it from a URL, without the state of a copy.
    PutFromUrl,
    /// Copies it from a URL.
    Copy,
    /// Ends a copy.
    AbortCopy,
    /// Reads it.
    Get,
    /// Gets its properties.
    GetProperties,
    /// Gets its metadata.
    GetMetadata,
    /// Sets its metadata.
    SetMetadata,
    /// Sets its HTTP properties.
    SetProperties,
    /// Sets the size or the sequence number of a page blob.
    ResizePages,
    /// Deletes it.
    Delete,
    /// Restores it after it was deleted.
    Undelete,
    /// Takes a snapshot of it.
    Snapshot,
    /// Changes its lease.
    Lease,
    /// Sets its access tier.
    SetTier,
    /// Gets its tags.
    GetTags,
    /// Sets its tags.
    SetTags,
    /// Stages a block.
    StageBlock(DataFrom),
    /// Commits blocks.
    CommitBlocks,
    /// Gets the list of its blocks.
    GetBlockList,
    /// Appends a block.
    AppendBlock(DataFrom),
    /// Seals it, so that nothing is appended.
    Seal,
    /// Writes pages.
    WritePages(DataFrom),
    /// Clears pages.
    ClearPages,
    /// Lists the ranges of its pages.
    ListPageRanges,
}

/// The path of a method of the service.
macro_rules! method {
    ($name:literal) => {
        concat!("/trestle.blob.v1.BlobService/", $name)
    };
}

impl BlobOperation {
    /// The target of the operation.
    pub(crate) fn target(&self) -> Target {
        let (path, reads) = match self {
            Self::Account(operation) => operation.target(),
            Self::Container(_, operation) => operation.target(),
            Self::Blob(_, operation) => operation.target(),
            Self::Website(_) => OnBlob::Get.target(),
        };
        Target { path, reads }
    }

    /// The body transfer of the operation.
    pub(crate) fn transfer(&self) -> BodyTransfer {
        match self {
            Self::Account(OnBlobAccount::Batch) | Self::Container(_, OnContainer::Batch) => {
                // Its requests are calls of their own, one after the other.
                BodyTransfer { request_bytes_max: BATCH_BYTES_MAX, is_streamed: true }
            }
            Self::Account(_) | Self::Container(..) => BodyTransfer::collected(DOCUMENT_BYTES_MAX),
            Self::Blob(_, operation) => operation.transfer(),
            Self::Website(_) => OnBlob::Get.transfer(),
        }
    }
}

impl OnBlobAccount {
    fn target(self) -> (&'static str, bool) {
        match self {
            Self::ListContainers => (method!("ListContainers"), true),
            Self::GetProperties | Self::GetInformation | Self::GetDelegationKey => {
                (method!("GetServiceProperties"), true)
            }
            Self::SetProperties => (method!("SetServiceProperties"), false),
            Self::GetStats => (method!("GetServiceStats"), true),
            Self::FindBlobs => (method!("FindBlobs"), true),
            Self::Batch => (method!("DeleteBlobs"), false),
        }
    }

    /// The path of the method.
    pub(crate) fn path(self) -> &'static str {
        self.target().0
    }
}

impl OnContainer {
    fn target(self) -> (&'static str, bool) {
        match self {
            Self::Create => (method!("CreateContainer"), false),
            Self::Delete => (method!("DeleteContainer"), false),
            Self::Get => (method!("GetContainer"), true),
            Self::SetMetadata => (method!("UpdateContainer"), false),
            Self::GetPolicies => (method!("GetContainerAccessPolicies"), true),
            Self::SetPolicies => (method!("SetContainerAccessPolicies"), false),
            Self::Lease => (method!("LeaseContainer"), false),
            Self::Undelete => (method!("UndeleteContainer"), false),
            Self::ListBlobs => (method!("ListBlobs"), true),
            Self::FindBlobs => (method!("FindBlobs"), true),
            Self::Batch => (method!("DeleteBlobs"), false),
        }
    }

    /// The path of the method.
    pub(crate) fn path(self) -> &'static str {
        self.target().0
    }
}

impl OnContainer {
    /// Whether the operation only reads.
    pub(crate) fn reads(self) -> bool {
        self.target().1
    }
}

impl OnBlob {
    fn target(self) -> (&'static str, bool) {
        match self {
            Self::Put(PutKind::Block) => (method!("WriteBlob"), false),
            Self::Put(PutKind::Append) => (method!("CreateAppendBlob"), false),
            Self::Put(PutKind::Page) => (method!("CreatePageBlob"), false),
            Self::PutFromUrl | Self::Copy => (method!("CopyBlob"), false),
            Self::AbortCopy => (method!("AbortCopyBlob"), false),
            Self::Get => (method!("ReadBlob"), true),
            Self::GetProperties | Self::GetMetadata => (method!("GetBlob"), true),
            Self::SetMetadata | Self::SetProperties => (method!("UpdateBlob"), false),
            Self::ResizePages => (method!("UpdatePageBlob"), false),
            Self::Delete => (method!("DeleteBlob"), false),
            Self::Undelete => (method!("UndeleteBlob"), false),
            Self::Snapshot => (method!("SnapshotBlob"), false),
            Self::Lease => (method!("LeaseBlob"), false),
            Self::SetTier => (method!("SetBlobTier"), false),
            Self::GetTags => (method!("GetBlobTags"), true),
            Self::SetTags => (method!("SetBlobTags"), false),
            Self::StageBlock(_) => (method!("StageBlock"), false),
            Self::CommitBlocks => (method!("CommitBlocks"), false),
            Self::GetBlockList => (method!("GetBlockList"), true),
            Self::AppendBlock(_) => (method!("AppendBlock"), false),
            Self::Seal => (method!("SealBlob"), false),
            Self::WritePages(_) => (method!("WritePages"), false),
            Self::ClearPages => (method!("ClearPages"), false),
            Self::ListPageRanges => (method!("ListPageRanges"), true),
        }
    }

    /// The path of the method.
    pub(crate) fn path(self) -> &'static str {
        self.target().0
    }

    /// Whether the operation reads a source at a URL.
    pub(crate) fn has_source(self) -> bool {
        let url = DataFrom::Url;
        let writes = [Self::StageBlock(url), Self::AppendBlock(url), Self::WritePages(url)];
        [Self::Copy, Self::PutFromUrl].contains(&self) || writes.contains(&self)
    }

    /// The bound on the body of a request of a version of the protocol that has a lower one than the newest.
    pub(crate) fn earlier_bytes_max(self, version: &str) -> Option<u64> {
        // Each up to the version that raised it; dates sort as texts.
        let bounds: &[(&str, u64)] = match self {
            Self::Put(PutKind::Block) => &[("2016-05-31", 64 * MIB), ("2019-12-12", 256 * MIB)],
            Self::StageBlock(DataFrom::Body) => {
                &[("2016-05-31", 4 * MIB), ("2019-12-12", 100 * MIB)]
            }
            Self::AppendBlock(DataFrom::Body) => &[("2022-11-02", 4 * MIB)],
            _ => &[],
        };
        bounds.iter().find(|(raised, _)| version < *raised).map(|(_, bytes_max)| *bytes_max)
    }

    /// Whether its content may be a structured message: that of the request, or that of the response to a read.
    pub(crate) fn has_content(self) -> bool {
        let body = DataFrom::Body;
        let writes = [Self::StageBlock(body), Self::AppendBlock(body), Self::WritePages(body)];
        [Self::Put(PutKind::Block), Self::Get].contains(&self) || writes.contains(&self)
    }

    /// Whether the operation only reads the blob, or a snapshot or a version of it.
    pub(crate) fn target_reads(self) -> bool {
        self.target().1
    }

    fn transfer(self) -> BodyTransfer {
        use trestle_model::limits::{APPEND_BYTES_MAX, BLOCK_BYTES_MAX, PAGES_BYTES_MAX};

        let streamed = |request_bytes_max| BodyTransfer { request_bytes_max, is_streamed: true };
        match self {
            Self::Put(PutKind::Block) => streamed(BLOB_BYTES_MAX),
            Self::StageBlock(DataFrom::Body) => streamed(BLOCK_BYTES_MAX),
            Self::AppendBlock(DataFrom::Body) => streamed(APPEND_BYTES_MAX),
            Self::WritePages(DataFrom::Body) => streamed(PAGES_BYTES_MAX),
            // The response is a stream, or takes as long as the source has bytes.
            Self::Get
            | Self::Copy
            | Self::PutFromUrl
            | Self::StageBlock(DataFrom::Url)
            | Self::AppendBlock(DataFrom::Url)
            | Self::WritePages(DataFrom::Url) => streamed(0),
            _ => BodyTransfer::collected(DOCUMENT_BYTES_MAX),
        }
    }
}
