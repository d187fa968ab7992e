//! Bodies of responses: tables and entities as JSON at a metadata level, written straight into the
//! send buffer.

use std::io::Write as _;

use base64::{display::Base64Display, engine::general_purpose::STANDARD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use trestle_model::{etag::format_time, time::Ticks};

use super::{
    Select,
    wire::{self, System, Unreadable, WireValue},
};
use crate::table::level::Level;

/// The characters of a key that an address does not escape: a quote is doubled, as OData requires.
const KEY: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'\'');

/// Bytes of a text that are examined at a time.
const ESCAPE_CHUNK_BYTES: usize = 128;

/// The origin of a response, for the addresses in it.
#[derive(Debug, Clone)]
pub(crate) struct ResponseOrigin {
    /// Scheme, host, and in path style the account.
    pub(crate) base: String,
    /// The account.
    pub(crate) account: String,
    /// The table as the client spelled it; empty for the list of tables.
    pub(crate) table: String,
}

/// The path of an entity from the base on, such as `t1(PartitionKey='p',RowKey='r')`.
#[must_use]
pub fn entity_path(table: &str, partition_key: &str, row_key: &str) -> String {
    format!("{table}(PartitionKey='{}',RowKey='{}')", key(partition_key), key(row_key))
}

fn key(key: &str) -> String {
    utf8_percent_encode(&key.replace('\'', "''"), KEY).to_string()
}

/// The etag of an encoded entity.
///
/// # Errors
/// If it is malformed.
pub(crate) fn etag_of(encoded: &[u8]) -> Result<&str, Unreadable> {
    wire::system(encoded).map(|system| system.etag)
}

/// The body that is one entity.
///
/// # Errors
/// If the encoded entity is malformed.
pub(crate) fn entity_json(
    encoded: &[u8],
    origin: &ResponseOrigin,
    level: Level,
    select: Option<&Select>,
) -> Result<Vec<u8>, Unreadable> {
    let mut out = Vec::with_capacity(encoded.len() * 2 + 512);
    out.push(b'{');
    if level != Level::None {
        push_metadata(&mut out, origin, "/@Element", select);
        out.push(b',');
    }
    push_entity(&mut out, encoded, origin, level, select)?;
    out.push(b'}');
    Ok(out)
}

/// The start of a page, before its entities.
pub(super) fn push_page_start(
    out: &mut Vec<u8>,
    origin: &ResponseOrigin,
    level: Level,
    select: Option<&Select>,
) {
    out.push(b'{');
    if level != Level::None {
        push_metadata(out, origin, "", select);
        out.push(b',');
    }
    out.extend_from_slice(b"\"value\":[");
}

/// The end of a page, after its entities.
pub(super) const PAGE_END: &[u8] = b"]}";

/// The body that is one table.
pub(crate) fn table_json(origin: &ResponseOrigin, level: Level) -> Vec<u8> {
    let mut out = vec![b'{'];
    if level != Level::None {
        push_name_and_json(&mut out, "odata.metadata", &metadata(origin, "Tables/@Element", None));
        out.push(b',');
    }
    push_table(&mut out, origin, level, &origin.table);
    out.push(b'}');
    out
}

/// The body that is a page of tables.
pub(crate) fn tables_json<'a>(
    names: impl Iterator<Item = &'a str>,
    origin: &ResponseOrigin,
    level: Level,
) -> Vec<u8> {
    let mut out = vec![b'{'];
    if level != Level::None {
        push_name_and_json(&mut out, "odata.metadata", &metadata(origin, "Tables", None));
        out.push(b',');
    }
    out.extend_from_slice(b"\"value\":[");
    for (at, name) in names.enumerate() {
        out.extend_from_slice(if at == 0 { b"{" } else { b",{" });
        push_table(&mut out, origin, level, name);
        out.push(b'}');
    }
    out.extend_from_slice(PAGE_END);
    out
}

fn push_table(out: &mut Vec<u8>, origin: &ResponseOrigin, level: Level, name: &str) {
    if level == Level::Full {
        push_name_and_json(out, "odata.type", &format!("{}.Tables", origin.account));
        out.push(b',');
        push_name_and_json(out, "odata.id", &format!("{}/Tables('{name}')", origin.base));
        out.push(b',');
        push_name_and_json(out, "odata.editLink", &format!("Tables('{name}')"));
        out.push(b',');
    }
    push_name_and_json(out, "TableName", name);
}

fn metadata(origin: &ResponseOrigin, of: &str, select: Option<&Select>) -> String {
    let suffix = select.map(|select| format!("&$select={}", select.text())).unwrap_or_default();
    format!("{}/$metadata#{of}{suffix}", origin.base)
}

fn push_metadata(out: &mut Vec<u8>, origin: &ResponseOrigin, of: &str, select: Option<&Select>) {
    let of = format!("{}{of}", origin.table);
    push_name_and_json(out, "odata.metadata", &metadata(origin, &of, select));
}

/// The members of an entity, without the braces around them.
pub(super) fn push_entity(
    out: &mut Vec<u8>,
    encoded: &[u8],
    origin: &ResponseOrigin,
    level: Level,
    select: Option<&Select>,
) -> Result<(), Unreadable> {
    let system = wire::system(encoded)?;
    push_control(out, &system, origin, level);
    push_system(out, &system, level, select);
    match select {
        None => {
            for property in wire::properties(encoded) {
                let (name, value) = property?;
                push_property(out, name, value, level);
            }
        }
        Some(select) => push_selected(out, encoded, select, level)?,
    }
    // Every member but the last has a comma after it.
    if out.last() == Some(&b',') {
        out.pop();
    }
    Ok(())
}

fn push_control(out: &mut Vec<u8>, system: &System<'_>, origin: &ResponseOrigin, level: Level) {
    if level == Level::None {
        return;
    }
    let full = (level == Level::Full)
        .then(|| entity_path(&origin.table, system.partition_key, system.row_key));
    if let Some(path) = &full {
        push_name_and_json(out, "odata.type", &format!("{}.{}", origin.account, origin.table));
        out.push(b',');
        push_name_and_json(out, "odata.id", &format!("{}/{path}", origin.base));
        out.push(b',');
    }
    push_name_and_json(out, "odata.etag", system.etag);
    out.push(b',');
    if let Some(path) = &full {
        push_name_and_json(out, "odata.editLink", path);
        out.push(b',');
    }
}

fn push_system(out: &mut Vec<u8>, system: &System<'_>, level: Level, select: Option<&Select>) {
    let [partition_key, row_key, timestamp] = select.map_or([true; 3], Select::system);
    if partition_key {
        push_name_and_json(out, "PartitionKey", system.partition_key);
        out.push(b',');
    }
    if row_key {
        push_name_and_json(out, "RowKey", system.row_key);
        out.push(b',');
    }
    if timestamp {
        if level == Level::Full {
            out.extend_from_slice(b"\"Timestamp@odata.type\":\"Edm.DateTime\",");
        }
        out.extend_from_slice(b"\"Timestamp\":");
        push_time(out, system.timestamp);
        out.push(b',');
    }
}

/// The selected properties in their order, null if the entity lacks one.
fn push_selected(
    out: &mut Vec<u8>,
    encoded: &[u8],
    select: &Select,
    level: Level,
) -> Result<(), Unreadable> {
    let mut names = select.custom().iter();
    for property in wire::properties(encoded) {
        let (name, value) = property?;
        // Both have the same order, so skipped names are not in the entity.
        let Some(at) = names.as_slice().iter().position(|selected| selected == name) else {
            continue;
        };
        for absent in names.by_ref().take(at + 1).take_while(|selected| *selected != name) {
            push_null(out, absent);
        }
        push_property(out, name, value, level);
    }
    for absent in names {
        push_null(out, absent);
    }
    Ok(())
}

fn push_null(out: &mut Vec<u8>, name: &str) {
    push_text(out, name);
    out.extend_from_slice(b":null,");
}

fn push_property(out: &mut Vec<u8>, name: &str, value: WireValue<'_>, level: Level) {
    if let (Some(edm), true) = (annotation(value), level != Level::None) {
        // A reader would not match the type of an escaped name: the suffix is inside.
        push_text(out, name);
        out.pop();
        out.extend_from_slice(b"@odata.type\":\"");
        out.extend_from_slice(edm.as_bytes());
        out.extend_from_slice(b"\",");
    }
    push_text(out, name);
    out.push(b':');
    push_value(out, value);
    out.push(b',');
}

/// The type that a reader cannot infer from the value.
fn annotation(value: WireValue<'_>) -> Option<&'static str> {
    match value {
        WireValue::Int64(_) => Some("Edm.Int64"),
        WireValue::DateTime(..) => Some("Edm.DateTime"),
        WireValue::Guid(_) => Some("Edm.Guid"),
        WireValue::Binary(_) => Some("Edm.Binary"),
        WireValue::Double(number) if !number.is_finite() => Some("Edm.Double"),
        WireValue::String(_)
        | WireValue::Int32(_)
        | WireValue::Double(_)
        | WireValue::Boolean(_) => None,
    }
}

fn push_value(out: &mut Vec<u8>, value: WireValue<'_>) {
    match value {
        WireValue::String(text) | WireValue::Guid(text) => push_text(out, text),
        WireValue::Int32(number) => push_json(out, &number),
        WireValue::Boolean(truth) => push_json(out, &truth),
        WireValue::Int64(number) => {
            out.push(b'"');
            push_json(out, &number);
            out.push(b'"');
        }
        WireValue::Double(number) if number.is_nan() => push_json(out, "NaN"),
        WireValue::Double(f64::INFINITY) => push_json(out, "Infinity"),
        WireValue::Double(f64::NEG_INFINITY) => push_json(out, "-Infinity"),
        // Always written with a point or an exponent.
        WireValue::Double(number) => push_json(out, &number),
        WireValue::DateTime(seconds, nanos) => push_time(out, (seconds, nanos)),
        WireValue::Binary(bytes) => {
            out.push(b'"');
            write_all(out, format_args!("{}", Base64Display::new(bytes, &STANDARD)));
            out.push(b'"');
        }
    }
}

fn push_time(out: &mut Vec<u8>, (seconds, nanos): (i64, i32)) {
    out.push(b'"');
    // Stored times are ticks; our own service sends no others.
    if let Some(ticks) = Ticks::from_unix(seconds, nanos) {
        out.extend_from_slice(format_time(ticks).as_bytes());
    }
    out.push(b'"');
}

/// A name, a colon and a text.
fn push_name_and_json(out: &mut Vec<u8>, name: &str, text: &str) {
    push_text(out, name);
    out.push(b':');
    push_text(out, text);
}

/// A text in quotes. Most need no escapes, which is detected many bytes at a time.
fn push_text(out: &mut Vec<u8>, text: &str) {
    if is_escaped(text) {
        return push_json(out, text);
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Whether a text needs escapes in JSON. A chunk is examined without a branch for each byte.
fn is_escaped(text: &str) -> bool {
    let is_escaped = |byte: u8| (byte < b' ') | (byte == b'"') | (byte == b'\\');
    let chunks = text.as_bytes().chunks(ESCAPE_CHUNK_BYTES);
    let mut found =
        chunks.map(|chunk| chunk.iter().fold(false, |any, byte| any | is_escaped(*byte)));
    found.any(|is_found| is_found)
}

fn push_json<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let written = serde_json::to_writer(&mut *out, value);
    debug_assert!(written.is_ok(), "memory takes every plain value");
}

fn write_all(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let written = out.write_fmt(text);
    debug_assert!(written.is_ok(), "memory takes every text");
}
