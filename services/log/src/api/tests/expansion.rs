//! Exports that become more than they are: bytes beyond those of their requests, and many days of many streams.

use tonic_types::StatusExt as _;
use trestle_proto::opentelemetry::proto::{
    common::v1::{AnyValue, KeyValue, any_value::Value},
    logs::v1::ResourceLogs,
};
use trestle_service::layer::shares::{Holder, SharePool};

use super::{
    exports::{export, logs, names},
    *,
};
use crate::{
    fixture::{START, account, texts},
    layout::DAY_NANOS,
};

const MIB: usize = 1024 * 1024;

/// A request of scopes with a record each, which repeat a resource of 50 KB.
fn scopes(service: &str, count: usize) -> ResourceLogs {
    let mut logs = logs(service, &["a"]);
    logs.scope_logs = vec![logs.scope_logs[0].clone(); count];
    let large = Some(AnyValue { value: Some(Value::StringValue("x".repeat(50_000))) });
    let large = KeyValue { key: "large".to_owned(), value: large };
    logs.resource.as_mut().unwrap().attributes.push(large);
    logs
}

#[tokio::test]
async fn an_export_whose_bytes_cannot_be_charged_stores_nothing_and_may_be_repeated() {
    let mut api = api();
    let pool = SharePool::new("bytes of expanded exports", 8 * MIB);
    api.logs.derived_bytes = Arc::clone(&pool);
    // What other exports of the account have.
    let others = pool.take(Holder::account_alone(account().as_str()), 5 * MIB).unwrap();
    let request = [logs("other", &["b"]), scopes("web", 100)];

    let status = export(&api, None, &request).await.unwrap_err();

    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    assert!(status.get_details_retry_info().is_some());
    assert!(status.message().contains("bytes of expanded exports"), "{status:?}");
    assert_eq!(pool.free(), 3 * MIB);
    for name in names(&api).await {
        assert!(records_of(&read(&api, read_of(&name)).await.unwrap()).is_empty(), "{name}");
    }
    drop(others);
    assert!(export(&api, None, &request).await.unwrap().partial_success.is_none());
    assert_eq!(records_of(&read(&api, read_of("web")).await.unwrap()).len(), 100);
    assert_eq!(pool.free(), 8 * MIB);
}

#[tokio::test]
async fn the_days_of_all_streams_of_a_request_are_bounded() {
    let api = api();
    let of_days = |service: &str| {
        let mut request = logs(service, &["a"; 900]);
        for (day, record) in request.scope_logs[0].log_records.iter_mut().enumerate() {
            record.time_unix_nano = START - day as u64 * DAY_NANOS;
        }
        request
    };

    let answer = export(&api, None, &["a", "b", "c", "d"].map(of_days)).await.unwrap();

    let partial = answer.partial_success.unwrap();
    assert_eq!(partial.rejected_log_records, 4 * 900 - 2_000);
    assert!(partial.error_message.contains("is on a day too many"), "{partial:?}");
    let count = |records: Vec<Record>| texts(&records).len();
    let mut stored = Vec::new();
    for name in ["a", "b", "c"] {
        stored.push(count(records_of(&read(&api, read_of(name)).await.unwrap())));
    }
    assert_eq!(stored, [900, 900, 200]);
    assert_eq!(names(&api).await, ["a", "b", "c"]);
}
