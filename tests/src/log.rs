//! The verbs on one log stream.

use bytes::Bytes;
use prost::Message as _;
use trestle_proto::{
    log::v1::{self as proto, Record, log_service_client::LogServiceClient},
    opentelemetry::proto::common::v1::{AnyValue, any_value::Value},
};

use crate::{CallError, Transport, World};

/// A stream of a world.
#[derive(Debug, Clone)]
pub struct LogStream {
    client: LogServiceClient<Transport>,
    name: String,
}

/// What a read returned.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadLog {
    /// The records, in order.
    pub records: Vec<Record>,
    /// The last resume token that came with records.
    pub resume_token: String,
    /// What the read cost in the end.
    pub cost: proto::LogReadCost,
}

/// A record with a time, in nanoseconds since 1970, and a text.
pub fn log_record(time: u64, text: &str) -> Record {
    Record {
        time_unix_nano: time,
        body: Some(AnyValue { value: Some(Value::StringValue(text.to_owned())) }),
        ..Record::default()
    }
}

/// The texts of records.
pub fn log_texts(records: &[Record]) -> Vec<String> {
    let text = |record: &Record| match record.body.as_ref().and_then(|body| body.value.clone()) {
        Some(Value::StringValue(text)) => text,
        other => panic!("a record has no text: {other:?}"),
    };
    records.iter().map(text).collect()
}

/// The records of a response.
pub fn log_records(encoded: Vec<Bytes>) -> Vec<Record> {
    encoded.into_iter().map(|record| Record::decode(record).expect("a record")).collect()
}

impl World {
    /// A client of logs.
    pub fn logs(&self) -> LogServiceClient<Transport> {
        LogServiceClient::new(self.transport())
    }

    /// A new stream.
    pub async fn log_stream(&self, name: &str) -> LogStream {
        let stream = self.existing_log_stream(name);
        let settings = proto::LogStream { name: name.to_owned(), ..Default::default() };
        stream.create(settings).await.expect("the stream is created");
        stream
    }

    /// A stream that may exist or not.
    pub fn existing_log_stream(&self, name: &str) -> LogStream {
        LogStream::new(self.logs(), name)
    }
}

impl LogStream {
    /// A stream over a client.
    pub fn new(client: LogServiceClient<Transport>, name: &str) -> Self {
        Self { client, name: name.to_owned() }
    }

    /// A client.
    pub fn client(&self) -> LogServiceClient<Transport> {
        self.client.clone()
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Creates a stream.
    pub async fn create(
        &self,
        stream: proto::LogStream,
    ) -> Result<proto::CreateStreamResponse, CallError> {
        let request = proto::CreateStreamRequest { stream: Some(stream) };
        Ok(self.client().create_stream(request).await?.into_inner())
    }

    /// A request to append records.
    pub fn appending(&self, records: &[Record]) -> proto::AppendRecordsRequest {
        proto::AppendRecordsRequest {
            stream: self.name(),
            records: records.iter().map(|record| record.encode_to_vec().into()).collect(),
            ..Default::default()
        }
    }

    /// Appends records.
    pub async fn append(
        &self,
        records: &[Record],
    ) -> Result<proto::AppendRecordsResponse, CallError> {
        self.append_with(self.appending(records)).await
    }

    /// Appends as a request states it.
    pub async fn append_with(
        &self,
        request: proto::AppendRecordsRequest,
    ) -> Result<proto::AppendRecordsResponse, CallError> {
        Ok(self.client().append_records(request).await?.into_inner())
    }

    /// A request to read everything.
    pub fn reading(&self) -> proto::ReadRecordsRequest {
        proto::ReadRecordsRequest { stream: self.name(), ..Default::default() }
    }

    /// Reads everything.
    pub async fn read(&self) -> Result<ReadLog, CallError> {
        self.read_with(self.reading()).await
    }

    /// Reads as a request states it.
    pub async fn read_with(
        &self,
        request: proto::ReadRecordsRequest,
    ) -> Result<ReadLog, CallError> {
        let mut responses = self.client().read_records(request).await?.into_inner();
        let mut read = ReadLog::default();
        while let Some(response) = responses.message().await? {
            read.records.extend(log_records(response.records));
            if !response.resume_token.is_empty() {
                read.resume_token = response.resume_token;
            }
            read.cost = response.cost.unwrap_or_default();
        }
        Ok(read)
    }

    /// Seals what was appended.
    pub async fn flush(&self) -> Result<proto::FlushStreamResponse, CallError> {
        let request = proto::FlushStreamRequest { stream: self.name() };
        Ok(self.client().flush_stream(request).await?.into_inner())
    }

    /// Restores segments that the retention removed.
    pub async fn undelete(&self) -> Result<proto::UndeleteSegmentsResponse, CallError> {
        let request = proto::UndeleteSegmentsRequest { stream: self.name() };
        Ok(self.client().undelete_segments(request).await?.into_inner())
    }

    /// The settings and the statistics.
    pub async fn get(&self) -> Result<proto::GetStreamResponse, CallError> {
        let request = proto::GetStreamRequest { stream: self.name() };
        Ok(self.client().get_stream(request).await?.into_inner())
    }

    /// The segments.
    pub async fn segments(&self) -> Result<Vec<proto::LogSegment>, CallError> {
        let request = proto::ListSegmentsRequest { stream: self.name(), ..Default::default() };
        Ok(self.client().list_segments(request).await?.into_inner().segments)
    }

    /// Deletes the stream.
    pub async fn delete(&self) -> Result<(), CallError> {
        let request = proto::DeleteStreamRequest { stream: self.name() };
        Ok(self.client().delete_stream(request).await.map(drop)?)
    }
}
