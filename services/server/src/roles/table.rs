//! The role `table`: owns tables and entities.

use std::{sync::Arc, time::Duration};

use tower::Layer as _;
use trestle_rpc::quota::{LiveQuotas, StorageOwner, StorageQuotas};
use trestle_rpc::semconv;
use trestle_table::{KEYSPACES, TableRole};

use super::{AzureEdge, Build, BuildContext, BuiltRole, RoleSpec};
use crate::{count, hot_partitions, process_error::ProcessError, storage_quota};

const NAME: &str = "table";
/// Full name of the service.
const SERVICE: &str = "trestle.table.v1.TableService";

/// The job that removes rows of deleted tables.
const SWEEP: &str = "table-sweep";
/// How often it does.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// See the module.
pub const TABLE: RoleSpec = RoleSpec {
    name: NAME,
    services: &[SERVICE],
    writes: Some("trestle.storage.writes.table"),
    keyspaces: &[KEYSPACES],
    has_objects: false,
    cors: Some(SERVICE),
    build: Build::Service(build),
    is_required: true,
    azure: Some(AzureEdge {
        serves: "Address of tables for clients of Azure Storage",
        flag: "azure-table",
        port: 10002,
        headers_max: None,
        keeps_header_case: false,
        build: |deps, stack| trestle_azure::tables(deps, |calls| stack.before(calls)),
    }),
};

fn build(context: &BuildContext<'_>) -> Result<BuiltRole, ProcessError> {
    let BuildContext { settings, deps, quotas, storage, .. } = context;
    let table = TableRole::new(trestle_table::TableDeps {
        engine: context.engine()?,
        clock: Arc::clone(&deps.clock),
        quotas: LiveQuotas::clone(quotas),
        storage: StorageQuotas::clone(storage),
        processes: context.members.processes(),
        meter: deps.meter.clone(),
    });
    let sweeper = table.clone();
    let sweep = context.members.task_of_one((NAME, SWEEP), SWEEP_EVERY, move || {
        let table = sweeper.clone();
        async move { table.sweep().await.map_err(Into::into) }
    });
    let counted = table.clone();
    let count = count::task(semconv::TABLES, &deps.meter, move |tables_max| {
        let table = counted.clone();
        Box::pin(async move { table.count_tables(tables_max).await })
    });
    let measured = table.clone();
    let measure = storage_quota::measured(move || {
        let table = measured.clone();
        async move { table.measure().await }
    });
    Ok(BuiltRole {
        tasks: vec![sweep, count, measure],
        pages: vec![hot_partitions::page(&table, settings.quotas.show_partition_keys)],
        ..BuiltRole::new(storage_quota::layer(storage, StorageOwner::Tables).layer(table.server()))
    })
}
