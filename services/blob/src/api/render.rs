//! From domain types to responses.

#[cfg(test)]
pub(super) mod tests;

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use trestle_kv::EngineStatus;
use trestle_model::time::Ticks;
use trestle_proto::blob::v1::{self as proto, listed_blob::Item};
use trestle_rpc::{instance::instance_id, served_store::durability};
use uuid::Uuid;

use super::{tags, tiers};
use crate::{
    blobs::{BlobState, ListedItem},
    lease::{LeaseResult, LeaseState, ResourceLease},
    past,
    record::{
        BlobCopy, BlobKind, BlobRecord, ContainerId, ContainerRecord, Content, ContentProperties,
        Deletion, PublicAccess, Retention, StoredBlock,
    },
};

/// A container.
pub(super) fn container(name: &str, record: ContainerRecord, now: Ticks) -> proto::Container {
    proto::Container {
        name: name.to_owned(),
        metadata: record.metadata.into_iter().collect(),
        etag: record.etag.quoted(),
        last_modified: Some(record.etag.0.into()),
        create_time: Some(record.created_at.into()),
        lease: record.deletion.is_none().then(|| lease(&record.lease, now)),
        delete_time: record.deletion.map(|deletion| deletion.at.into()),
        version: record.deletion.map(|_| container_version(record.id)).unwrap_or_default(),
        remaining_retention_days: remaining_days(record.deletion, now),
        public_access: public_access(record.public_access).into(),
    }
}

fn public_access(level: PublicAccess) -> proto::PublicAccess {
    match level {
        PublicAccess::None => proto::PublicAccess::Unspecified,
        PublicAccess::Blobs => proto::PublicAccess::Blob,
        PublicAccess::Container => proto::PublicAccess::Container,
    }
}

/// How a deleted container is named.
fn container_version(id: ContainerId) -> String {
    format!("{:016X}", id.0)
}

fn remaining_days(deletion: Option<Deletion>, now: Ticks) -> i32 {
    deletion.map_or(0, |deletion| whole_days(deletion.until.since(now)))
}

/// The names of a blob.
pub(super) fn named(container: &str, name: &str) -> proto::Blob {
    let (container, name) = (container.to_owned(), name.to_owned());
    proto::Blob { container, name, ..proto::Blob::default() }
}

/// A blob with content.
pub(super) fn blob(container: &str, name: &str, record: BlobRecord, now: Ticks) -> proto::Blob {
    let (appended, paged) = match record.content {
        Content::Append(content) => (Some(content), None),
        Content::Pages(content) => (None, Some(content)),
        _ => (None, None),
    };
    let described = tiers::with_tier(named(container, name), &record);
    proto::Blob {
        size: record.content.size(),
        etag: record.etag.quoted(),
        last_modified: Some(record.etag.0.into()),
        create_time: Some(record.created_at.into()),
        properties: Some(properties(record.properties)),
        metadata: record.metadata.into_iter().collect(),
        lease: Some(lease(&record.lease, now)),
        r#type: blob_type(record.content.kind()).into(),
        committed_block_count: appended.map_or(0, |content| block_count(content.blocks)),
        sequence_number: paged.map_or(0, |content| content.sequence_number),
        is_sealed: appended.is_some_and(|content| content.is_sealed),
        tag_count: u32::try_from(record.tags.len()).unwrap_or(u32::MAX),
        tags: tags::shown(record.tags),
        version_id: record.version.map(past::name).unwrap_or_default(),
        is_current_version: record.version.is_some(),
        delete_time: record.deletion.map(|deletion| deletion.at.into()),
        remaining_retention_days: remaining_days(record.deletion, now),
        copy: record.copy.map(|it| copy(it, record.content.size())),
        ..described
    }
}

fn blob_type(kind: BlobKind) -> proto::BlobType {
    match kind {
        BlobKind::Block => proto::BlobType::Block,
        BlobKind::Append => proto::BlobType::Append,
        BlobKind::Page => proto::BlobType::Page,
    }
}

/// There are at most 50,000.
fn block_count(blocks: u64) -> u32 {
    u32::try_from(blocks).unwrap_or(u32::MAX)
}

fn copy(copy: BlobCopy, size: u64) -> proto::BlobCopy {
    let size = copy.size.unwrap_or(size);
    proto::BlobCopy {
        id: copy.origin.id.hyphenated().to_string(),
        source: copy.origin.source,
        status: proto::CopyStatus::Success.into(),
        copied_bytes: size,
        total_bytes: size,
        completion_time: Some(copy.completed_at.into()),
    }
}

/// What a caller who may not read a blob receives after changing it.
pub(super) fn unreadable(blob: proto::Blob) -> proto::Blob {
    proto::Blob {
        container: blob.container,
        name: blob.name,
        r#type: blob.r#type,
        size: blob.size,
        etag: blob.etag,
        last_modified: blob.last_modified,
        version_id: blob.version_id,
        is_current_version: blob.is_current_version,
        committed_block_count: blob.committed_block_count,
        sequence_number: blob.sequence_number,
        is_sealed: blob.is_sealed,
        ..proto::Blob::default()
    }
}

/// A blob that is a state of one.
pub(super) fn with_state(blob: proto::Blob, state: BlobState) -> proto::Blob {
    match state {
        BlobState::Current => blob,
        BlobState::Past(at) => {
            let is_version = !blob.version_id.is_empty();
            let snapshot = if is_version { String::new() } else { past::name(at) };
            proto::Blob { snapshot, lease: None, is_current_version: false, ..blob }
        }
    }
}

fn properties(properties: ContentProperties) -> proto::HttpProperties {
    let md5 = properties.md5.map(|md5| Bytes::copy_from_slice(&md5));
    proto::HttpProperties {
        content_type: properties.content_type,
        content_encoding: properties.encoding,
        content_language: properties.language,
        content_disposition: properties.disposition,
        cache_control: properties.cache_control,
        content_md5: md5.unwrap_or_default(),
    }
}

pub(super) fn lease(lease: &ResourceLease, now: Ticks) -> proto::Lease {
    let state = match lease.state(now) {
        LeaseState::Available => proto::LeaseState::Available,
        LeaseState::Leased => proto::LeaseState::Leased,
        LeaseState::Expired => proto::LeaseState::Expired,
        LeaseState::Breaking => proto::LeaseState::Breaking,
        LeaseState::Broken => proto::LeaseState::Broken,
    };
    proto::Lease { state: state.into(), is_infinite: lease.is_infinite() }
}

/// The id of a lease that the client holds, and how long a broken one is active, in whole seconds.
pub(super) fn lease_result(result: Option<LeaseResult>) -> (String, Option<prost_types::Duration>) {
    let id = |id: Uuid| id.hyphenated().to_string();
    match result {
        Some(LeaseResult::Held(held)) => (id(held), None),
        Some(LeaseResult::Broken(active)) => (String::new(), Some(whole_seconds(active))),
        Some(LeaseResult::Released) | None => (String::new(), None),
    }
}

/// Rounded up: it is not broken before.
fn whole_seconds(duration: Duration) -> prost_types::Duration {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    prost_types::Duration { seconds: i64::try_from(seconds).unwrap_or(i64::MAX), nanos: 0 }
}

/// What the blobs of a listing have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Included {
    /// Their metadata.
    pub(super) metadata: bool,
    /// Their tags.
    pub(super) tags: bool,
    /// How many tags they have.
    pub(super) tag_count: bool,
}

/// An item of a listing.
pub(super) fn listed(
    container: &str,
    item: ListedItem,
    included: Included,
    now: Ticks,
) -> proto::ListedBlob {
    let item = match item {
        ListedItem::Group(prefix) => Item::Prefix(prefix),
        ListedItem::Blob(name, None) => {
            Item::Blob(proto::Blob { is_uncommitted: true, ..named(container, name.as_str()) })
        }
        ListedItem::Blob(name, Some(record)) => {
            Item::Blob(blob(container, name.as_str(), *record, now))
        }
        ListedItem::Past(name, at, record) => {
            let blob = blob(container, name.as_str(), *record, now);
            Item::Blob(with_state(blob, BlobState::Past(at)))
        }
    };
    let item = match item {
        Item::Blob(mut blob) => {
            if !included.metadata {
                blob.metadata = HashMap::new();
            }
            if !included.tags {
                blob.tags = HashMap::new();
            }
            if !included.tag_count {
                blob.tag_count = 0;
            }
            Item::Blob(blob)
        }
        item => item,
    };
    proto::ListedBlob { item: Some(item) }
}

/// What is kept of blobs that are overwritten or deleted.
pub(super) fn protection(retention: Retention) -> proto::DataProtection {
    let policy = |period: Option<Duration>| {
        let days = whole_days(period.unwrap_or_default());
        Some(proto::DeleteRetentionPolicy { enabled: period.is_some(), days })
    };
    proto::DataProtection {
        delete_retention_policy: policy(retention.deleted_for),
        is_versioning_enabled: Some(retention.versions),
        container_delete_retention_policy: policy(retention.containers_deleted_for),
    }
}

fn whole_days(period: Duration) -> i32 {
    i32::try_from(period.as_secs() / (24 * 3600)).unwrap_or(i32::MAX)
}

/// Blocks of a blob.
pub(super) fn blocks(blocks: Vec<StoredBlock>) -> Vec<proto::Block> {
    let block = |block: StoredBlock| proto::Block { id: block.id, size: block.part.size };
    blocks.into_iter().map(block).collect()
}

/// The state of the service.
pub(super) fn service_stats(
    engine: &EngineStatus,
    object_store: &str,
    started_at: Ticks,
    containers_being_reclaimed: usize,
) -> proto::GetServiceStatsResponse {
    proto::GetServiceStatsResponse {
        durability: durability(engine.durability).into(),
        engine: engine.name.to_owned(),
        object_store: object_store.to_owned(),
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
        start_time: Some(started_at.into()),
        storage_bytes: engine.disk.map_or(0, |disk| disk.storage_bytes),
        free_bytes: engine.disk.map(|disk| disk.free_bytes),
        containers_being_reclaimed: containers_being_reclaimed as u64,
        instance_id: instance_id().to_owned(),
        quotas: Vec::new(),
        processes: Vec::new(),
    }
}
