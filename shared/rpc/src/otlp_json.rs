//! Requests of OTLP in JSON, as the same messages in Protocol Buffers.
//!
//! Read as the mapping of ProtoJSON has it: null for what is not set, numbers as text too, enums by name or number,
//! bytes in either alphabet of base64, names of fields in both forms, unknown fields ignored. Two rules are of OTLP:
//! the ids of traces and spans are hexadecimal, and one that is malformed invalidates its item alone.
//!
//! Messages are written while they are read, without a tree between, so that memory is that of the result.

mod contract;
mod encoder;
mod reader;
#[cfg(test)]
mod tests;
mod values;

use serde::de::DeserializeSeed as _;

use self::{contract::CONTRACT, encoder::Encoder, reader::MessageSeed};

/// The requests of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtlpRequest {
    /// `ExportLogsServiceRequest`.
    Logs,
    /// `ExportMetricsServiceRequest`.
    Metrics,
    /// `ExportTraceServiceRequest`.
    Traces,
}

/// Why a request is not read.
#[derive(Debug)]
pub enum OtlpJsonError {
    /// Its message would have more than the most bytes.
    TooLarge,
    /// It is no JSON, or not of the request.
    Malformed(serde_json::Error),
}

/// The message of a request in JSON, of at most `bytes_max` bytes.
///
/// # Errors
/// Every kind of [`OtlpJsonError`].
pub fn to_protobuf(
    request: OtlpRequest,
    json: &str,
    bytes_max: usize,
) -> Result<Vec<u8>, OtlpJsonError> {
    let mut encoder = Encoder::new(bytes_max);
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let message = CONTRACT.request(request);
    let read = MessageSeed { encoder: &mut encoder, message }.deserialize(&mut deserializer);
    match read.and_then(|()| deserializer.end()) {
        Ok(()) => Ok(encoder.into_bytes()),
        Err(_) if encoder.is_full() => Err(OtlpJsonError::TooLarge),
        Err(error) => Err(OtlpJsonError::Malformed(error)),
    }
}
