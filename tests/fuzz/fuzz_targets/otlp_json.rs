//! Requests of OTLP in JSON: a message that any client decodes and that is not too large, or the problem of the text.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prost::Message as _;
use trestle_model::json_error::json_problem;
use trestle_proto::{
    log::v1::wire::{
        ExportLogsServiceRequest, ExportMetricsServiceRequest, ExportTraceServiceRequest,
    },
    opentelemetry::proto::{
        logs::v1::ResourceLogs, metrics::v1::ResourceMetrics, trace::v1::ResourceSpans,
    },
};
use trestle_rpc::otlp_json::{OtlpJsonError, OtlpRequest, to_protobuf};

#[derive(Debug, Arbitrary)]
struct Input {
    request: u8,
    bytes_max: u16,
    json: String,
}

fuzz_target!(|input: Input| {
    let requests = [OtlpRequest::Logs, OtlpRequest::Metrics, OtlpRequest::Traces];
    let request = requests[usize::from(input.request) % requests.len()];
    match to_protobuf(request, &input.json, input.bytes_max.into()) {
        Err(OtlpJsonError::TooLarge) => {}
        Err(OtlpJsonError::Malformed(error)) => {
            assert!(!json_problem(&input.json, &error).is_empty());
        }
        Ok(message) => {
            assert!(message.len() <= input.bytes_max.into());
            decode(request, &message);
        }
    }
});

fn decode(request: OtlpRequest, message: &[u8]) {
    match request {
        OtlpRequest::Logs => {
            let request = ExportLogsServiceRequest::decode(message).expect("a request");
            for part in request.resource_logs {
                ResourceLogs::decode(part).expect("a part");
            }
        }
        OtlpRequest::Metrics => {
            let request = ExportMetricsServiceRequest::decode(message).expect("a request");
            for part in request.resource_metrics {
                ResourceMetrics::decode(part).expect("a part");
            }
        }
        OtlpRequest::Traces => {
            let request = ExportTraceServiceRequest::decode(message).expect("a request");
            for part in request.resource_spans {
                ResourceSpans::decode(part).expect("a part");
            }
        }
    }
}
