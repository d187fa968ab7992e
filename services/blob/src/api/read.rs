//! The content of a blob as a stream: the blob first, then its bytes.

use std::{
    sync::{Arc, LazyLock},
    time::Instant,
};

use bytes::Bytes;
use futures::{StreamExt as _, stream};
use tonic::Status;
use trestle_model::fault::Fault;
use trestle_proto::blob::v1 as proto;
use trestle_rpc::{call_statistics::StatisticsRecorder, log_rate::LogRate};

use super::{BlobApi, ReadResponses, failed, parse::RequestParser};
use crate::{
    authorize::BlobAccess,
    conditions::Freshness,
    error::BlobError,
    names::{BlobName, ContainerName},
};

impl BlobApi {
    pub(super) async fn read(
        &self,
        access: &BlobAccess,
        request: proto::ReadBlobRequest,
        recorder: StatisticsRecorder,
    ) -> Result<ReadResponses, Fault> {
        let access = &access.to_state(&request.snapshot, &request.version_id);
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let range = parser.range(request.range, "range");
        let state = parser.state(&request.snapshot, &request.version_id);
        let (conditions, lease_id) = parser.blob_conditions(request.conditions);
        let names = parser.finish(names)?;
        let key = self.key(access, &names).await?;
        let revocable = access.may_be_revoked();
        let revocable =
            revocable.then(|| Arc::new((self.clone(), access.clone(), names.clone(), key.clone())));
        let blobs = self.blobs_for(access);
        let opened = blobs.open((key, state), range, (&conditions, lease_id)).await?;
        let not_modified = opened.freshness == Freshness::NotModified;
        let read = &opened.range;
        let read = proto::ByteRange { offset: read.start, length: Some(read.end - read.start) };
        let first = proto::ReadBlobResponse {
            blob: Some(self.show_state(access, &names, opened.state, opened.record.clone())),
            data: Bytes::new(),
            range: range.filter(|_| !not_modified).map(|_| read),
            not_modified,
        };
        if not_modified {
            return Ok(Box::pin(stream::iter([Ok(first)])));
        }
        let mut pieces = blobs.bytes(&opened);
        let report = move |error: &BlobError| report_damage(&names, error);
        // The first piece is part of the first message: a small blob is one message.
        let data = pieces.next().await.transpose().inspect_err(&report)?.unwrap_or_default();
        let count = move |data: &Bytes| {
            recorder.record(|statistics| statistics.bytes += data.len() as u64);
        };
        count(&data);
        let rest = pieces.then(move |piece: Result<Bytes, BlobError>| {
            let revocable = revocable.clone();
            let piece = piece.inspect_err(&report);
            if let Ok(data) = &piece {
                count(data);
            }
            async move {
                let data = piece.map_err(failed)?;
                if let Some((api, access, names, key)) = revocable.as_deref() {
                    api.check_container(access, names, key).await.map_err(failed)?;
                }
                Ok::<_, Status>(proto::ReadBlobResponse { data, ..Default::default() })
            }
        });
        let first = proto::ReadBlobResponse { data, ..first };
        Ok(Box::pin(stream::iter([Ok(first)]).chain(rest)))
    }
}

/// Logs that content of a blob is damaged, once in ten seconds: the error of the call does not name the blob.
fn report_damage((container, blob): &(ContainerName, BlobName), error: &BlobError) {
    static LINES: LazyLock<LogRate> = LazyLock::new(LogRate::default);
    if let BlobError::Corrupt(damage) = error
        && let Some(omitted) = LINES.may_log((), Instant::now())
    {
        let (container, blob) = (container.as_str(), blob.as_str());
        tracing::error!(container, blob, %damage, omitted, "the content of a blob is damaged");
    }
}
