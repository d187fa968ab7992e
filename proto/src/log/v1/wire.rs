//! Messages with records, where the records are encoded bytes.
//!
//! A field of message type and a field of type bytes are the same on the wire. The server validates encoded records and
//! stores them as they are. Field numbers must equal those of the published contract; a test below holds them to the
//! descriptors.

use bytes::Bytes;

use super::LogReadCost;

/// Request of AppendRecords.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AppendRecordsRequest {
    /// The name of the stream.
    #[prost(string, tag = "1")]
    pub stream: String,
    /// The encoded [`super::Record`] messages.
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub records: Vec<Bytes>,
    /// The encoded entries of the resource: [`KeyValue`](crate::opentelemetry::proto::common::v1::KeyValue) messages.
    #[prost(bytes = "bytes", repeated, tag = "3")]
    pub resource: Vec<Bytes>,
    /// The encoded scope.
    #[prost(bytes = "bytes", optional, tag = "4")]
    pub scope: Option<Bytes>,
    /// Identifies the append.
    #[prost(string, tag = "5")]
    pub request_id: String,
    /// The condition on the next sequence.
    #[prost(uint64, optional, tag = "6")]
    pub expected_next_sequence: Option<u64>,
}

/// Response of ReadRecords.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ReadRecordsResponse {
    /// The encoded [`super::Record`] messages, in order.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub records: Vec<Bytes>,
    /// Continues after these records.
    #[prost(string, tag = "2")]
    pub resume_token: String,
    /// What the read cost so far.
    #[prost(message, optional, tag = "3")]
    pub cost: Option<LogReadCost>,
}

/// Response of TailRecords.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TailRecordsResponse {
    /// The encoded [`super::Record`] messages, in order.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub records: Vec<Bytes>,
    /// Continues behind these records.
    #[prost(uint64, tag = "2")]
    pub next_sequence: u64,
}

/// Request of the OpenTelemetry LogsService.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportLogsServiceRequest {
    /// The encoded [`ResourceLogs`](crate::opentelemetry::proto::logs::v1::ResourceLogs) messages.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub resource_logs: Vec<Bytes>,
}

/// Request of the OpenTelemetry MetricsService.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportMetricsServiceRequest {
    /// The encoded [`ResourceMetrics`](crate::opentelemetry::proto::metrics::v1::ResourceMetrics) messages.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub resource_metrics: Vec<Bytes>,
}

/// Request of the OpenTelemetry TraceService.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExportTraceServiceRequest {
    /// The encoded [`ResourceSpans`](crate::opentelemetry::proto::trace::v1::ResourceSpans) messages.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub resource_spans: Vec<Bytes>,
}

macro_rules! name {
    ($package:literal: $($message:ident),+) => {$(
        impl prost::Name for $message {
            const PACKAGE: &'static str = $package;
            const NAME: &'static str = stringify!($message);
        }
    )+};
}

name!("trestle.log.v1": AppendRecordsRequest, ReadRecordsResponse, TailRecordsResponse);
name!("opentelemetry.proto.collector.logs.v1": ExportLogsServiceRequest);
name!("opentelemetry.proto.collector.metrics.v1": ExportMetricsServiceRequest);
name!("opentelemetry.proto.collector.trace.v1": ExportTraceServiceRequest);

#[cfg(test)]
mod tests {
    use prost::Message as _;

    fn published_fields(package: &str, message: &str) -> Vec<(String, i32)> {
        let set = prost_types::FileDescriptorSet::decode(crate::FILE_DESCRIPTOR_SET)
            .expect("descriptors decode");
        let messages = set.file.iter().filter(|file| file.package() == package);
        let mut messages = messages.flat_map(|file| &file.message_type);
        let found = messages.find(|found| found.name() == message).expect("message is published");
        let fields = found.field.iter();
        fields.map(|field| (field.name().to_owned(), field.number())).collect()
    }

    #[test]
    fn field_numbers_equal_the_published_contract() {
        let published = |message, expected: &[(&str, i32)]| {
            let package = match message {
                "ExportLogsServiceRequest" => "opentelemetry.proto.collector.logs.v1",
                "ExportMetricsServiceRequest" => "opentelemetry.proto.collector.metrics.v1",
                "ExportTraceServiceRequest" => "opentelemetry.proto.collector.trace.v1",
                _ => "trestle.log.v1",
            };
            let expected = expected.iter().map(|(name, number)| ((*name).to_owned(), *number));
            assert_eq!(published_fields(package, message), expected.collect::<Vec<_>>());
        };

        published(
            "AppendRecordsRequest",
            &[
                ("stream", 1),
                ("records", 2),
                ("resource", 3),
                ("scope", 4),
                ("request_id", 5),
                ("expected_next_sequence", 6),
            ],
        );
        published("ReadRecordsResponse", &[("records", 1), ("resume_token", 2), ("cost", 3)]);
        published("TailRecordsResponse", &[("records", 1), ("next_sequence", 2)]);
        published("ExportLogsServiceRequest", &[("resource_logs", 1)]);
        published("ExportMetricsServiceRequest", &[("resource_metrics", 1)]);
        published("ExportTraceServiceRequest", &[("resource_spans", 1)]);
    }
}
