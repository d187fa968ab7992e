//! The protocol of blobs: headers and bytes in and out, and XML for lists.
//!
//! `route` determines the operation of a request; `account`, `containers`, `list`, `read`, `write`, `change`, `lease`,
//! `blocks`, `pages` and `copy` make its call and write the response. `header`, `conditions` and `properties` translate
//! headers; `upload` makes messages of a body. `batch` performs several requests. `website` serves pages.

mod account;
mod batch;
mod blocks;
mod change;
mod conditions;
mod containers;
mod copy;
mod fields;
#[cfg(test)]
mod fixture;
pub(crate) mod header;
mod lease;
mod list;
mod operation;
mod pages;
mod properties;
mod range;
mod read;
pub(crate) mod route;
mod source;
mod structured_body;
mod upload;
mod website;
mod write;

use bytes::Bytes;
use http::{HeaderMap, Response};
use tonic::body::Body;
use trestle_identity::{
    credentials::Identity,
    spec::{BLOB, ServiceSpec},
};

use self::{
    operation::{BlobOperation, BlobPath, DataFrom, OnBlob, OnBlobAccount, OnContainer, PutKind},
    source::SourceUrl,
};
use crate::{
    error::{ErrorResponse, RestError, document},
    grpc_call::GrpcCall,
    head::RequestHead,
    protocol::{BodyTransfer, RestProtocol, Target},
    request_body::RequestBody,
    version,
};

/// See the module.
#[derive(Clone)]
pub(crate) struct BlobProtocol {
    /// For user delegation keys, and for the requests in a batch, each of which has credentials of its own.
    identity: Identity,
}

impl BlobProtocol {
    /// Creates the protocol, with the accounts and the wall clock of `identity`.
    pub(crate) fn new(identity: Identity) -> Self {
        Self { identity }
    }
}

impl RestProtocol for BlobProtocol {
    type Operation = BlobOperation;

    const SERVICE: &'static str = "blob";
    const UNKNOWN: &'static str = "/trestle.blob.v1.BlobService/";
    const SIGNATURES: &'static ServiceSpec = &BLOB;

    fn route(&self, head: &RequestHead) -> Result<BlobOperation, RestError> {
        route::route(head)
    }

    fn target(&self, operation: &BlobOperation) -> Target {
        operation.target()
    }

    fn transfer(&self, operation: &BlobOperation) -> BodyTransfer {
        operation.transfer()
    }

    async fn perform(
        &self,
        operation: BlobOperation,
        head: &RequestHead,
        body: RequestBody,
        call: GrpcCall,
    ) -> Result<Response<Body>, RestError> {
        let performed = match operation {
            BlobOperation::Account(OnBlobAccount::Batch) => {
                batch::perform(self, None, head, body, call).await
            }
            BlobOperation::Container(name, OnContainer::Batch) => {
                batch::perform(self, Some(&name), head, body, call).await
            }
            BlobOperation::Account(operation) => {
                let body = body.collect().await?;
                account::perform(operation, head, &body, call, &self.identity).await
            }
            BlobOperation::Container(name, operation) => {
                let body = body.collect().await?;
                containers::perform(name, operation, head, &body, call).await
            }
            BlobOperation::Website(path) => website::serve(&path, head, call).await,
            BlobOperation::Blob(path, operation) if operation.has_source() => {
                upload::check_no_body(&body)?;
                let call = SourceUrl::authorized(call, head, &self.identity)?;
                on_blob(path, operation, head, body, call).await
            }
            BlobOperation::Blob(path, operation) => {
                let body = of_version(body, operation, head);
                let performed = on_blob(path, operation, head, body, call).await;
                performed.map(|answer| structured_body::echo(answer, operation, head))
            }
        };
        performed.map_err(|error| error.with_fields(fields::name))
    }

    fn error_response(
        &self,
        response: &ErrorResponse,
        _: &HeaderMap,
        head: Option<&RequestHead>,
    ) -> Response<Body> {
        match head.is_some_and(|head| head.is_website) {
            true => website::error_page(response),
            false => document(response),
        }
    }
}

/// The body of a request, with the bound of its version of the protocol.
fn of_version(body: RequestBody, operation: OnBlob, head: &RequestHead) -> RequestBody {
    let version = version::negotiated(&head.headers, Some(&head.params));
    let earlier = operation.earlier_bytes_max(version.to_str().unwrap_or_default());
    let bytes_max = earlier.map_or(body.bytes_max, |earlier| earlier.min(body.bytes_max));
    RequestBody { bytes_max, ..body }
}

async fn on_blob(
    path: BlobPath,
    operation: OnBlob,
    head: &RequestHead,
    body: RequestBody,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    match operation {
        OnBlob::Put(PutKind::Block) => write::put(path, head, body, call).await,
        OnBlob::StageBlock(DataFrom::Body) => blocks::stage(path, head, body, call).await,
        OnBlob::AppendBlock(DataFrom::Body) => write::append(path, head, body, call).await,
        OnBlob::WritePages(DataFrom::Body) => pages::write(path, head, body, call).await,
        OnBlob::StageBlock(DataFrom::Url) => blocks::stage_from_url(path, head, call).await,
        OnBlob::AppendBlock(DataFrom::Url) => write::append_from_url(path, head, call).await,
        OnBlob::WritePages(DataFrom::Url) => pages::write_from_url(path, head, call).await,
        OnBlob::Get => read::get(path, head, call).await,
        OnBlob::GetProperties => read::properties(path, head, call).await,
        OnBlob::GetMetadata => read::metadata(path, head, call).await,
        OnBlob::PutFromUrl => copy::put_from_url(path, head, call).await,
        OnBlob::Copy => copy::copy(path, head, call).await,
        OnBlob::AbortCopy => copy::abort(path, head, call).await,
        OnBlob::Lease => lease::on_blob(path, head, call).await,
        OnBlob::CommitBlocks => {
            let body = body.collect().await?;
            blocks::commit(path, head, &body, call).await
        }
        other => {
            let body = body.collect().await?;
            upload::check_body(head, &body)?;
            with_document(path, other, head, &body, call).await
        }
    }
}

/// The operations whose requests have a document or nothing.
async fn with_document(
    path: BlobPath,
    operation: OnBlob,
    head: &RequestHead,
    body: &Bytes,
    call: GrpcCall,
) -> Result<Response<Body>, RestError> {
    match operation {
        OnBlob::Put(PutKind::Append) => write::create_append(path, head, body, call).await,
        OnBlob::Put(_) => pages::create(path, head, body, call).await,
        OnBlob::GetBlockList => blocks::list(path, head, call).await,
        OnBlob::Seal => write::seal(path, head, call).await,
        OnBlob::ClearPages => pages::clear(path, head, call).await,
        OnBlob::ListPageRanges => pages::list_ranges(path, head, call).await,
        OnBlob::ResizePages => pages::resize(path, head, call).await,
        OnBlob::SetMetadata => change::set_metadata(path, head, call).await,
        OnBlob::SetProperties => change::set_properties(path, head, call).await,
        OnBlob::Undelete => change::undelete(path, call).await,
        OnBlob::Snapshot => change::snapshot(path, head, call).await,
        OnBlob::SetTier => change::set_tier(path, head, call).await,
        OnBlob::GetTags => change::get_tags(path, head, call).await,
        OnBlob::SetTags => change::set_tags(path, head, body, call).await,
        // The others have no document, and are matched above.
        _ => change::delete(path, head, call).await,
    }
}
