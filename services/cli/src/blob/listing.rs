//! The blobs of a container, page by page.

use futures::{Stream, TryStreamExt as _, stream};
use trestle_command::{client::Session, errors::CliError, retry::repeated};
use trestle_proto::blob::v1::{Blob, ListBlobsRequest, listed_blob::Item};

use super::{BlobAddress, ListedStatesArgs};

/// A listing from its first page on.
pub(super) struct BlobListing {
    session: Session,
    request: ListBlobsRequest,
    is_complete: bool,
}

impl BlobListing {
    /// Blobs whose name begins with that of the address, grouped by the delimiter if there is one.
    pub(super) fn new(session: &Session, prefix: BlobAddress, delimiter: String) -> Self {
        let BlobAddress { container, name: prefix } = prefix;
        let request = ListBlobsRequest { container, prefix, delimiter, ..Default::default() };
        Self { session: session.clone(), request, is_complete: false }
    }

    /// With these states beside the blobs.
    pub(super) fn with_states(mut self, states: ListedStatesArgs) -> Self {
        self.request.include_snapshots = states.snapshots;
        self.request.include_versions = states.versions;
        self.request.include_deleted = states.deleted;
        self
    }

    /// The next page; none after the last. It may be empty.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Item>>, CliError> {
        if self.is_complete {
            return Ok(None);
        }
        let call = async || Ok(self.session.blobs().list_blobs(self.request.clone()).await?);
        let page = repeated::<_, CliError>(call).await?.into_inner();
        self.is_complete = page.next_page_token.is_empty();
        self.request.page_token = page.next_page_token;
        Ok(Some(page.items.into_iter().filter_map(|listed| listed.item).collect()))
    }

    /// Every blob.
    pub(super) fn blobs(self) -> impl Stream<Item = Result<Blob, CliError>> {
        let next = async |mut listing: Self| {
            Ok::<_, CliError>(listing.next().await?.map(|items| (items, listing)))
        };
        let pages = stream::try_unfold(self, next);
        let blob = |item| match item {
            Item::Blob(blob) => Some(Ok(blob)),
            Item::Prefix(_) => None,
        };
        pages.map_ok(move |items| stream::iter(items.into_iter().filter_map(blob))).try_flatten()
    }
}
