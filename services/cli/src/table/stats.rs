//! `stats`: the state of the service, or the statistics of a table.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use trestle_command::{
    client::Session,
    errors::CliError,
    output::{bytes, thousands, with_fields},
    scan::{TableScan, decoded},
};
use trestle_proto::table::v1::{Entity, GetServiceStatsRequest, StreamEntitiesRequest};

use super::Context;
use crate::{
    datetime,
    edm::EdmType,
    service::{durability_name, instance_id, processes, quotas},
};

/// Most property names that are counted one by one; the rest is counted together.
const NAMES_MAX: usize = 10_000;

/// Prints the state of the service.
pub(super) async fn service(context: &mut Context) -> Result<(), CliError> {
    let record = service_record(&context.session).await?;
    context.output.record(["Service", ""], &record)
}

/// The state of the service.
pub(crate) async fn service_record(session: &Session) -> Result<Value, CliError> {
    let request = GetServiceStatsRequest {};
    let stats = session.table().get_service_stats(request).await?.into_inner();
    let hottest = stats.hottest_partitions.iter().map(|hot| {
        json!({
            "table": hot.table, "partition_key": hot.partition_key,
            "entities_per_second": hot.entities_per_second, "throttled": hot.throttled,
        })
    });
    let record = json!({
        "durability": durability_name(stats.durability),
        "engine": stats.engine,
        "server_version": stats.server_version,
        "start_time": stats.start_time.as_ref().and_then(datetime::format),
        "instance_id": instance_id(stats.instance_id),
        "storage_bytes": stats.storage_bytes,
        "free_bytes": stats.free_bytes,
        "tables_being_reclaimed": stats.tables_being_reclaimed,
        "hottest_partitions": hottest.collect::<Vec<_>>(),
        "processes": processes(stats.processes),
    });
    Ok(with_fields(record, quotas(stats.quotas)))
}

/// The result of a scan.
#[derive(Debug, Default)]
struct Summary {
    entities: u64,
    bytes: u64,
    partitions: u64,
    current: PartitionSize,
    largest: PartitionSize,
    properties: BTreeMap<String, BTreeMap<&'static str, u64>>,
    properties_not_counted: u64,
}

#[derive(Debug, Default, Clone)]
struct PartitionSize {
    key: String,
    entities: u64,
    bytes: u64,
}

impl Summary {
    /// Counts an entity. Entities come in key order, so a partition is complete when its key changes.
    fn add(&mut self, entity: &Entity, size: u64) {
        if self.entities == 0 || self.current.key != entity.partition_key {
            self.partitions += 1;
            let key = entity.partition_key.clone();
            self.current = PartitionSize { key, ..PartitionSize::default() };
        }
        self.entities += 1;
        self.bytes += size;
        self.current.entities += 1;
        self.current.bytes += size;
        if self.current.entities > self.largest.entities {
            self.largest.clone_from(&self.current);
        }
        for property in &entity.properties {
            let Some(kind) = property.value.as_ref().and_then(|value| value.kind.as_ref()) else {
                continue;
            };
            let is_known = self.properties.contains_key(&property.name);
            if !is_known && self.properties.len() >= NAMES_MAX {
                self.properties_not_counted += 1;
                continue;
            }
            let types = self.properties.entry(property.name.clone()).or_default();
            *types.entry(EdmType::of(kind).name()).or_default() += 1;
        }
    }
}

/// Reads a whole table and prints its statistics.
pub(super) async fn table(context: &mut Context, table: String) -> Result<(), CliError> {
    let request = StreamEntitiesRequest { table, ..StreamEntitiesRequest::default() };
    let mut scan = TableScan::new(&context.session, request);
    let progress = context.output.progress(None, 0);
    let mut summary = Summary::default();
    while let Some(message) = scan.next().await? {
        for (entity, encoded) in decoded(&message)?.iter().zip(&message.entities) {
            summary.add(entity, u64::try_from(encoded.len()).unwrap_or_default());
        }
        progress.tick();
        progress.set_message(format!(
            "{} entities, {}",
            thousands(summary.entities),
            bytes(summary.bytes)
        ));
    }
    progress.finish_and_clear();
    context.output.record(["Table", ""], &object(&summary))
}

fn object(summary: &Summary) -> Value {
    let largest = &summary.largest;
    json!({
        "entities": summary.entities,
        "partitions": summary.partitions,
        "bytes": summary.bytes,
        "largest_partition": (summary.entities > 0).then(|| json!({
            "partition_key": largest.key, "entities": largest.entities, "bytes": largest.bytes,
        })),
        "properties": summary.properties,
        "properties_not_counted": summary.properties_not_counted,
    })
}

#[cfg(test)]
mod tests;
