//! The services as clients call them, without a socket: reads in parts, violations, and exports with partial success.

use futures::TryStreamExt as _;
use prost::Message as _;
use tonic::Code;
use trestle_proto::log::v1::Record;

mod acknowledged;
mod clocks;
mod expansion;
mod exports;
mod item_exports;
mod reads;
mod streams;
mod summaries;

use super::*;
use crate::fixture::{LogFixture, record};

fn api() -> LogApi {
    LogApi::new(LogFixture::new().logs, &crate::fixture::meter())
}

async fn create(api: &LogApi, name: &str) {
    let stream = proto::LogStream { name: name.to_owned(), ..proto::LogStream::default() };
    let request = proto::CreateStreamRequest { stream: Some(stream) };
    api.create_stream(Request::new(request)).await.expect("created");
}

fn append_of(stream: &str, records: &[Record]) -> proto::AppendRecordsRequest {
    proto::AppendRecordsRequest {
        stream: stream.to_owned(),
        records: records.iter().map(|record| record.encode_to_vec().into()).collect(),
        ..proto::AppendRecordsRequest::default()
    }
}

async fn append(
    api: &LogApi,
    request: proto::AppendRecordsRequest,
) -> Result<proto::AppendRecordsResponse, Status> {
    api.append_records(Request::new(request)).await.map(Response::into_inner)
}

/// A stream with this many records of one second each, the first half of them sealed.
async fn filled(count: u64) -> LogApi {
    let api = api();
    create(&api, "web").await;
    let records: Vec<_> =
        (0..count).map(|at| record(at * crate::fixture::SECOND, &at.to_string())).collect();
    let (sealed, unsealed) = records.split_at(records.len() / 2);
    append(&api, append_of("web", sealed)).await.expect("appended");
    let flush = proto::FlushStreamRequest { stream: "web".to_owned() };
    api.flush_stream(Request::new(flush)).await.expect("sealed");
    append(&api, append_of("web", unsealed)).await.expect("appended");
    api
}

async fn read(
    api: &LogApi,
    request: proto::ReadRecordsRequest,
) -> Result<Vec<proto::ReadRecordsResponse>, Status> {
    api.read_records(Request::new(request)).await?.into_inner().try_collect().await
}

fn read_of(stream: &str) -> proto::ReadRecordsRequest {
    proto::ReadRecordsRequest { stream: stream.to_owned(), ..proto::ReadRecordsRequest::default() }
}

fn records_of(responses: &[proto::ReadRecordsResponse]) -> Vec<Record> {
    let records = responses.iter().flat_map(|response| &response.records);
    records.map(|record| Record::decode(record.clone()).expect("a record")).collect()
}

/// The fields that a status reports as violated.
fn violated(status: &Status) -> Vec<String> {
    use tonic_types::StatusExt as _;
    let details = status.get_details_bad_request();
    let violations = details.map(|details| details.field_violations).unwrap_or_default();
    violations.into_iter().map(|violation| violation.field).collect()
}
