//! States of a blob.

#[cfg(test)]
mod tests;

use trestle_model::fault::{Reason, quoted};
use trestle_model::time::Ticks;
use trestle_proto::blob::v1 as proto;

use super::RequestParser;
use crate::{
    blobs::{DeleteScope, StateName},
    past,
    record::ContainerId,
};

impl RequestParser {
    /// The state that a call reads: the blob itself if neither a snapshot nor a version is named.
    pub(in crate::api) fn state(&mut self, snapshot: &str, version_id: &str) -> StateName {
        let version = self.past(version_id, "version_id");
        let snapshot = self.past(snapshot, "snapshot");
        if version.is_some() && snapshot.is_some() {
            let rule = "must be absent where a snapshot is named";
            self.push(Reason::InvalidQueryParameterValue, "version_id", rule);
        }
        let snapshot = snapshot.map(StateName::Snapshot);
        version.map(StateName::Version).or(snapshot).unwrap_or(StateName::Current)
    }

    /// What a call deletes.
    pub(in crate::api) fn delete_scope(
        &mut self,
        request: &proto::DeleteBlobRequest,
    ) -> DeleteScope {
        let number = request.delete_snapshots;
        let scope = match proto::DeleteSnapshots::try_from(number) {
            Ok(proto::DeleteSnapshots::Unspecified) => DeleteScope::Blob,
            Ok(proto::DeleteSnapshots::Include) => DeleteScope::WithSnapshots,
            Ok(proto::DeleteSnapshots::Only) => DeleteScope::SnapshotsOnly,
            Err(_) => {
                let rule = format!("must be a known choice: value=`{number}`");
                self.push(Reason::InvalidQueryParameterValue, "delete_snapshots", rule);
                DeleteScope::Blob
            }
        };
        let one = match self.state(&request.snapshot, &request.version_id) {
            StateName::Current => return scope,
            StateName::Snapshot(at) => DeleteScope::Snapshot(at),
            StateName::Version(id) => DeleteScope::Version(id),
        };
        if scope != DeleteScope::Blob {
            let rule = "must be absent where a snapshot or a version is named";
            self.push(Reason::InvalidQueryParameterValue, "delete_snapshots", rule);
        }
        one
    }

    /// The id in the version of a deleted container; none if it is rejected.
    pub(in crate::api) fn container_version(&mut self, version: &str) -> Option<ContainerId> {
        let is_plain = version.len() == 16 && version.bytes().all(|it| it.is_ascii_hexdigit());
        let id = u64::from_str_radix(version, 16).ok().filter(|_| is_plain);
        if id.is_none() {
            let rule = format!("must be 16 hexadecimal digits: value=`{}`", quoted(version));
            self.push(Reason::InvalidHeaderValue, "version", rule);
        }
        id.map(ContainerId)
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
