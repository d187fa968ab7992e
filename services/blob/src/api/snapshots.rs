//! The calls on snapshots.

use trestle_model::fault::Fault;
use trestle_proto::blob::v1 as proto;

use super::{BlobApi, parse::RequestParser, render};
use crate::{authorize::BlobAccess, blobs::BlobState};

impl BlobApi {
    pub(super) async fn take_snapshot(
        &self,
        access: &BlobAccess,
        request: proto::SnapshotBlobRequest,
    ) -> Result<proto::SnapshotBlobResponse, Fault> {
        let mut parser = RequestParser::of(access);
        let names = parser.names(request.container, request.blob);
        let has_metadata = !request.metadata.is_empty();
        let metadata = parser.metadata(request.metadata, "metadata");
        let required = parser.blob_conditions(request.conditions);
        let names = parser.finish(names)?;
        let key = self.key(access, &names).await?;
        let metadata = has_metadata.then_some(metadata);
        let (at, record) = self.blobs.snapshot(key, metadata, required).await?;
        let snapshot = self.show_changed(access, &names, record);
        let snapshot = Some(render::with_state(snapshot, BlobState::Past(at)));
        Ok(proto::SnapshotBlobResponse { snapshot })
    }
}
