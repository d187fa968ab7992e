//! Writing the stored form.

use bytes::Bytes;
use prost::encoding::encoded_len_varint;
use trestle_model::{etag::format_etag, time::Ticks};
use trestle_proto::wire::push_varint;

use super::{
    FORMAT, HEADER_BYTES,
    wire::{entity, property, timestamp, value},
};
use crate::{entity::Entity, value::Value};

/// Bytes that the timestamp and the etag take at most.
const TAIL_BYTES_MAX: usize = 80;
/// Bytes of a guid in its canonical text.
const GUID_BYTES: usize = 36;

/// Encodes the key and the properties: everything but what the time of the write decides.
#[must_use]
pub fn encode_body(entity: &Entity) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + entity.properties.len() * 48);
    for (tag, key) in
        [(entity::PARTITION_KEY, &entity.key.partition_key), (entity::ROW_KEY, &entity.key.row_key)]
    {
        if !key.is_empty() {
            push_chunk(&mut out, tag, key.as_bytes());
        }
    }
    for (name, value) in &entity.properties {
        let value_len = value_len(value);
        let message_len = chunk_len(name.len()) + chunk_len(value_len);
        out.push(entity::PROPERTY);
        push_varint(&mut out, message_len as u64);
        push_chunk(&mut out, property::NAME, name.as_bytes());
        out.push(property::VALUE);
        push_varint(&mut out, value_len as u64);
        push_value(&mut out, value);
    }
    out
}

/// The stored form of an entity whose encoded body is written at a time. Cheap: one copy.
#[must_use]
pub fn seal(body: &[u8], written_at: Ticks) -> Bytes {
    let mut out = Vec::with_capacity(HEADER_BYTES + body.len() + TAIL_BYTES_MAX);
    out.push(FORMAT);
    out.extend_from_slice(&written_at.get().to_be_bytes());
    out.extend_from_slice(body);
    out.push(entity::TIMESTAMP);
    push_varint(&mut out, time_len(written_at) as u64);
    push_time(&mut out, written_at);
    push_chunk(&mut out, entity::ETAG, format_etag(written_at).as_bytes());
    Bytes::from(out)
}

/// Bytes of the encoded value.
fn value_len(value: &Value) -> usize {
    match value {
        Value::String(text) => chunk_len(text.len()),
        Value::Int32(number) => 1 + encoded_len_varint(i64::from(*number).cast_unsigned()),
        Value::Int64(number) => 1 + encoded_len_varint(number.cast_unsigned()),
        Value::Double(_) => 9,
        Value::Boolean(_) => 2,
        Value::DateTime(ticks) => chunk_len(time_len(*ticks)),
        Value::Guid(_) => chunk_len(GUID_BYTES),
        Value::Binary(bytes) => chunk_len(bytes.len()),
    }
}

fn push_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(text) => push_chunk(out, value::STRING, text.as_bytes()),
        Value::Int32(number) => {
            out.push(value::INT32);
            // Negative numbers are sign-extended to 64 bits on the wire.
            push_varint(out, i64::from(*number).cast_unsigned());
        }
        Value::Int64(number) => {
            out.push(value::INT64);
            push_varint(out, number.cast_unsigned());
        }
        Value::Double(number) => {
            out.push(value::DOUBLE);
            out.extend_from_slice(&number.to_le_bytes());
        }
        Value::Boolean(truth) => out.extend_from_slice(&[value::BOOLEAN, u8::from(*truth)]),
        Value::DateTime(ticks) => {
            out.push(value::DATETIME);
            push_varint(out, time_len(*ticks) as u64);
            push_time(out, *ticks);
        }
        Value::Guid(guid) => {
            let mut text = [0; GUID_BYTES];
            push_chunk(out, value::GUID, guid.hyphenated().encode_lower(&mut text).as_bytes());
        }
        Value::Binary(bytes) => push_chunk(out, value::BINARY, bytes),
    }
}

/// Seconds and nanoseconds in protobuf.
fn time_parts(ticks: Ticks) -> [(u8, u64); 2] {
    let (seconds, nanos) = ticks.to_unix();
    [
        (timestamp::SECONDS, seconds.cast_unsigned()),
        (timestamp::NANOS, i64::from(nanos).cast_unsigned()),
    ]
}

fn time_len(ticks: Ticks) -> usize {
    let parts = time_parts(ticks).into_iter().filter(|(_, number)| *number != 0);
    parts.map(|(_, number)| 1 + encoded_len_varint(number)).sum()
}

fn push_time(out: &mut Vec<u8>, ticks: Ticks) {
    for (tag, number) in time_parts(ticks) {
        if number != 0 {
            out.push(tag);
            push_varint(out, number);
        }
    }
}

/// Bytes of a chunk with its tag and its length.
fn chunk_len(len: usize) -> usize {
    1 + encoded_len_varint(len as u64) + len
}

fn push_chunk(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
