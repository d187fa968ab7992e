//! The role `queue`: owns queues and messages.

use std::{sync::Arc, time::Duration};

use tower::Layer as _;
use trestle_queue::{KEYSPACES, QUEUE_SERVICE, QueueDeps, QueueRole, QueuesOfAll, SweepScope};
use trestle_rpc::layer::CallService;
use trestle_rpc::quota::StorageOwner;
use trestle_runtime::task::Task;

use super::{AzureEdge, Build, BuildContext, BuiltRole, DrainAction, RoleSpec};
use crate::{backlogs, process_error::ProcessError, storage_quota};

const NAME: &str = "queue";

/// The job that removes expired messages, checkpoints, and, in one process, rows of deleted queues.
const SWEEP: &str = "queue-sweep";
/// How often it does.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// How often it removes expired messages of the queues in use: the next message of an ordering group comes at most so
/// much later than the one before it expires.
const EXPIRE_EVERY: Duration = Duration::from_millis(250);

/// How often it looks which of its queues other processes own.
const FOLLOW_EVERY: Duration = Duration::from_millis(500);

/// See the module.
pub const QUEUE: RoleSpec = RoleSpec {
    name: NAME,
    services: &[QUEUE_SERVICE],
    writes: Some("trestle.storage.writes.queue"),
    keyspaces: &[KEYSPACES],
    has_objects: false,
    cors: Some(QUEUE_SERVICE),
    build: Build::Service(build),
    is_required: false,
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
    let placement = context.members.queues();
    let (processes, owners) = (context.members.processes(), placement.clone());
    let deps = QueueDeps { engine, clock, random, storage, processes, placement: owners };
    let queue = QueueRole::new(deps);
    let measured = queue.clone();
    let usage = storage_quota::measured(move || {
        let queue = measured.clone();
        async move { queue.measure().await }
    });
    let check = storage_quota::layer(context.storage, StorageOwner::Queues);
    let calls = CallService::new(check.layer(queue.server()));
    let is_shared = placement.is_some();
    let calls = match placement {
        Some(placement) => BuiltRole::new(QueuesOfAll::new(calls, placement, &context.deps.meter)),
        None => BuiltRole::new(calls),
    };
    let (measure, page) = backlogs::measured(&queue, context.members, &context.deps.meter);
    let mut tasks = vec![sweep(&queue, context), expire(&queue), measure, usage];
    tasks.extend(is_shared.then(|| follow_owners(&queue)));
    let drain: DrainAction = Box::new(move || queue.shut_down());
    Ok(BuiltRole { tasks, pages: vec![page], drain: Some(drain), ..calls })
}

fn sweep(queue: &QueueRole, context: &BuildContext<'_>) -> Task {
    let (queue, job) = (queue.clone(), context.members.job(NAME, SWEEP));
    Task::new(SWEEP, SWEEP_EVERY, move || {
        let scope = if job.is_ours() { SweepScope::Store } else { SweepScope::Own };
        let queue = queue.clone();
        async move { queue.sweep(scope).await.map_err(Into::into) }
    })
}

fn expire(queue: &QueueRole) -> Task {
    let queue = queue.clone();
    Task::new("queue-expire", EXPIRE_EVERY, move || {
        let queue = queue.clone();
        async move { queue.expire().await.map(|()| false).map_err(Into::into) }
    })
}

fn follow_owners(queue: &QueueRole) -> Task {
    let queue = queue.clone();
    Task::new("queue-owners", FOLLOW_EVERY, move || {
        let queue = queue.clone();
        async move { queue.follow_owners().await.map(|()| false).map_err(Into::into) }
    })
}
