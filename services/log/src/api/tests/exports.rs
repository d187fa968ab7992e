//! Exports of OpenTelemetry: streams are created, and bad records are a part of the answer.

use std::sync::atomic::{AtomicUsize, Ordering};

use trestle_proto::{
    log::v1::wire::ExportLogsServiceRequest,
    opentelemetry::proto::{
        collector::logs::v1::{ExportLogsServiceResponse, logs_service_server::LogsService},
        common::v1::{AnyValue, KeyValue, any_value::Value},
        logs::v1::{LogRecord, ResourceLogs, ScopeLogs},
        resource::v1::Resource,
    },
};

use super::*;
use crate::{
    batch::{
        BatchRoom, EncodedResource, RecordTimes, batches_of_resources, resources_by_stream,
        stream_of_resource,
    },
    fixture::{SECOND, START, texts},
};

pub(super) fn resource(service: &str) -> Option<Resource> {
    let value = Some(AnyValue { value: Some(Value::StringValue(service.to_owned())) });
    let attributes = vec![KeyValue { key: "service.name".to_owned(), value }];
    Some(Resource { attributes, ..Resource::default() })
}

pub(super) fn logs(service: &str, bodies: &[&str]) -> ResourceLogs {
    let log = |body: &&str| LogRecord {
        time_unix_nano: START,
        body: Some(AnyValue { value: Some(Value::StringValue((*body).to_owned())) }),
        ..LogRecord::default()
    };
    let log_records = bodies.iter().map(log).collect();
    let scope_logs = vec![ScopeLogs { log_records, ..ScopeLogs::default() }];
    ResourceLogs { resource: resource(service), scope_logs, ..ResourceLogs::default() }
}

pub(super) async fn export(
    api: &LogApi,
    stream: Option<&str>,
    resource_logs: &[ResourceLogs],
) -> Result<ExportLogsServiceResponse, Status> {
    let resource_logs = resource_logs.iter().map(|logs| logs.encode_to_vec().into()).collect();
    let mut request = Request::new(ExportLogsServiceRequest { resource_logs });
    if let Some(stream) = stream {
        request.metadata_mut().insert("trestle-log-stream", stream.parse().unwrap());
    }
    LogsService::export(api, request).await.map(Response::into_inner)
}

/// Exports log records of these times.
pub(super) async fn export_logs_at(
    api: &LogApi,
    times: &[u64],
) -> Result<ExportLogsServiceResponse, Status> {
    let mut request = logs("web", &vec!["timed"; times.len()]);
    for (record, time) in request.scope_logs[0].log_records.iter_mut().zip(times) {
        record.time_unix_nano = *time;
    }
    export(api, None, &[request]).await
}

pub(super) async fn names(api: &LogApi) -> Vec<String> {
    let listed = api.list_streams(Request::new(proto::ListStreamsRequest::default())).await;
    listed.unwrap().into_inner().streams.into_iter().map(|stream| stream.name).collect()
}

#[tokio::test]
async fn each_service_has_its_stream_unless_the_request_names_one() {
    let api = api();
    let request = [logs("web", &["a"]), logs("api", &["b"]), logs("web", &["c"])];

    let answer = export(&api, None, &request).await.unwrap();
    assert_eq!(answer.partial_success, None);
    export(&api, Some("all"), &request).await.unwrap();

    assert_eq!(names(&api).await, ["all", "api", "web"]);
    for (stream, expected) in [("web", &["a", "c"][..]), ("api", &["b"]), ("all", &["a", "b", "c"])]
    {
        let found = records_of(&read(&api, read_of(stream)).await.unwrap());
        assert_eq!(texts(&found), expected, "{stream}");
    }
}

#[tokio::test]
async fn rejected_records_are_a_partial_success() {
    let api = api();
    let mut request = logs("web", &["kept", "bad", "kept too"]);
    request.scope_logs[0].log_records[1].time_unix_nano = u64::MAX;

    let partial = export(&api, None, &[request]).await.unwrap().partial_success.unwrap();

    assert_eq!(partial.rejected_log_records, 1);
    assert!(
        partial
            .error_message
            .starts_with("resource_logs[0].scope_logs[0].log_records[1].time_unix"),
        "{partial:?}"
    );
    let found = records_of(&read(&api, read_of("web")).await.unwrap());
    assert_eq!(texts(&found), ["kept", "kept too"]);
}

#[tokio::test]
async fn a_rejected_record_is_named_by_its_place_in_the_request() {
    let api = api();
    let mut last = logs("web", &["kept"]);
    last.scope_logs.extend(logs("web", &["kept too", "bad"]).scope_logs);
    last.scope_logs[1].log_records[1].time_unix_nano = u64::MAX;
    let request = [logs("web", &["a"]), logs("api", &["b"]), last];

    let partial = export(&api, None, &request).await.unwrap().partial_success.unwrap();

    let text = "resource_logs[2].scope_logs[1].log_records[1].time_unix_nano: ";
    assert!(partial.error_message.starts_with(text), "{partial:?}");
}

#[tokio::test]
async fn an_export_whose_records_are_all_rejected_creates_no_stream() {
    let api = api();
    let mut bad = logs("web", &["bad"]);
    bad.scope_logs[0].log_records[0].time_unix_nano = u64::MAX;

    for (request, created) in
        [(vec![bad.clone()], &[][..]), (vec![bad, logs("api", &["a"])], &["api"])]
    {
        let partial = export(&api, None, &request).await.unwrap().partial_success.unwrap();
        assert_eq!(partial.rejected_log_records, 1);
        assert_eq!(names(&api).await, created);
    }
}

#[tokio::test]
async fn records_past_the_retention_of_the_stream_are_rejected() {
    let api = api();
    let stream = proto::LogStream {
        name: "web".to_owned(),
        retention: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
        ..proto::LogStream::default()
    };
    let create = proto::CreateStreamRequest { stream: Some(stream) };
    api.create_stream(Request::new(create)).await.unwrap();
    let mut request = logs("web", &["at the bound", "too old"]);
    for (record, seconds) in request.scope_logs[0].log_records.iter_mut().zip([60, 61]) {
        record.time_unix_nano = START - seconds * SECOND;
    }

    let partial = export(&api, None, &[request]).await.unwrap().partial_success.unwrap();

    assert_eq!(partial.rejected_log_records, 1);
    assert!(partial.error_message.contains("[1].time_unix_nano"), "{partial:?}");
}

#[tokio::test]
async fn exports_without_records_and_with_bad_names_create_no_stream() {
    let api = api();
    let empty = ResourceLogs { scope_logs: Vec::new(), ..logs("idle", &[]) };
    for request in [vec![], vec![ResourceLogs::default()], vec![empty], vec![logs("web", &[])]] {
        assert_eq!(export(&api, None, &request).await.unwrap().partial_success, None);
    }
    for name in ["Web", "a/b", "", "-a"] {
        let status = export(&api, Some(name), &[logs("web", &["a"])]).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{name}");
        assert_eq!(violated(&status), ["trestle-log-stream"], "{name}");
    }
    assert_eq!(names(&api).await, [""; 0]);
}

#[tokio::test]
async fn an_export_to_too_many_streams_stores_nothing() {
    let api = api();
    let request: Vec<_> = (0..1_001).map(|at| logs(&format!("s{at}"), &["a"])).collect();

    let status = export(&api, None, &request).await.unwrap_err();

    assert_eq!(status.code(), Code::InvalidArgument);
    assert_eq!(violated(&status), ["resource_logs"]);
    assert!(names(&api).await.is_empty());
    export(&api, None, &request[..1_000]).await.unwrap();
    assert_eq!(names(&api).await.len(), 1_000);
}

/// Exports to the streams `web` and `worker`. In so many tries `web` is deleted between its opening and the append.
async fn export_while_deleted(api: &LogApi, deletions: usize) -> Result<u64, Fault> {
    let (access, ()) = enter(Request::new(()), LogNeed::AppendOrCreate).unwrap();
    let (name, encoded) = (crate::fixture::name("web"), AtomicUsize::new(0));
    let (account, logs_of_api) = (access.account().clone(), api.logs.clone());
    let delete = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(logs_of_api.delete(&account, &name)).unwrap();
    };
    let encode = move |resources: &[EncodedResource], times: RecordTimes, room: BatchRoom| {
        // A try encodes both; the first stream is open before the records of the second are encoded.
        let encoded = encoded.fetch_add(1, Ordering::Relaxed);
        if encoded % 2 == 1 && encoded / 2 < deletions {
            std::thread::scope(|scope| scope.spawn(&delete).join().unwrap());
        }
        batches_of_resources::<ResourceLogs>(resources, times, room)
    };
    let resources = ["web", "worker"].map(|it| logs(it, &["a"]).encode_to_vec().into());
    let by_stream = resources_by_stream::<ResourceLogs>(&resources, stream_of_resource).unwrap();
    let exported = api.export_streams(&access, by_stream, encode).await;
    exported.map(|rejected| rejected.count)
}

#[tokio::test]
async fn an_export_to_a_stream_that_is_deleted_meanwhile_creates_it_again() {
    let api = api();
    for deletions in [0, 1, 2] {
        assert_eq!(export_while_deleted(&api, deletions).await.unwrap(), 0, "{deletions}");
    }
    let found = records_of(&read(&api, read_of("web")).await.unwrap());
    assert_eq!(texts(&found), ["a"], "of the last export");

    let fault = export_while_deleted(&api, usize::MAX).await.unwrap_err();
    assert_eq!(fault.reason, trestle_model::fault::Reason::ServerUnavailable);
    assert_eq!(names(&api).await, ["worker"], "which was not deleted");
}
