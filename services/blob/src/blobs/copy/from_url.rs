//! Copying content of another server.

use futures::TryStreamExt as _;
use trestle_model::limits::BLOB_BYTES_MAX;

use super::{CopyCommand, FinishedCopy, check_size};
use crate::{
    blobs::{BlobKey, Blobs, PutCommand},
    error::BlobError,
    record::{BlobKind, ContentProperties, Metadata},
    remote::RemoteContent,
    upload::{SmallContent, Upload, Uploaded},
};

/// A copy whose source responds and whose write was permitted when it began.
pub(crate) struct OpenedUrlCopy {
    blobs: Blobs,
    source: RemoteContent,
    target: BlobKey,
    command: PutCommand,
    bytes_max: u64,
}

impl Blobs {
    /// Opens a source, once it is checked whether the copy may be written.
    ///
    /// # Errors
    /// Those of a write of the target, and of the source.
    pub(crate) async fn open_url_copy(
        &self,
        source: impl Future<Output = Result<RemoteContent, BlobError>>,
        target: BlobKey,
        command: CopyCommand,
    ) -> Result<OpenedUrlCopy, BlobError> {
        let CopyCommand { metadata, tags, conditions, lease_id, tier, origin, properties, .. } =
            command;
        let block_bytes_max = command.block_bytes_max;
        if command.is_sealed {
            return Err(BlobError::OtherKind(target.name));
        }
        let mut command = PutCommand {
            metadata: metadata.unwrap_or_default(),
            tags: tags.unwrap_or_default(),
            conditions,
            lease_id,
            tier,
            origin,
            retention: command.retention,
            ..PutCommand::default()
        };
        self.check_put((&target, BlobKind::Block), &command).await?;
        let source = source.await?;
        check_size(source.size, block_bytes_max)?;
        command.properties = properties.unwrap_or_else(|| source.properties.clone());
        let bytes_max = block_bytes_max.unwrap_or(BLOB_BYTES_MAX);
        Ok(OpenedUrlCopy { blobs: self.clone(), source, target, command, bytes_max })
    }
}

impl OpenedUrlCopy {
    /// Length of the content, in bytes, where its server states it.
    pub(crate) fn size(&self) -> Option<u64> {
        self.source.size
    }

    /// The properties that the server states, unchecked.
    pub(crate) fn stated_properties(&self) -> &ContentProperties {
        &self.source.properties
    }

    /// The metadata that the server states, unchecked.
    pub(crate) fn stated_metadata(&self) -> &[(String, String)] {
        &self.source.metadata
    }

    /// With this metadata.
    pub(crate) fn with_metadata(mut self, metadata: Metadata) -> Self {
        self.command.metadata = metadata;
        self
    }

    /// The blob that is written.
    pub(crate) fn target(&self) -> &BlobKey {
        &self.target
    }

    /// Copies the content; `progress` gets how many bytes were copied. What is not published is deleted.
    ///
    /// # Errors
    /// [`BlobError::CopySource`] of content that breaks off, is too large or differs from the MD5 that its server
    /// states; those of the object store.
    pub(crate) async fn run(
        self,
        mut progress: impl FnMut(u64) + Send,
    ) -> Result<FinishedCopy, BlobError> {
        let Self { blobs, source, target, mut command, bytes_max } = self;
        let mut upload = Upload::new(&blobs, SmallContent::Inline, true);
        let mut pieces = Box::pin(source.bytes());
        while let Some(piece) = pieces.try_next().await? {
            if upload.size().saturating_add(piece.len() as u64) > bytes_max {
                return Err(BlobError::CopySource("it is too large".to_owned()));
            }
            upload.push(piece).await?;
            progress(upload.size());
        }
        let Uploaded { digests, content, written } = upload.finish().await?;
        if command.properties.md5.is_some_and(|stated| digests.md5 != Some(stated)) {
            let differs = "it differs from the MD5 that its server states";
            return Err(BlobError::CopySource(differs.to_owned()));
        }
        command.properties.md5 = digests.md5;
        Ok(FinishedCopy { blobs, target, command, content, written, digests: Some(digests) })
    }
}
