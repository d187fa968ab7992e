//! The role `blob`: owns containers and blobs, whose contents are objects.

use std::{sync::Arc, time::Duration};

use opentelemetry::metrics::Meter;
use tower::Layer as _;
use trestle_blob::{BLOB_SERVICE, BlobRole, KEYSPACES};
use trestle_rpc::quota::StorageOwner;
use trestle_rpc::semconv;
use trestle_runtime::task::Task;

use super::{AzureEdge, Build, BuildContext, BuiltRole, RoleSpec};
use crate::{count, members::StoreMembers, process_error::ProcessError, storage_quota};

const NAME: &str = "blob";

/// The job that removes what deleted and replaced blobs left.
const SWEEP: &str = "blob-sweep";
/// How often it does.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// See the module.
pub const BLOB: RoleSpec = RoleSpec {
    name: NAME,
    services: &[BLOB_SERVICE],
    writes: Some("trestle.storage.writes.blob"),
    keyspaces: &[KEYSPACES],
    has_objects: true,
    cors: Some(BLOB_SERVICE),
    build: Build::Service(build),
    is_required: false,
    azure: Some(AzureEdge {
        serves: "Address of blobs for clients of Azure Storage",
        flag: "azure-blob",
        port: 10000,
        headers_max: Some(trestle_azure::METADATA_HEADERS_MAX),
        keeps_header_case: true,
        build: |deps, stack| trestle_azure::blobs(deps, |calls| stack.before(calls)),
    }),
};

fn build(context: &BuildContext<'_>) -> Result<BuiltRole, ProcessError> {
    let blob = BlobRole::new(trestle_blob::BlobDeps {
        engine: context.engine()?,
        objects: context.objects()?.blobs,
        clock: Arc::clone(&context.deps.clock),
        copy_hosts: context.settings.storage.copy_hosts(),
        random: context.deps.random,
        storage: context.storage.clone(),
        processes: context.members.processes(),
    });
    let check = storage_quota::layer(context.storage, StorageOwner::Blobs);
    let calls = BuiltRole::new(check.layer(blob.server()));
    Ok(BuiltRole { tasks: tasks(&blob, context.members, &context.deps.meter), ..calls })
}

fn tasks(blob: &BlobRole, members: &StoreMembers, meter: &Meter) -> Vec<Task> {
    let (swept, counted, measured) = (blob.clone(), blob.clone(), blob.clone());
    let sweep = members.task_of_one((NAME, SWEEP), SWEEP_EVERY, move || {
        let blob = swept.clone();
        async move { blob.sweep().await.map_err(Into::into) }
    });
    let count = count::task(semconv::CONTAINERS, meter, move |containers_max| {
        let blob = counted.clone();
        Box::pin(async move { blob.count_containers(containers_max).await })
    });
    let usage = storage_quota::measured(move || {
        let blob = measured.clone();
        async move { blob.measure().await }
    });
    vec![sweep, count, usage]
}
