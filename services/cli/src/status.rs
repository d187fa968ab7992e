//! `status`: whether a server answers, and the state of its services.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};
use trestle_proto::{blob::v1::GetServiceStatsRequest, log::v1::ListStreamsRequest};

use crate::{
    client::Session,
    datetime,
    errors::CliError,
    flags::ClientArgs,
    output::{Output, with_fields},
    queue,
    service::durability_name,
    table,
};

/// The name by which gRPC health reports whether the store accepts writes.
pub const WRITES: &str = "trestle.storage.writes";
/// The state of a process that accepts only reads and deletes, because disk space is short.
pub const READ_ONLY_DISK: &str = "read-only: disk";
/// The state of a process whose store accepts no writes until a restart, after a failed write or sync, of a gateway
/// before one, and of a process that shuts down.
pub const STOPPED: &str = "not accepted: a store is stopped, or the server shuts down";

/// Prints the state of a server; the exit code reports whether it answers.
pub(crate) async fn run(client: &ClientArgs) -> Result<(), CliError> {
    let began = Instant::now();
    let session = Session::connect(client).await?;
    let connected = began.elapsed();
    let services = [
        ("table", table::service_record(&session).await),
        ("queue", queue::service_record(&session).await),
        ("blob", blob(&session).await),
        ("log", log(&session).await),
    ];
    let (mut state, mut found, mut missing) = (Value::Null, Vec::new(), Vec::new());
    let mut failed = None;
    for (name, stats) in services {
        match stats {
            Ok(stats) => {
                found.push(name);
                state = with_fields(stats, state);
            }
            // The role is not on this server.
            Err(error) if is_absent(&error) => {}
            // A gateway may reach the other ones.
            Err(error) if error.is_unavailable() => {
                missing.push(name);
                failed.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    let head = json!({
        "endpoint": client.endpoint,
        "connected_in_ms": millis(connected),
        "services": found,
        "unavailable": (!missing.is_empty()).then_some(missing),
        "writes": writes(&session).await,
    });
    let mut output = Output::standard(&client.output);
    output.record(["Server", ""], &with_fields(head, state))?;
    output.finish()?;
    failed.map_or(Ok(()), Err)
}

/// Whether writes are accepted; none where the process does not report it.
async fn writes(session: &Session) -> Option<&'static str> {
    let (writes, whole) = (status_of(session, WRITES).await?, status_of(session, "").await?);
    Some(limitation(writes, whole).unwrap_or("accepted"))
}

async fn status_of(session: &Session, service: &str) -> Option<ServingStatus> {
    let request = HealthCheckRequest { service: service.to_owned() };
    Some(session.health().check(request).await.ok()?.get_ref().status())
}

/// Why no writes are accepted, if so, by the status of writes and that of the whole process. A stopped store is a
/// problem of the whole; one on a full disk is not, since it serves reads and deletes.
#[must_use]
pub fn limitation(writes: ServingStatus, whole: ServingStatus) -> Option<&'static str> {
    match (writes, whole) {
        (ServingStatus::NotServing, ServingStatus::Serving) => Some(READ_ONLY_DISK),
        (ServingStatus::NotServing, _) => Some(STOPPED),
        _ => None,
    }
}

/// The log service has no statistics; that it answers the smallest listing shows that it is served, also where the
/// caller may not list.
async fn log(session: &Session) -> Result<Value, CliError> {
    let request = ListStreamsRequest { page_size: Some(1), ..ListStreamsRequest::default() };
    match session.logs().list_streams(request).await {
        Err(status) if status.code() != Code::PermissionDenied => Err(status.into()),
        _ => Ok(json!({})),
    }
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10_000.0).round() / 10.0
}

fn is_absent(error: &CliError) -> bool {
    let is_absent = |status: &tonic::Status| status.code() == Code::Unimplemented;
    matches!(error, CliError::Call(status) if is_absent(status)) && !error.is_foreign()
}

async fn blob(session: &Session) -> Result<Value, CliError> {
    let request = GetServiceStatsRequest {};
    let stats = session.blobs().get_service_stats(request).await?.into_inner();
    Ok(json!({
        "durability": durability_name(stats.durability),
        "engine": stats.engine,
        "object_store": stats.object_store,
        "server_version": stats.server_version,
        "start_time": stats.start_time.as_ref().and_then(datetime::format),
        "storage_bytes": stats.storage_bytes,
        "free_bytes": stats.free_bytes,
        "containers_being_reclaimed": stats.containers_being_reclaimed,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_store_and_a_full_disk_differ_in_the_status_of_the_process() {
        use ServingStatus::{NotServing, Serving};
        for (writes, whole, expected) in [
            (Serving, Serving, None),
            (Serving, NotServing, None),
            (NotServing, Serving, Some(READ_ONLY_DISK)),
            (NotServing, NotServing, Some(STOPPED)),
        ] {
            assert_eq!(limitation(writes, whole), expected, "{writes:?}, {whole:?}");
        }
    }
}
