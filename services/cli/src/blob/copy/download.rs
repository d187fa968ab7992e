//! Blobs to files. A file has its name only when it is complete and on stable storage.

#[cfg(test)]
mod tests;

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use futures::{TryStreamExt as _, stream};
use tokio::io::AsyncWriteExt as _;
use trestle_command::{
    errors::CliError,
    files::{self, OutputTarget},
};

use super::{BlobTransfer, blocking, not_copied::SkippedItem, part_file::PartFile};
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

/// Removes the blobs whose files would be where others need a folder: of `a` and `a/b`, the first.
fn take_without_place(blobs: &mut Vec<SourceBlob>) -> Vec<SourceBlob> {
    let folders: HashSet<PathBuf> =
        blobs.iter().flat_map(|blob| blob.to.ancestors().skip(1)).map(Path::to_owned).collect();
    blobs.extract_if(.., |blob| folders.contains(&blob.to)).collect()
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
    /// The blob, or the blobs in the folder, each with its file. Reports those that have no place in it.
    pub(super) async fn find_blobs(
        &self,
        from: &BlobAddress,
        to: &Path,
    ) -> Result<Vec<SourceBlob>, CliError> {
        if !self.is_folder {
            let (from, to) = (from.clone().of_blob()?, to.to_owned());
            let target = blocking(move || target(&from, to)).await?;
            return Ok(vec![target]);
        }
        let folder = from.folder();
        let listing = BlobListing::new(&self.session, folder.clone(), String::new()).blobs();
        let mut listing = std::pin::pin!(listing);
        let mut found = Vec::new();
        while let Some(blob) = listing.try_next().await? {
            let below = blob.name.strip_prefix(&folder.name).unwrap_or_default();
            match relative_path(below) {
                Ok(path) => {
                    let (size, from) = (Some(blob.size), folder.with_name(blob.name));
                    found.push(SourceBlob { size, from, to: to.join(path) });
                }
                Err(error) => self.skip(&SkippedItem::new(blob.name, &error)),
            }
        }
        for SourceBlob { from, .. } in take_without_place(&mut found) {
            let why = "its file would be where the blobs below it need a folder".to_owned();
            self.skip(&SkippedItem { name: from.name, why });
        }
        Ok(found)
    }

    /// Copies the blobs.
    pub(super) async fn download_all(
        &self,
        blobs: Vec<SourceBlob>,
        state: &BlobStateArgs,
    ) -> Result<(), CliError> {
        self.progress.set_length(blobs.iter().filter_map(|blob| blob.size).sum());
        let downloads = stream::iter(blobs.into_iter().map(Ok));
        let download = |blob: SourceBlob| async move {
            let (name, mut copied) = (blob.from.name.clone(), 0);
            let downloaded = self.download(blob, state.clone(), &mut copied).await;
            self.end_item((&name, copied), downloaded)
        };
        downloads.try_for_each_concurrent(self.parallel, download).await
    }

    /// Copies a blob, and counts its bytes in `copied` too.
    async fn download(
        &self,
        blob: SourceBlob,
        state: BlobStateArgs,
        copied: &mut u64,
    ) -> Result<(), CliError> {
        let _slot = self.slot().await?;
        let mut content = BlobContent::new(&self.session, blob.from).of_state(state);
        // The first bytes come before the file: an absent blob makes none.
        let mut data = content.next().await?;
        let (part, file) = blocking(move || PartFile::create(blob.to)).await?;
        let mut file = tokio::fs::File::from_std(file);
        while let Some(bytes) = data {
            let written = file.write_all(&bytes).await;
            written.map_err(CliError::file(files::cannot("write", &part.path)))?;
            *copied += bytes.len() as u64;
            self.advance(bytes.len() as u64);
            data = content.next().await?;
        }
        let written = file.flush().await;
        written.map_err(CliError::file(files::cannot("write", &part.path)))?;
        let file = file.into_std().await;
        blocking(move || part.complete(&file)).await
    }
}
