//! Deleting many blobs in one call, each with an outcome of its own.

use futures::{StreamExt as _, stream};
use prost::Message as _;
use trestle_proto::blob::v1 as proto;
use trestle_service::{
    fault::{Fault, Reason},
    limits::DELETED_BLOBS_MAX,
};

use super::{BlobApi, failed};
use crate::authorize::BlobAccess;

/// Deletions of one call that are in progress at once: their commits share syncs.
const CONCURRENCY: usize = 32;

impl BlobApi {
    pub(super) async fn delete_many(
        &self,
        access: &BlobAccess,
        request: proto::DeleteBlobsRequest,
    ) -> Result<proto::DeleteBlobsResponse, Fault> {
        let count = request.requests.len();
        if !(1..=DELETED_BLOBS_MAX).contains(&count) {
            let rule = format!("must have 1 to {DELETED_BLOBS_MAX}: count=`{count}`");
            return Err(Fault::violation(Reason::InvalidInput, "requests", rule));
        }
        let mut deletions = Vec::with_capacity(count);
        for request in request.requests {
            deletions.push(self.delete(access, request));
        }
        let outcomes = stream::iter(deletions).buffered(CONCURRENCY);
        let results = outcomes
            .map(|outcome| proto::DeleteBlobResult { error: outcome.err().map(error_of_item) });
        Ok(proto::DeleteBlobsResponse { results: results.collect().await })
    }
}

/// An error as part of a response.
fn error_of_item(fault: Fault) -> tonic_types::Status {
    let status = failed(fault);
    // The details of a status are an encoded `google.rpc.Status`.
    let plain = || tonic_types::Status {
        code: status.code().into(),
        message: status.message().to_owned(),
        details: Vec::new(),
    };
    tonic_types::Status::decode(status.details()).unwrap_or_else(|_| plain())
}
