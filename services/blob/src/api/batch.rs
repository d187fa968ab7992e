//! Deleting many blobs in one call, each with an outcome of its own.

use futures::{StreamExt as _, stream};
use trestle_model::fault::{Fault, Reason};
use trestle_model::limits::DELETED_BLOBS_MAX;
use trestle_proto::blob::v1 as proto;
use trestle_rpc::status::IntoStatus as _;

use super::BlobApi;
use crate::{BLOB_SERVICE, authorize::BlobAccess};

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
        let of_item = |fault: Fault| fault.into_item_status(BLOB_SERVICE);
        let results =
            outcomes.map(|outcome| proto::DeleteBlobResult { error: outcome.err().map(of_item) });
        Ok(proto::DeleteBlobsResponse { results: results.collect().await })
    }
}
