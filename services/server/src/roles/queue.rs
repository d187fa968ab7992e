//! The role `queue`: owns queues and messages.

use std::{sync::Arc, time::Duration};

use tower::Layer as _;
use trestle_queue::{KEYSPACES, QUEUE_SERVICE, QueueRole};
use trestle_rpc::quota::StorageOwner;
use trestle_runtime::task::Task;

use super::{AzureEdge, Build, BuildContext, BuiltRole, RoleSpec};
use crate::{backlogs, process_error::ProcessError, storage_quota};

/// How often it removes rows of deleted queues, and expired messages.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// How often it removes expired messages of the queues in use: the next message of an ordering group comes at most so
/// much later than the one before it expires.
const EXPIRE_EVERY: Duration = Duration::from_millis(250);

/// See the module.
pub const QUEUE: RoleSpec = RoleSpec {
    name: "queue",
    services: &[QUEUE_SERVICE],
    writes: Some("trestle.storage.writes.queue"),
    keyspaces: &[KEYSPACES],
    cors: Some(QUEUE_SERVICE),
    build: Build::Service(build),
    is_required: false,
    is_shared: false,
    azure: Some(AzureEdge {
        serves: "Address of queues for clients of Azure Storage",
        flag: "azure-queue",
        port: 10001,
        headers_max: Some(trestle_azure::METADATA_HEADERS_MAX),
        keeps_header_case: true,
        build: |deps, stack| trestle_azure::queues(deps, |calls| stack.before(calls)),
    }),
};

fn build(context: &BuildContext<'_>) -> Result<BuiltRole, ProcessError> {
    let (clock, random) = (Arc::clone(&context.deps.clock), context.deps.random);
    let (engine, storage) = (context.engine()?, context.storage.clone());
    let queue = QueueRole::new(trestle_queue::QueueDeps { engine, clock, random, storage });
    let sweeper = queue.clone();
    let sweep = Task::new("queue-sweep", SWEEP_EVERY, move || {
        let queue = sweeper.clone();
        async move { queue.sweep().await.map_err(Into::into) }
    });
    let expirer = queue.clone();
    let expire = Task::new("queue-expire", EXPIRE_EVERY, move || {
        let queue = expirer.clone();
        async move { queue.expire().await.map(|()| false).map_err(Into::into) }
    });
    let measured = queue.clone();
    let usage = storage_quota::measured(move || {
        let queue = measured.clone();
        async move { queue.measure().await }
    });
    let check = storage_quota::layer(context.storage, StorageOwner::Queues);
    let calls = BuiltRole::new(check.layer(queue.server()));
    let (measure, page) = backlogs::measured(&queue, &context.deps.meter);
    Ok(BuiltRole {
        tasks: vec![sweep, expire, measure, usage],
        pages: vec![page],
        drain: Some(Box::new(move || queue.shut_down())),
        ..calls
    })
}
