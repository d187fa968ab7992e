//! `stats`: the state of the service, or the statistics of a table.

use std::collections::BTreeMap;

use serde_json::json;
use trestle_proto::service::v1::Durability;
use trestle_proto::table::v1::{
    Entity, GetServiceStatsRequest, HotPartition, StreamEntitiesRequest,
};

use super::TableContext;
use crate::{
    datetime,
    edm::EdmType,
    errors::CliError,
    output::{bytes, thousands},
    scan::{TableScan, decoded},
};

/// Most property names that are counted one by one; the rest is counted together.
const NAMES_MAX: usize = 10_000;

/// Prints the state of the service.
pub(super) async fn service(context: &mut TableContext) -> Result<(), CliError> {
    let request = context.session.request(GetServiceStatsRequest {});
    let stats = context.session.table().get_service_stats(request).await?.into_inner();
    let durability = Durability::try_from(stats.durability).unwrap_or_default().as_str_name();
    let durability = durability.strip_prefix("DURABILITY_").unwrap_or(durability);
    let started = stats.start_time.as_ref().and_then(datetime::format);
    if context.output.is_json() {
        let object = json!({
            "durability": durability,
            "engine": stats.engine,
            "server_version": stats.server_version,
            "start_time": started,
            "storage_bytes": stats.storage_bytes,
            "free_bytes": stats.free_bytes,
            "tables_being_reclaimed": stats.tables_being_reclaimed,
            "hottest_partitions": stats.hottest_partitions.iter().map(|hot| json!({
                "table": hot.table,
                "partition_key": hot.partition_key,
                "entities_per_second": hot.entities_per_second,
                "throttled": hot.throttled,
            })).collect::<Vec<_>>(),
        });
        return context.output.line(&object.to_string());
    }
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let rows = [
        row("server version", stats.server_version),
        row("started", started.unwrap_or_default()),
        row("engine", stats.engine),
        row("durability", durability.to_owned()),
        row("stored", bytes(stats.storage_bytes)),
        row("free", stats.free_bytes.map_or_else(|| "unknown".to_owned(), bytes)),
        row("tables being reclaimed", stats.tables_being_reclaimed.to_string()),
    ];
    context.output.table(&["Service", ""], &rows)?;
    if stats.hottest_partitions.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = stats.hottest_partitions.into_iter().map(hot_partition).collect();
    context.output.table(&["Table", "Hottest partitions", "Entities/s", "Throttled"], &rows)
}

fn hot_partition(hot: HotPartition) -> Vec<String> {
    let rate = format!("{:.1}", hot.entities_per_second);
    vec![hot.table, hot.partition_key, rate, thousands(hot.throttled)]
}

/// The result of a scan.
#[derive(Debug, Default, PartialEq, Eq)]
struct Summary {
    entities: u64,
    bytes: u64,
    partitions: u64,
    current: Partition,
    largest: Partition,
    properties: BTreeMap<String, BTreeMap<EdmType, u64>>,
    properties_not_counted: u64,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Partition {
    key: String,
    entities: u64,
    bytes: u64,
}

impl Summary {
    /// Counts an entity. Entities come in key order, so a partition is complete when its key
    /// changes.
    fn add(&mut self, entity: &Entity, size: usize) {
        if self.entities == 0 || self.current.key != entity.partition_key {
            self.partitions = self.partitions.saturating_add(1);
            self.current = Partition { key: entity.partition_key.clone(), ..Partition::default() };
        }
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        self.entities = self.entities.saturating_add(1);
        self.bytes = self.bytes.saturating_add(size);
        self.current.entities = self.current.entities.saturating_add(1);
        self.current.bytes = self.current.bytes.saturating_add(size);
        if self.current.entities > self.largest.entities {
            if self.largest.key == self.current.key {
                self.largest.entities = self.current.entities;
                self.largest.bytes = self.current.bytes;
            } else {
                self.largest = self.current.clone();
            }
        }
        for property in &entity.properties {
            let Some(kind) = property.value.as_ref().and_then(|value| value.kind.as_ref()) else {
                continue;
            };
            self.count(&property.name, EdmType::of(kind));
        }
    }

    fn count(&mut self, name: &str, edm: EdmType) {
        if !self.properties.contains_key(name) {
            if self.properties.len() >= NAMES_MAX {
                self.properties_not_counted = self.properties_not_counted.saturating_add(1);
                return;
            }
            self.properties.insert(name.to_owned(), BTreeMap::new());
        }
        if let Some(types) = self.properties.get_mut(name) {
            let count = types.entry(edm).or_default();
            *count = count.saturating_add(1);
        }
    }
}

/// Reads a whole table and prints its statistics.
pub(super) async fn table(context: &mut TableContext, table: String) -> Result<(), CliError> {
    let request = StreamEntitiesRequest { table, ..StreamEntitiesRequest::default() };
    let mut scan = TableScan::new(&context.session, request);
    let progress = context.output.progress(None);
    let mut summary = Summary::default();
    while let Some(message) = scan.next().await? {
        for (entity, encoded) in decoded(&message)?.iter().zip(&message.entities) {
            summary.add(entity, encoded.len());
        }
        progress.tick();
        progress.set_message(format!(
            "{} entities, {}",
            thousands(summary.entities),
            bytes(summary.bytes)
        ));
    }
    progress.finish_and_clear();
    print(context, &summary)
}

fn print(context: &mut TableContext, summary: &Summary) -> Result<(), CliError> {
    if context.output.is_json() {
        return context.output.line(&object(summary).to_string());
    }
    let largest = &summary.largest;
    let row = |name: &str, value: String| vec![name.to_owned(), value];
    let mut rows = vec![
        row("entities", thousands(summary.entities)),
        row("partitions", thousands(summary.partitions)),
        row("stored entities", bytes(summary.bytes)),
    ];
    if summary.entities > 0 {
        let size = format!("{} entities, {}", thousands(largest.entities), bytes(largest.bytes));
        rows.push(row("largest partition", format!("`{}`: {size}", largest.key)));
    }
    context.output.table(&["Table", ""], &rows)?;
    let mut rows = Vec::new();
    for (name, types) in &summary.properties {
        for (edm, count) in types {
            rows.push(vec![name.clone(), edm.name().to_owned(), thousands(*count)]);
        }
    }
    if !rows.is_empty() {
        context.output.table(&["Property", "Type", "Entities"], &rows)?;
    }
    if summary.properties_not_counted > 0 {
        let rest = thousands(summary.properties_not_counted);
        context.output.line(&format!("{rest} properties of further names were not counted"))?;
    }
    Ok(())
}

fn object(summary: &Summary) -> serde_json::Value {
    let properties: serde_json::Map<String, serde_json::Value> = summary
        .properties
        .iter()
        .map(|(name, types)| {
            let types: serde_json::Map<_, _> =
                types.iter().map(|(edm, count)| (edm.name().to_owned(), json!(count))).collect();
            (name.clone(), types.into())
        })
        .collect();
    json!({
        "entities": summary.entities,
        "partitions": summary.partitions,
        "bytes": summary.bytes,
        "largest_partition": (summary.entities > 0).then(|| json!({
            "partition_key": summary.largest.key,
            "entities": summary.largest.entities,
            "bytes": summary.largest.bytes,
        })),
        "properties": properties,
        "properties_not_counted": summary.properties_not_counted,
    })
}

#[cfg(test)]
mod tests;
