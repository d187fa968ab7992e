//! Blobs to blobs, and URLs to blobs: the server copies, and reports its progress.

#[cfg(test)]
mod tests;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use trestle_command::{client::Session, errors::CliError, retry::repeated};
use trestle_proto::blob::v1::{Blob, BlobConditions, BlobSource, CopyBlobRequest};

use super::BlobTransfer;
use crate::blob::{BlobAddress, BlobStateArgs, listing::BlobListing};

/// A copy that the server makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServerCopy {
    from: CopyFrom,
    /// The size of the source, if it was listed.
    size: Option<u64>,
    to: BlobAddress,
}

/// What the server copies.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CopyFrom {
    Blob(BlobAddress),
    Url(String),
}

/// The blob, or the blobs in the folder, each with its copy.
pub(super) async fn find(
    session: &Session,
    from: &BlobAddress,
    to: &BlobAddress,
    recursive: bool,
) -> Result<Vec<ServerCopy>, CliError> {
    if !recursive {
        let from = from.clone().of_blob()?;
        let to = named(to, from.last_segment());
        return Ok(vec![ServerCopy { from: CopyFrom::Blob(from), size: None, to }]);
    }
    let (folder, target) = (from.folder(), to.folder());
    let listing = BlobListing::new(session, folder.clone(), String::new()).blobs();
    let copy = |blob: Blob| {
        let below = blob.name.strip_prefix(&folder.name).unwrap_or_default();
        let to = target.with_name(format!("{}{below}", target.name));
        let from = CopyFrom::Blob(folder.with_name(blob.name));
        ServerCopy { from, size: Some(blob.size), to }
    };
    listing.map(|blob| blob.map(copy)).try_collect().await
}

/// The content of a URL, as a blob.
pub(super) fn from_url(url: String, to: &BlobAddress) -> Result<ServerCopy, CliError> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    let to = named(to, last).of_blob()?;
    Ok(ServerCopy { from: CopyFrom::Url(url), size: None, to })
}

/// The address; in a folder, the blob of this name in it.
fn named(to: &BlobAddress, name: &str) -> BlobAddress {
    match to.name.is_empty() || to.name.ends_with('/') {
        true => to.with_name(format!("{}{name}", to.name)),
        false => to.clone(),
    }
}

impl BlobTransfer {
    /// Makes the copies.
    pub(super) async fn copy_all(
        &self,
        copies: Vec<ServerCopy>,
        state: &BlobStateArgs,
        lease_id: &str,
    ) -> Result<(), CliError> {
        self.progress.set_length(copies.iter().filter_map(|copy| copy.size).sum());
        let copy = |copy: ServerCopy| async move {
            let _slot = self.slot().await?;
            let name = copy.to.name.clone();
            let request = copy.request(state.clone(), lease_id.to_owned());
            let copied = repeated(async || self.copy_on_server(request.clone()).await).await;
            self.end_item((&name, 0), copied.map(|blob| self.advance(blob.size)))
        };
        let copies = stream::iter(copies.into_iter().map(Ok));
        copies.try_for_each_concurrent(self.parallel, copy).await
    }

    async fn copy_on_server(&self, request: CopyBlobRequest) -> Result<Blob, CliError> {
        let mut responses = self.session.blobs().copy_blob(request).await?.into_inner();
        while let Some(response) = responses.message().await? {
            if let Some(blob) = response.blob {
                return Ok(blob);
            }
        }
        Err(CliError::Protocol("a copy that ends too early".to_owned()))
    }
}

impl ServerCopy {
    fn request(self, state: BlobStateArgs, lease_id: String) -> CopyBlobRequest {
        let conditions = Some(BlobConditions { lease_id, ..Default::default() });
        let BlobAddress { container, name: blob } = self.to;
        let request = CopyBlobRequest { container, blob, conditions, ..Default::default() };
        match self.from {
            CopyFrom::Url(source_url) => CopyBlobRequest { source_url, ..request },
            CopyFrom::Blob(BlobAddress { container, name: blob }) => {
                let BlobStateArgs { snapshot, version_id } = state;
                let source = Some(BlobSource { container, blob, snapshot, version_id });
                CopyBlobRequest { source, ..request }
            }
        }
    }
}
