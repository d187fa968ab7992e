//! Uploads: the body of a request as the messages of a call, in constant memory.

use bytes::Bytes;
use futures::stream;
use md5::{Digest as _, Md5};
use prost::Message;
use trestle_model::fault::{Fault, Reason};
use trestle_proto::blob::v1 as proto;

use super::{
    header::{self as names, CONTENT_CRC64, CONTENT_MD5},
    structured_body::{self, ContentPieces},
};
use crate::{error::RestError, grpc_call::GrpcCall, head::RequestHead, request_body::RequestBody};

/// A message of an upload.
pub(super) trait PutMessage: Message + Default + Send + 'static {
    /// What the first message has.
    type Spec: Send + 'static;

    /// A message with some of its parts.
    fn of(spec: Option<Self::Spec>, data: Bytes, finish: Option<proto::UploadFinish>) -> Self;
}

macro_rules! upload_messages {
    ($($message:ident: $spec:ident;)*) => {
        $(impl PutMessage for proto::$message {
            type Spec = proto::$spec;

            fn of(
                spec: Option<Self::Spec>,
                data: Bytes,
                finish: Option<proto::UploadFinish>,
            ) -> Self {
                Self { spec, data, finish }
            }
        })*
    };
}

upload_messages! {
    WriteBlobRequest: WriteBlobSpec;
    StageBlockRequest: StageBlockSpec;
    AppendBlockRequest: AppendBlockSpec;
    WritePagesRequest: WritePagesSpec;
}

/// Makes the call of an upload with the data in the body.
///
/// # Errors
/// Malformed checksums, a body that ends early or is too large, or a failed call.
pub(super) async fn upload<Q, A>(
    path: &'static str,
    spec: Q::Spec,
    head: &RequestHead,
    body: RequestBody,
    call: GrpcCall,
) -> Result<A, RestError>
where
    Q: PutMessage,
    A: Message + prost::Name + Default + 'static,
{
    // Over HTTP/2 a client that leaves without an error ends a body as one that is complete.
    if head.is_http2 && body.declared.is_none() {
        let message = "the length of the body is required over HTTP/2: Content-Length";
        return Err(Fault::new(Reason::MissingContentLengthHeader, message).into());
    }
    let structured = structured_body::of_upload(head)?;
    let size = structured.or(body.declared);
    let finish = proto::UploadFinish { size, ..checksums(head)? };
    let pieces = ContentPieces::new(body, structured)?;
    // A structured message is verified only at its end.
    let last_at = size.filter(|_| structured.is_none());
    let state = Uploading::<Q> { spec: Some(spec), pieces, last_at, sent: 0 };
    let messages = stream::unfold(Some(state), move |state| {
        let finish = finish.clone();
        async move { state?.next(finish).await }
    });
    call.client_streaming(path, messages).await
}

/// Makes the call of an upload whose data the server reads elsewhere.
///
/// # Errors
/// A failed call.
pub(super) async fn upload_from_source<Q, A>(
    path: &'static str,
    spec: Q::Spec,
    finish: proto::UploadFinish,
    call: GrpcCall,
) -> Result<A, RestError>
where
    Q: PutMessage,
    A: Message + prost::Name + Default + 'static,
{
    let message = Q::of(Some(spec), Bytes::new(), Some(finish));
    call.client_streaming(path, stream::iter([Ok(message)])).await
}

/// The checksums of the body that a request states.
///
/// # Errors
/// A malformed one, or both.
fn checksums(head: &RequestHead) -> Result<proto::UploadFinish, Fault> {
    let md5 = names::md5(head, &CONTENT_MD5)?;
    let crc64 = names::crc64(head, &CONTENT_CRC64)?;
    if crc64.is_some() && !md5.is_empty() {
        let rule = "must not be combined with content-md5";
        let reason = Reason::BothCrc64AndMd5HeaderPresent;
        return Err(Fault::violation(reason, CONTENT_CRC64.as_str(), rule));
    }
    Ok(proto::UploadFinish { md5: md5.into(), crc64, size: None })
}

/// An upload whose last message is not sent.
struct Uploading<Q: PutMessage> {
    /// What the first message has, until it is sent.
    spec: Option<Q::Spec>,
    pieces: ContentPieces,
    /// Bytes of content after which the upload is complete, where that is plain before the end of the body.
    last_at: Option<u64>,
    sent: u64,
}

impl<Q: PutMessage> Uploading<Q> {
    /// The next message, and the upload if another one follows.
    async fn next(
        mut self,
        finish: proto::UploadFinish,
    ) -> Option<(Result<Q, RestError>, Option<Self>)> {
        match self.pieces.next().await {
            None => Some((Ok(Q::of(self.spec, Bytes::new(), Some(finish))), None)),
            Some(Err(error)) => Some((Err(error), None)),
            Some(Ok(data)) => {
                self.sent += data.len() as u64;
                // The whole of a small body is one message.
                let is_last = self.last_at == Some(self.sent);
                let finish = is_last.then_some(finish);
                let message = Q::of(self.spec.take(), data, finish);
                Some((Ok(message), (!is_last).then_some(self)))
            }
        }
    }
}

/// Rejects a body where the operation has none.
pub(super) fn check_empty(body: &Bytes) -> Result<(), Fault> {
    if body.is_empty() {
        return Ok(());
    }
    let rule = format!("must be 0 for this operation: value=`{}`", body.len());
    Err(Fault::violation(Reason::InvalidHeaderValue, "content-length", rule))
}

/// Rejects a request that has a body where the data is elsewhere.
pub(super) fn check_no_body(body: &RequestBody) -> Result<(), Fault> {
    match body.declared {
        None | Some(0) => Ok(()),
        Some(declared) => {
            let rule = format!("must be 0 with a source: value=`{declared}`");
            Err(Fault::violation(Reason::InvalidHeaderValue, "content-length", rule))
        }
    }
}

/// Compares a body that is in memory with the checksums of its request. Returns its CRC-64.
///
/// # Errors
/// A malformed checksum, or another one than that of the body.
pub(super) fn check_body(head: &RequestHead, body: &Bytes) -> Result<u64, Fault> {
    let stated = checksums(head)?;
    let crc64 = names::crc64_of(body);
    if !stated.md5.is_empty() && stated.md5 != Md5::digest(body).as_slice() {
        let rule = "is not that of the body";
        return Err(Fault::violation(Reason::Md5Mismatch, CONTENT_MD5.as_str(), rule));
    }
    if stated.crc64.is_some_and(|stated| stated != crc64) {
        let rule = "is not that of the body";
        return Err(Fault::violation(Reason::Crc64Mismatch, CONTENT_CRC64.as_str(), rule));
    }
    Ok(crc64)
}
