//! Blobs to files. A file has its name only when it is complete and on stable storage.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use tokio::io::AsyncWriteExt as _;
use trestle_command::{
    client::Session,
    errors::CliError,
    files::{self, OutputTarget},
};

use super::{BlobTransfer, blocking, part_file::PartFile};
use crate::blob::{
    BlobAddress, BlobStateArgs, address::relative_path, content::BlobContent, listing::BlobListing,
};

/// A blob to copy.
pub(super) struct SourceBlob {
    from: BlobAddress,
    /// Its size, if it was listed.
    size: Option<u64>,
    to: PathBuf,
}

/// The blob, or the blobs in the folder, each with its file.
pub(super) async fn find(
    session: &Session,
    from: &BlobAddress,
    to: &Path,
    recursive: bool,
) -> Result<Vec<SourceBlob>, CliError> {
    if !recursive {
        let (from, to) = (from.clone().of_blob()?, to.to_owned());
        let target = blocking(move || target(&from, to)).await?;
        return Ok(vec![target]);
    }
    let folder = from.folder();
    let listing = BlobListing::new(session, folder.clone(), String::new()).blobs();
    let source = |blob: trestle_proto::blob::v1::Blob| {
        let below = blob.name.strip_prefix(&folder.name).unwrap_or_default();
        let to = to.join(relative_path(below)?);
        Ok(SourceBlob { size: Some(blob.size), from: folder.with_name(blob.name), to })
    };
    listing.map(|blob| blob.and_then(source)).try_collect().await
}

/// The file for a single blob.
fn target(from: &BlobAddress, to: PathBuf) -> Result<SourceBlob, CliError> {
    let is_folder = to.as_os_str().as_encoded_bytes().ends_with(b"/") || to.is_dir();
    let to = if is_folder { to.join(relative_path(from.last_segment())?) } else { to };
    match files::target(&to)? {
        OutputTarget::File(to) => Ok(SourceBlob { from: from.clone(), size: None, to }),
        OutputTarget::Standard | OutputTarget::Stream => {
            let rule = "must be a file or a folder, use `blob cat` for a pipe";
            Err(CliError::Usage(format!("{rule}: path=`{}`", to.display())))
        }
    }
}

impl BlobTransfer {
    /// Copies the blobs.
    pub(super) async fn download_all(
        &self,
        blobs: Vec<SourceBlob>,
        state: &BlobStateArgs,
    ) -> Result<(), CliError> {
        self.progress.set_length(blobs.iter().filter_map(|blob| blob.size).sum());
        let downloads = stream::iter(blobs.into_iter().map(Ok));
        let download = |blob| async move {
            self.download(blob, state.clone()).await?;
            self.complete();
            Ok(())
        };
        downloads.try_for_each_concurrent(self.parallel, download).await
    }

    async fn download(&self, blob: SourceBlob, state: BlobStateArgs) -> Result<(), CliError> {
        let _slot = self.slot().await?;
        let mut content = BlobContent::new(&self.session, blob.from).of_state(state);
        // The first bytes come before the file: an absent blob makes none.
        let mut data = content.next().await?;
        let (part, file) = blocking(move || PartFile::create(blob.to)).await?;
        let mut file = tokio::fs::File::from_std(file);
        while let Some(bytes) = data {
            let written = file.write_all(&bytes).await;
            written.map_err(CliError::file(files::cannot("write", &part.path)))?;
            self.advance(bytes.len() as u64);
            data = content.next().await?;
        }
        let written = file.flush().await;
        written.map_err(CliError::file(files::cannot("write", &part.path)))?;
        let file = file.into_std().await;
        blocking(move || part.complete(&file)).await
    }
}
