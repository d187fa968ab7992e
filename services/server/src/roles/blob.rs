//! The role `blob`: owns containers and blobs.

use std::{sync::Arc, time::Duration};

use trestle_blob::{BLOB_SERVICE, BlobRole, KEYSPACES};
use trestle_runtime::task::Task;
use trestle_service::semconv;

use super::{AzureEdge, Build, BuildContext, BuiltRole, RoleSpec};
use crate::{count, process_error::ProcessError};

/// How often it removes what deleted and replaced blobs left.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// See the module.
pub const BLOB: RoleSpec = RoleSpec {
    name: "blob",
    services: &[BLOB_SERVICE],
    keyspaces: KEYSPACES,
    cors: Some(BLOB_SERVICE),
    build: Build::Service(build),
    is_required: false,
    azure: Some(AzureEdge {
        serves: "the error that blobs are served by gRPC only",
        flag: "azure-blob",
        port: 10000,
        headers_max: None,
        keeps_header_case: false,
        build: |deps, stack| trestle_azure::blobs(deps, |calls| stack.before(calls)),
    }),
};

fn build(context: &BuildContext<'_>) -> Result<BuiltRole, ProcessError> {
    let (clock, random) = (Arc::clone(&context.deps.clock), context.deps.random);
    let (engine, objects) = (context.engine()?, context.objects()?);
    let copy_hosts = context.settings.storage.copy_hosts();
    let deps = trestle_blob::BlobDeps { engine, objects, clock, copy_hosts, random };
    let blob = BlobRole::new(deps);
    let sweeper = blob.clone();
    let sweep = Task::new("blob-sweep", SWEEP_EVERY, move || {
        let blob = sweeper.clone();
        async move { blob.sweep().await.map_err(Into::into) }
    });
    let counted = blob.clone();
    let count = count::task(semconv::CONTAINERS, &context.deps.meter, move |containers_max| {
        let blob = counted.clone();
        Box::pin(async move { blob.count_containers(containers_max).await })
    });
    Ok(BuiltRole { tasks: vec![sweep, count], ..BuiltRole::new(blob.server()) })
}
