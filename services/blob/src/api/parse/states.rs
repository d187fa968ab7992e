//! States of a blob.

use trestle_proto::blob::v1 as proto;
use trestle_service::{
    clock::Ticks,
    fault::{Reason, quoted},
};

use super::RequestParser;
use crate::{
    blobs::{BlobState, DeleteScope},
    past,
};

impl RequestParser {
    /// The state that a call reads: the blob itself if no snapshot is named.
    pub(in crate::api) fn state(&mut self, snapshot: &str) -> BlobState {
        self.past(snapshot, "snapshot").map_or(BlobState::Current, BlobState::Snapshot)
    }

    /// What a call deletes.
    pub(in crate::api) fn delete_scope(
        &mut self,
        request: &proto::DeleteBlobRequest,
    ) -> DeleteScope {
        let scope = match request.delete_snapshots() {
            proto::DeleteSnapshots::Unspecified => DeleteScope::Blob,
            proto::DeleteSnapshots::Include => DeleteScope::WithSnapshots,
            proto::DeleteSnapshots::Only => DeleteScope::SnapshotsOnly,
        };
        let Some(at) = self.past(&request.snapshot, "snapshot") else { return scope };
        if scope != DeleteScope::Blob {
            let rule = "must be absent where a snapshot is named";
            self.push(Reason::InvalidQueryParameterValue, "delete_snapshots", rule);
        }
        DeleteScope::Snapshot(at)
    }

    /// The time in the name of a past state; none if it is empty or rejected.
    pub(in crate::api) fn past(&mut self, name: &str, field: &str) -> Option<Ticks> {
        if name.is_empty() {
            return None;
        }
        let at = past::parse(name);
        if at.is_none() {
            let rule = "must be a time such as 2019-08-28T17:07:35.2821851Z";
            let rule = format!("{rule}: value=`{}`", quoted(name));
            self.push(Reason::InvalidQueryParameterValue, field, rule);
        }
        at
    }
}
