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
    let (mut state, mut found) = (Value::Null, Vec::new());
    for (name, stats) in services {
        match stats {
            Ok(stats) => {
                found.push(name);
                state = with_fields(stats, state);
            }
            // The role is not on this server.
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(error),
        }
    }
    let head = json!({
        "endpoint": client.endpoint,
        "connected_in_ms": millis(connected),
        "services": found,
        "writes": writes(&session).await,
    });
    let mut output = Output::standard(&client.output);
    output.record(["Server", ""], &with_fields(head, state))?;
    output.finish()
}

/// Whether writes are accepted; none where the process has no store, such as a gateway.
async fn writes(session: &Session) -> Option<&'static str> {
    let request = HealthCheckRequest { service: WRITES.to_owned() };
    let checked = session.health().check(request).await.ok()?;
    match checked.get_ref().status() {
        ServingStatus::Serving => Some("accepted"),
        ServingStatus::NotServing => Some(READ_ONLY_DISK),
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
    matches!(error, CliError::Call(status) if status.code() == Code::Unimplemented)
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
