//! The role `blob`: owns containers and blobs, and streams of log records, whose segments are objects too.

use std::{sync::Arc, time::Duration};

use opentelemetry::metrics::Meter;
use tower::Layer as _;
use trestle_blob::{BLOB_SERVICE, BlobRole};
use trestle_gateway::Routes;
use trestle_log::{
    LOG_SERVICE, LogRole, OTLP_LOGS_SERVICE, OTLP_METRICS_SERVICE, OTLP_TRACE_SERVICE,
};
use trestle_rpc::layer::message_size::MessageSizeLayer;
use trestle_rpc::quota::StorageOwner;
use trestle_rpc::semconv;
use trestle_rpc::upstream::Upstream;
use trestle_runtime::task::Task;

use super::{AzureEdge, Build, BuildContext, BuiltRole, RoleSpec};
use crate::{count, process_error::ProcessError, storage_quota, streams};

/// How often it removes what deleted and replaced blobs left.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// How long it waits before it seals records again, after a failure.
const SEAL_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// See the module.
pub const BLOB: RoleSpec = RoleSpec {
    name: "blob",
    services: &[
        BLOB_SERVICE,
        LOG_SERVICE,
        OTLP_LOGS_SERVICE,
        OTLP_METRICS_SERVICE,
        OTLP_TRACE_SERVICE,
    ],
    writes: Some("trestle.storage.writes.blob"),
    keyspaces: &[trestle_blob::KEYSPACES, trestle_log::KEYSPACES],
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
    let (clock, random) = (Arc::clone(&context.deps.clock), context.deps.random);
    let (engine, objects) = (context.engine()?, context.objects()?);
    let copy_hosts = context.settings.storage.copy_hosts();
    let blob = BlobRole::new(trestle_blob::BlobDeps {
        engine: Arc::clone(&engine),
        objects: objects.blobs,
        clock,
        copy_hosts,
        random,
        storage: context.storage.clone(),
    });
    let meter = context.deps.meter.clone();
    let export_bytes_max = context.settings.limits.export_bytes_max;
    let log = LogRole::new(trestle_log::LogDeps {
        engine,
        area: objects.logs,
        random,
        meter,
        export_bytes_max,
        storage: context.storage.clone(),
    });
    let size = MessageSizeLayer::new(export_bytes_max);
    let check = |owner| storage_quota::layer(context.storage, owner);
    let (blobs, logs) = (check(StorageOwner::Blobs), check(StorageOwner::Logs));
    let calls = Routes::default()
        .with(BLOB_SERVICE, Upstream::local(blobs.layer(blob.server())))
        .with(LOG_SERVICE, Upstream::local(logs.layer(log.server())))
        .with(OTLP_LOGS_SERVICE, Upstream::local(size.layer(logs.layer(log.otlp_logs()))))
        .with(OTLP_METRICS_SERVICE, Upstream::local(size.layer(logs.layer(log.otlp_metrics()))))
        .with(OTLP_TRACE_SERVICE, Upstream::local(size.layer(logs.layer(log.otlp_trace()))));
    let tasks = tasks(&blob, &log, &context.deps.meter);
    let calls = BuiltRole::with_messages(calls, export_bytes_max);
    Ok(BuiltRole { tasks, drain: Some(Box::new(move || log.shut_down())), ..calls })
}

fn tasks(blob: &BlobRole, log: &LogRole, meter: &Meter) -> Vec<Task> {
    let (counted, sealed, swept) = (blob.clone(), log.clone(), log.clone());
    let (measured_blobs, measured_logs) = (blob.clone(), log.clone());
    let blob = blob.clone();
    let sweep_blobs = Task::new("blob-sweep", SWEEP_EVERY, move || {
        let blob = blob.clone();
        async move { blob.sweep().await.map_err(Into::into) }
    });
    let seal = Task::new("log-seal", SEAL_AGAIN_AFTER, move || {
        let log = sealed.clone();
        async move { log.seal().await.map_err(Into::into) }
    });
    let sweep_logs = Task::new("log-sweep", SWEEP_EVERY, move || {
        let log = swept.clone();
        async move { log.sweep().await.map_err(Into::into) }
    });
    let count = count::task(semconv::CONTAINERS, meter, move |containers_max| {
        let blob = counted.clone();
        Box::pin(async move { blob.count_containers(containers_max).await })
    });
    let usage = storage_quota::measured(move || {
        let blob = measured_blobs.clone();
        async move { blob.measure().await }
    });
    let log_usage = storage_quota::measured(move || {
        let log = measured_logs.clone();
        async move { log.measure().await }
    });
    let streams = streams::measured(log, meter);
    vec![sweep_blobs, seal, sweep_logs, count, streams, usage, log_usage]
}
