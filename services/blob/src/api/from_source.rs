//! Data of a call that the server reads itself, from a blob or from a URL.

use std::pin::Pin;

use bytes::Bytes;
use futures::{Stream, TryStreamExt as _};
use tonic::{Status, Streaming};
use trestle_service::fault::Fault;

use super::{
    BlobApi, failed,
    parse::{CopySource, DataSource},
    upload::{UploadMessage, end, finished, invalid, receive, too_large},
};
use crate::{
    authorize::{BlobAccess, BlobNeed},
    blobs::of_source,
    conditions::Freshness,
    error::BlobError,
    upload::{Upload, Uploaded},
};

/// Pieces of a source.
type SourcePieces = Pin<Box<dyn Stream<Item = Result<Bytes, BlobError>> + Send>>;

impl BlobApi {
    /// The data of an upload, from its messages or from a source.
    pub(super) async fn receive_from<M: Into<UploadMessage<T>>, T>(
        &self,
        (access, source): (&BlobAccess, Option<DataSource>),
        mut upload: Upload,
        (first, messages): (UploadMessage<T>, &mut Streaming<M>),
        bytes_max: u64,
    ) -> Result<Uploaded, Status> {
        let Some(source) = source else {
            return receive(upload, first, messages, bytes_max, None).await;
        };
        if !first.data.is_empty() {
            return Err(invalid("data", "must be empty where there is a source"));
        }
        let missing = || invalid("finish", "required in the first message where there is a source");
        let finish = first.finish.ok_or_else(missing)?;
        end(messages).await?;
        let mut pieces = self.open_source(access, source).await.map_err(failed)?;
        while let Some(piece) = pieces.try_next().await.map_err(failed)? {
            if upload.size().saturating_add(piece.len() as u64) > bytes_max {
                return Err(too_large(bytes_max));
            }
            upload.push(piece).await.map_err(failed)?;
        }
        finished(upload, &finish, None).await
    }

    async fn open_source(
        &self,
        access: &BlobAccess,
        source: DataSource,
    ) -> Result<SourcePieces, Fault> {
        let DataSource { from, range, headers, required: (conditions, lease_id) } = source;
        match from {
            CopySource::Blob(source) => {
                let key = self.key(&access.also(BlobNeed::Read)?, &source.names).await?;
                let opened = self.blobs.open((key, source.state), range, (&conditions, lease_id));
                let opened = opened.await.map_err(of_source)?;
                if opened.freshness == Freshness::NotModified {
                    return Err(BlobError::SourceCondition.into());
                }
                Ok(Box::pin(self.blobs.clone().bytes(&opened).map_err(of_source)))
            }
            CopySource::Url(uri) => {
                let content = match range {
                    Some(range) => self.servers.open_range(uri, headers, range).await?,
                    None => self.servers.open(uri, headers).await?,
                };
                Ok(Box::pin(content.bytes()))
            }
        }
    }
}
