//! `status`: whether a server answers, and the state of its services.

use std::time::Duration;

use chrono::DateTime;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tonic::Code;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};
use trestle_command::{
    client::Session,
    errors::CliError,
    flags::ClientArgs,
    output::{Output, with_fields},
};
use trestle_proto::{
    blob::v1::{GetServiceStatsRequest, blob_service_server::SERVICE_NAME as BLOB_SERVICE},
    log::v1::{ListStreamsRequest, log_service_server::SERVICE_NAME as LOG_SERVICE},
    queue::v1::queue_service_server::SERVICE_NAME as QUEUE_SERVICE,
    table::v1::table_service_server::SERVICE_NAME as TABLE_SERVICE,
};

use crate::{
    datetime, queue,
    service::{durability_name, instance_id, processes, quotas},
    table,
};

/// The name by which gRPC health reports whether the store accepts writes.
pub const WRITES: &str = "trestle.storage.writes";
/// The state of a process that accepts only reads and deletes, because disk space is short, or only reads, because it
/// shows a backup.
pub const READ_ONLY: &str = "read-only: disk or backup";
/// The state of a process whose store accepts no writes until a restart, after a failed write or sync, of a gateway
/// before one that is not restarted soon, and of a process that shuts down.
pub const STOPPED: &str = "not accepted: a store is stopped, or the server shuts down";

/// The state of a process or a role that accepts writes.
const ACCEPTED: &str = "accepted";

/// What is of one process and its disk.
const OF_PROCESS: [&str; 5] =
    ["start_time", "free_bytes", "storage_bytes", "instance_id", "account_stored_bytes"];
/// The processes that serve the store with this one.
const PROCESSES: &str = "processes";
/// What the roles of a process report one after the other.
const MEASURED_BY_ROLE: [&str; 3] = ["start_time", "free_bytes", "account_stored_bytes"];
/// The time in which all roles of a process start, for servers that report no id of the process.
const START_WITHIN: Duration = Duration::from_secs(1);

/// Prints the state of a server; the exit code reports whether it answers.
pub(crate) async fn run(client: &ClientArgs) -> Result<(), CliError> {
    let began = Instant::now();
    let session = Session::connect(client).await?;
    let connected = began.elapsed();
    let of_role = async |state, role, service| -> Result<Value, CliError> {
        Ok(with_fields(state, writes_of(&session, role, service).await))
    };
    // At once: several roles that do not answer take the time of one.
    let (tables, queues, blobs, logs, writes) = tokio::join!(
        async { of_role(table::service_record(&session).await?, "table", TABLE_SERVICE).await },
        async { of_role(queue::service_record(&session).await?, "queue", QUEUE_SERVICE).await },
        async { of_role(blob(&session).await?, "blob", BLOB_SERVICE).await },
        async { of_role(log(&session).await?, "log", LOG_SERVICE).await },
        writes(&session),
    );
    let services = [("table", tables), ("queue", queues), ("blob", blobs), ("log", logs)];
    let (mut states, mut missing, mut failed) = (Vec::new(), Vec::new(), None);
    let mut absent = None;
    for (name, stats) in services {
        match stats {
            Ok(stats) => states.push((name, stats)),
            // The role is not on this server.
            Err(error @ CliError::Misdirected { .. }) => {
                absent.get_or_insert(error);
            }
            // A gateway may reach the other ones.
            Err(error) if error.is_unavailable() => {
                missing.push(name);
                failed.get_or_insert(error.of_role(name));
            }
            Err(error) => return Err(error),
        }
    }
    // A server without any of the services.
    if let (true, true, Some(error)) = (states.is_empty(), missing.is_empty(), absent) {
        return Err(error);
    }
    // A gateway that reaches no role does not report their writes, and where they differ they are those of the roles.
    let by_role = merged(&states);
    let roles = by_role.get("roles").and_then(Value::as_object);
    let differ = roles.is_some_and(|roles| roles.values().any(|it| it.get("writes").is_some()));
    let writes = writes.filter(|_| !states.is_empty() && !differ);
    let head = json!({
        "endpoint": client.endpoint,
        "connected_in_ms": millis(connected),
        "services": states.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        "unavailable": (!missing.is_empty()).then_some(missing),
        "writes": writes,
    });
    let mut output = Output::standard(&client.output);
    output.record(["Server", ""], &with_fields(head, by_role))?;
    output.finish()?;
    failed.map_or(Ok(()), Err)
}

/// The fields that have one value in all roles that report them; the others by role, since those behind a gateway may
/// be in several processes.
fn merged(states: &[(&str, Value)]) -> Value {
    let fields = |state: &Value| state.as_object().cloned().unwrap_or_default();
    let (mut common, mut roles) = (Map::new(), Map::new());
    for (name, _) in states.iter().flat_map(|(_, state)| fields(state)) {
        if name == PROCESSES {
            let reported = || joined(states.iter().filter_map(|(_, state)| state.get(PROCESSES)));
            common.entry(name).or_insert_with(reported);
            continue;
        }
        let reported: Vec<_> =
            states.iter().filter(|(_, state)| state.get(&name).is_some()).collect();
        match reported.as_slice() {
            [(_, first), rest @ ..] if rest.iter().all(|(_, it)| is_same(&name, first, it)) => {
                common.insert(name.clone(), first[&name].clone());
            }
            differing => {
                for (role, state) in differing {
                    let role = roles.entry(*role).or_insert_with(|| json!({}));
                    *role = with_fields(role.take(), json!({ name.as_str(): state[&name] }));
                }
            }
        }
    }
    let roles = (!roles.is_empty()).then_some(roles);
    with_fields(Value::Object(common), json!({ "roles": roles }))
}

/// The processes that roles report, each once: a role knows its own jobs, and one of them the numbers of queues.
fn joined<'a>(reported: impl Iterator<Item = &'a Value>) -> Value {
    let mut processes: Vec<Value> = Vec::new();
    for process in reported.filter_map(Value::as_array).flatten() {
        let id = &process["instance_id"];
        let Some(known) = processes.iter_mut().find(|known| &known["instance_id"] == id) else {
            processes.push(process.clone());
            continue;
        };
        if known["queues"].is_null() {
            known["queues"] = process["queues"].clone();
        }
        let (Some(jobs), Some(more)) = (known["jobs"].as_array_mut(), process["jobs"].as_array())
        else {
            continue;
        };
        let added: Vec<_> = more.iter().filter(|job| !jobs.contains(job)).cloned().collect();
        jobs.extend(added);
    }
    if processes.is_empty() { Value::Null } else { Value::Array(processes) }
}

/// Whether two roles report the same in a field. The roles of a process start one after the other.
fn is_same(name: &str, one: &Value, other: &Value) -> bool {
    let instance = |state: &Value| state["instance_id"].as_str().map(str::to_owned);
    let same_process = instance(one).zip(instance(other)).map(|(one, other)| one == other);
    match same_process {
        // Values of two processes that happen to be equal are those of two.
        Some(false) if OF_PROCESS.contains(&name) => return false,
        Some(true) if MEASURED_BY_ROLE.contains(&name) => return true,
        _ => {}
    }
    if name != "start_time" {
        return one[name] == other[name];
    }
    let time = |state: &Value| DateTime::parse_from_rfc3339(state[name].as_str()?).ok();
    let (Some(first), Some(second)) = (time(one), time(other)) else {
        return one[name] == other[name];
    };
    (first - second).abs().to_std().is_ok_and(|apart| apart < START_WITHIN)
}

/// Whether writes are accepted; none where the process does not report it.
async fn writes(session: &Session) -> Option<&'static str> {
    let (writes, whole) = tokio::join!(status_of(session, WRITES), status_of(session, ""));
    Some(limitation(writes?, whole?).unwrap_or(ACCEPTED))
}

/// Whether a role accepts writes, by its name and one of its services; empty where the process does not report it by
/// role.
async fn writes_of(session: &Session, role: &str, service: &str) -> Value {
    let name = format!("{WRITES}.{role}");
    let (writes, serves) = tokio::join!(status_of(session, &name), status_of(session, service));
    let Some((writes, serves)) = writes.zip(serves) else { return json!({}) };
    json!({ "writes": limitation(writes, serves).unwrap_or(ACCEPTED) })
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
        (ServingStatus::NotServing, ServingStatus::Serving) => Some(READ_ONLY),
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

async fn blob(session: &Session) -> Result<Value, CliError> {
    let request = GetServiceStatsRequest {};
    let stats = session.blobs().get_service_stats(request).await?.into_inner();
    let record = json!({
        "durability": durability_name(stats.durability),
        "engine": stats.engine,
        "object_store": stats.object_store,
        "server_version": stats.server_version,
        "start_time": stats.start_time.as_ref().and_then(datetime::format),
        "instance_id": instance_id(stats.instance_id),
        "storage_bytes": stats.storage_bytes,
        "free_bytes": stats.free_bytes,
        "containers_being_reclaimed": stats.containers_being_reclaimed,
        "processes": processes(stats.processes),
    });
    Ok(with_fields(record, quotas(stats.quotas)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_roles_is_shown_by_role() {
        let state = |start: &str, bytes: u64| json!({ "engine": "fjall", "start_time": start, "storage_bytes": bytes });
        let table = state("2026-01-31T08:00:00.1Z", 5);
        let queue = with_fields(state("2026-01-31T08:00:00.9Z", 7), json!({ "queues": 1 }));

        let one = merged(&[("table", table.clone()), ("log", json!({}))]);
        let together = merged(&[("table", table.clone()), ("queue", queue)]);
        let apart = merged(&[("table", table), ("queue", state("2026-01-31T09:00:00Z", 5))]);

        let start = "2026-01-31T08:00:00.1Z";
        assert_eq!(one, with_fields(state(start, 5), json!({ "roles": null })));
        let sizes = json!({ "table": { "storage_bytes": 5 }, "queue": { "storage_bytes": 7 } });
        let expected = json!({
            "engine": "fjall", "start_time": start, "queues": 1, "roles": sizes,
        });
        assert_eq!(together, expected);
        let times = json!({
            "table": { "start_time": start }, "queue": { "start_time": "2026-01-31T09:00:00Z" },
        });
        let expected = json!({ "engine": "fjall", "storage_bytes": 5, "roles": times });
        assert_eq!(apart, expected);
    }

    #[test]
    fn roles_of_processes_that_start_together_are_distinguished_by_the_id_of_the_process() {
        let state = |start: &str, id: &str| json!({ "start_time": start, "instance_id": id });
        let table = state("2026-01-31T08:00:00.1Z", "a");
        let queue = state("2026-01-31T08:00:00.2Z", "b");
        let late = state("2026-01-31T08:00:09Z", "a");

        let apart = merged(&[("table", table.clone()), ("queue", queue.clone())]);
        let together = merged(&[("table", table.clone()), ("blob", late)]);

        assert_eq!(apart, json!({ "roles": { "table": table, "queue": queue } }));
        assert_eq!(together, with_fields(table, json!({ "roles": null })));
    }

    #[test]
    fn what_is_of_a_process_has_one_place_whatever_its_value_is() {
        let state = |id: &str, free: u64| {
            let sizes = json!({ "free_bytes": free, "storage_bytes": 5 });
            with_fields(json!({ "instance_id": id, "engine": "fjall" }), sizes)
        };
        let (table, queue) = (state("a", 9), state("b", 9));

        let apart = merged(&[("table", table), ("queue", queue)]);
        let together = merged(&[("table", state("a", 9)), ("queue", state("a", 8))]);

        let of = |id: &str| json!({ "instance_id": id, "free_bytes": 9, "storage_bytes": 5 });
        let roles = json!({ "table": of("a"), "queue": of("b") });
        assert_eq!(apart, json!({ "engine": "fjall", "roles": roles }));
        assert_eq!(together, with_fields(state("a", 9), json!({ "roles": null })));
    }

    #[test]
    fn bytes_of_one_process_have_one_place_although_its_roles_report_them_apart() {
        let state = |id: &str, usage: u64, name: &str| {
            let quota = |usage: u64| json!({ "usage": usage, "quota": 100 });
            let bytes = json!({ "instance_id": id, "account_stored_bytes": quota(usage) });
            with_fields(bytes, json!({ name: quota(1) }))
        };
        let table = state("a", 7, "account_tables");

        let one = merged(&[("table", table.clone()), ("queue", state("a", 9, "account_queues"))]);
        let two = merged(&[("table", table), ("queue", state("b", 7, "account_queues"))]);

        assert_eq!(one["account_stored_bytes"]["usage"], 7, "of the first role");
        assert_eq!(one["roles"], Value::Null);
        for name in ["account_tables", "account_queues"] {
            assert_eq!(one[name], json!({ "usage": 1, "quota": 100 }), "{name}");
            assert_eq!(two[name], one[name], "{name}");
        }
        assert_eq!(two["account_stored_bytes"], Value::Null);
        for role in ["table", "queue"] {
            assert_eq!(two["roles"][role]["account_stored_bytes"]["usage"], 7, "{role}");
        }
    }

    #[test]
    fn processes_are_listed_once_with_the_jobs_that_any_role_knows() {
        let process = |id: &str, jobs: &[&str], queues: Option<u64>| -> Value {
            let roles = ["table", "queue"];
            json!({ "instance_id": id, "roles": roles, "jobs": jobs, "queues": queues })
        };
        let state = |processes: Value| json!({ "engine": "postgres", "processes": processes });
        let of_tables = json!([process("a", &["table-sweep"], None), process("b", &[], None)]);
        let of_queues =
            json!([process("b", &["queue-sweep"], Some(2)), process("c", &[], Some(0))]);

        let shown = merged(&[("table", state(of_tables)), ("queue", state(of_queues))]);

        let all = json!([
            process("a", &["table-sweep"], None),
            process("b", &["queue-sweep"], Some(2)),
            process("c", &[], Some(0)),
        ]);
        assert_eq!(shown, json!({ "engine": "postgres", "processes": all, "roles": null }));
        let alone = merged(&[("table", state(Value::Null)), ("queue", state(Value::Null))]);
        assert_eq!(alone["processes"], Value::Null);
    }

    #[test]
    fn a_stopped_store_and_a_full_disk_differ_in_the_status_of_the_process() {
        use ServingStatus::{NotServing, Serving};
        for (writes, whole, expected) in [
            (Serving, Serving, None),
            (Serving, NotServing, None),
            (NotServing, Serving, Some(READ_ONLY)),
            (NotServing, NotServing, Some(STOPPED)),
        ] {
            assert_eq!(limitation(writes, whole), expected, "{writes:?}, {whole:?}");
        }
    }
}
