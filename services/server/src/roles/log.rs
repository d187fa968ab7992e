//! The role `log`: owns streams of log records, whose segments are objects.

use std::time::Duration;

use opentelemetry::metrics::Meter;
use tower::Layer as _;
use trestle_gateway::Routes;
use trestle_log::{
    KEYSPACES, LOG_SERVICE, LogRole, OTLP_LOGS_SERVICE, OTLP_METRICS_SERVICE, OTLP_TRACE_SERVICE,
};
use trestle_rpc::layer::message_size::MessageSizeLayer;
use trestle_rpc::quota::StorageOwner;
use trestle_rpc::upstream::Upstream;
use trestle_runtime::task::Task;

use super::{Build, BuildContext, BuiltRole, RoleSpec};
use crate::{members::StoreMembers, process_error::ProcessError, storage_quota, streams};

/// How often it removes what deleted and shortened streams left.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// How often it looks at what other processes of the store appended; less often where a look takes long.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How many times as long as a look it waits before the next.
const LOOK_PAUSE: u32 = 10;

/// How long it waits before it seals records again, after a failure.
const SEAL_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// See the module.
pub const LOG: RoleSpec = RoleSpec {
    name: "log",
    services: &[LOG_SERVICE, OTLP_LOGS_SERVICE, OTLP_METRICS_SERVICE, OTLP_TRACE_SERVICE],
    writes: Some("trestle.storage.writes.log"),
    keyspaces: &[KEYSPACES],
    has_objects: true,
    cors: None,
    build: Build::Service(build),
    is_required: false,
    azure: None,
};

fn build(context: &BuildContext<'_>) -> Result<BuiltRole, ProcessError> {
    let export_bytes_max = context.settings.limits.export_bytes_max;
    let log = LogRole::new(trestle_log::LogDeps {
        engine: context.engine()?,
        area: context.objects()?.logs,
        random: context.deps.random,
        meter: context.deps.meter.clone(),
        export_bytes_max,
        storage: context.storage.clone(),
        placement: context.members.streams(),
    });
    let size = MessageSizeLayer::new(export_bytes_max);
    let check = storage_quota::layer(context.storage, StorageOwner::Logs);
    let calls = Routes::default()
        .with(LOG_SERVICE, Upstream::local(check.layer(log.server())))
        .with(OTLP_LOGS_SERVICE, Upstream::local(size.layer(check.layer(log.otlp_logs()))))
        .with(OTLP_METRICS_SERVICE, Upstream::local(size.layer(check.layer(log.otlp_metrics()))))
        .with(OTLP_TRACE_SERVICE, Upstream::local(size.layer(check.layer(log.otlp_trace()))));
    let tasks = tasks(&log, context.members, &context.deps.meter);
    let calls = BuiltRole::with_messages(calls, export_bytes_max);
    Ok(BuiltRole { tasks, drain: Some(Box::new(move || log.shut_down())), ..calls })
}

fn tasks(log: &LogRole, members: &StoreMembers, meter: &Meter) -> Vec<Task> {
    let (sealed, swept, measured) = (log.clone(), log.clone(), log.clone());
    let seal = Task::new("log-seal", SEAL_AGAIN_AFTER, move || {
        let log = sealed.clone();
        async move { log.seal().await.map_err(Into::into) }
    });
    let sweep = Task::new("log-sweep", SWEEP_EVERY, move || {
        let log = swept.clone();
        async move { log.sweep().await.map_err(Into::into) }
    });
    let usage = storage_quota::measured(move || {
        let log = measured.clone();
        async move { log.measure().await }
    });
    let looked = log.clone();
    let look = members.streams().map(|_| {
        let look = Task::new("log-look", LOOK_EVERY, move || {
            let log = looked.clone();
            async move { Ok(log.look().await.map(|()| false)?) }
        });
        look.resting(LOOK_PAUSE)
    });
    let tasks = [seal, sweep, streams::measured(log, meter), usage];
    tasks.into_iter().chain(look).collect()
}
