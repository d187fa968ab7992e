//! From our own types to responses.

use trestle_kv::{EngineStatus, Version};
use trestle_model::{etag::format_etag, time::Ticks};
use trestle_proto::table::v1 as proto;
use trestle_rpc::{instance::instance_id, quota::HeavyHitter, served_store::durability};

use crate::{keys::TableRecord, throttle::HotPartition, write::NewVersion};

/// A table.
pub(super) fn table(record: TableRecord) -> proto::Table {
    proto::Table { name: record.name, create_time: Some(record.created_at.into()) }
}

/// The etag and the time of a write; nothing of a delete.
pub(super) fn version(version: NewVersion) -> (String, Option<prost_types::Timestamp>) {
    let written_at = version.map(Version::ticks);
    (written_at.map(format_etag).unwrap_or_default(), written_at.map(Into::into))
}

/// The state of the service.
pub(super) fn stats(
    engine: &EngineStatus,
    started_at: Ticks,
    tables_being_reclaimed: usize,
) -> proto::GetServiceStatsResponse {
    proto::GetServiceStatsResponse {
        durability: durability(engine.durability).into(),
        engine: engine.name.to_owned(),
        server_version: env!("CARGO_PKG_VERSION").to_owned(),
        start_time: Some(started_at.into()),
        storage_bytes: engine.disk.map_or(0, |disk| disk.storage_bytes),
        free_bytes: engine.disk.map(|disk| disk.free_bytes),
        tables_being_reclaimed: tables_being_reclaimed as u64,
        hottest_partitions: Vec::new(),
        instance_id: instance_id().to_owned(),
        quotas: Vec::new(),
        processes: Vec::new(),
    }
}

/// A partition that is used much.
pub(super) fn hot_partition(hot: HeavyHitter<HotPartition>) -> proto::HotPartition {
    let HeavyHitter { name, per_second, rejected } = hot;
    proto::HotPartition {
        table: name.table,
        partition_key: name.partition_key,
        entities_per_second: per_second,
        throttled: rejected,
    }
}
