//! The contents of a container as they are read to their ends.

use std::pin::Pin;
use trestle_rpc::status::IntoStatus as _;

use futures::{Stream, StreamExt as _};
use tonic::Status;
use trestle_identity::authorize::anonymous;
use trestle_model::fault::{Fault, Reason};
use trestle_model::page;
use trestle_model::time::Ticks;
use trestle_proto::blob::v1 as proto;

use super::{BlobApi, failed, parse, render};
use crate::{
    BLOB_SERVICE,
    authorize::{BlobAccess, BlobNeed},
    verify::VerifiedContent,
};

/// Responses of a stream.
pub(super) type VerifyResponses =
    Pin<Box<dyn Stream<Item = Result<proto::VerifyBlobsResponse, Status>> + Send>>;

impl BlobApi {
    pub(super) async fn verify(
        &self,
        access: &BlobAccess,
        request: proto::VerifyBlobsRequest,
    ) -> Result<VerifyResponses, Fault> {
        // Deleted states and staged blocks are not public.
        if access.is_anonymous() {
            return Err(anonymous());
        }
        let reads = access.also(BlobNeed::Read)?;
        let request = parse::verify_blobs(request)?;
        let name = request.container;
        let container = self.containers.open(access, &name, None).await?.id;
        self.containers.open(&reads, &name, None).await?;
        let prefix = request.prefix;
        let parts = [b"verify", &container.0.to_be_bytes()[..], prefix.as_bytes()];
        let identity = page::request_identity(&parts);
        let behind = match request.resume_token.as_str() {
            "" => None,
            token => Some(page::decode(token, identity).map_err(|error| {
                let reason = Reason::InvalidQueryParameterValue;
                Fault::violation(reason, "resume_token", error.to_string())
            })?),
        };
        let found = self.blobs.verify((container, &prefix), behind.as_deref(), request.at_once);
        let (name, blobs) = (name.as_str().to_owned(), self.blobs.clone());
        let responses = found.map(move |verified| {
            let verified = verified.map_err(failed)?;
            Ok(response(&name, verified, identity, blobs.now()))
        });
        Ok(Box::pin(responses))
    }
}

fn response(
    container: &str,
    verified: VerifiedContent,
    identity: u64,
    now: Ticks,
) -> proto::VerifyBlobsResponse {
    let VerifiedContent { blob: key, state, bytes, error, row } = verified;
    let (name, staged_blocks) = (key.name.as_str(), state.is_none());
    let blob = match state {
        None => render::named(container, name),
        Some((state, record)) => {
            render::with_state(render::blob(container, name, record, now), state)
        }
    };
    let error = error.map(|error| Fault::from(error).into_item_status(BLOB_SERVICE));
    let resume_token = page::encode(identity, &row);
    proto::VerifyBlobsResponse { blob: Some(blob), staged_blocks, bytes, error, resume_token }
}
