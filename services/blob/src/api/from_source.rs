//! Data of a call that the server reads itself, from a blob or from a URL.

use std::pin::Pin;

use bytes::Bytes;
use futures::{Stream, TryStreamExt as _};
use tonic::Status;
use trestle_model::fault::{Fault, Reason};
use trestle_rpc::upstream::in_process::RequestMessages;

use super::{
    BlobApi, failed,
    parse::{CopySource, DataSource},
    upload::{UploadMessage, check_finish, end, finished, invalid, of_spec, receive},
};
use crate::{
    authorize::{BlobAccess, BlobNeed},
    blobs::of_source,
    conditions::Freshness,
    error::BlobError,
    upload::{Upload, Uploaded},
};

/// A source that is read.
struct OpenedSource {
    /// How many bytes follow, where that is given.
    size: Option<u64>,
    pieces: Pin<Box<dyn Stream<Item = Result<Bytes, BlobError>> + Send>>,
}

impl BlobApi {
    /// The data of an upload, from its messages or from a source.
    pub(super) async fn receive_from<M: Into<UploadMessage<T>>, T>(
        &self,
        (access, source): (&BlobAccess, Option<DataSource>),
        mut upload: Upload,
        (first, messages): (UploadMessage<T>, &mut RequestMessages<M>),
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
        check_finish(&finish)?;
        end(messages).await?;
        let opened = self.open_source(access, source).await.map_err(of_spec)?;
        if opened.size.is_some_and(|size| size > bytes_max) {
            return Err(source_too_large(bytes_max));
        }
        let mut pieces = opened.pieces;
        while let Some(piece) = pieces.try_next().await.map_err(failed)? {
            if upload.size().saturating_add(piece.len() as u64) > bytes_max {
                return Err(source_too_large(bytes_max));
            }
            upload.push(piece).await.map_err(failed)?;
        }
        finished(upload, &finish, None).await
    }

    async fn open_source(
        &self,
        access: &BlobAccess,
        source: DataSource,
    ) -> Result<OpenedSource, Fault> {
        let DataSource { from, range, headers, required: (conditions, lease_id) } = source;
        match from {
            CopySource::Blob(source) => {
                let readable = access.to_source(BlobNeed::Read)?;
                let key = self.key(&readable, &source.names).await?;
                let blobs = self.blobs_for(&readable);
                let opened = blobs.open((key, source.state), range, (&conditions, lease_id));
                let opened = opened.await.map_err(of_source)?;
                if opened.freshness == Freshness::NotModified {
                    let unmet = conditions.not_modified(opened.record.etag);
                    return Err(BlobError::SourceUnmet(unmet).into());
                }
                let size = Some(opened.range.end - opened.range.start);
                let pieces = blobs.bytes(&opened).map_err(of_source);
                Ok(OpenedSource { size, pieces: Box::pin(pieces) })
            }
            CopySource::Url(uri) => {
                let content = match range {
                    Some(range) => self.servers.open_range(uri, headers, range).await?,
                    None => self.servers.open(uri, headers).await?,
                };
                Ok(OpenedSource { size: content.size, pieces: Box::pin(content.bytes()) })
            }
        }
    }
}

fn source_too_large(max: u64) -> Status {
    let rule = format!("must have at most {max} bytes, or a source_range of at most that length");
    of_spec(Fault::violation(Reason::RequestBodyTooLarge, "source", rule))
}
