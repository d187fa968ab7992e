//! Encoded values to JSON text.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use trestle_proto::wire::{MalformedMessage, MessageReader};

use super::{
    BYTES_KEY, DOUBLE_KEY, ESCAPE, SCOPE_ATTRIBUTES, SCOPE_DROPPED, SCOPE_NAME, SCOPE_VERSION,
};
use crate::record::{entries_of, split_entry, value_of};

/// Deepest values: those that were validated have 16 levels.
const DEPTH_MAX: usize = 32;

/// Writes entries as an object, which is empty without one.
pub(crate) fn write_object<'a>(
    out: &mut String,
    entries: impl Iterator<Item = Result<&'a [u8], MalformedMessage>>,
) -> Result<(), MalformedMessage> {
    out.push('{');
    let start = out.len();
    for entry in entries {
        let (key, value) = split_entry(entry?)?;
        write_entry(out, start, key, value)?;
    }
    out.push('}');
    Ok(())
}

/// Writes a member of an object whose members begin at `start` of `out`.
#[inline]
pub(crate) fn write_entry(
    out: &mut String,
    start: usize,
    key: &str,
    any_value: &[u8],
) -> Result<(), MalformedMessage> {
    write_member(out, start, key, any_value, DEPTH_MAX)
}

fn write_member(
    out: &mut String,
    start: usize,
    key: &str,
    any_value: &[u8],
    depth: usize,
) -> Result<(), MalformedMessage> {
    if out.len() > start {
        out.push(',');
    }
    if key.starts_with(ESCAPE) {
        write_text(out, &format!("{ESCAPE}{key}"));
    } else {
        write_text(out, key);
    }
    out.push(':');
    write_value(out, any_value, depth)
}

fn write_value(out: &mut String, any_value: &[u8], depth: usize) -> Result<(), MalformedMessage> {
    let Some(inner) = depth.checked_sub(1) else {
        return Err(MalformedMessage("value is nested too deep"));
    };
    match value_of(any_value)? {
        None => out.push_str("null"),
        Some((1, value)) => write_text(out, value.text()?),
        Some((2, value)) => out.push_str(if value.varint()? == 0 { "false" } else { "true" }),
        Some((3, value)) => write_number(out, &value.varint()?.cast_signed()),
        Some((4, value)) => write_double(out, f64::from_bits(value.fixed64()?)),
        Some((5, value)) => {
            out.push('[');
            for (index, value) in entries_of(value.bytes()?, 1).enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, value?, inner)?;
            }
            out.push(']');
        }
        Some((6, value)) => {
            out.push('{');
            let start = out.len();
            for entry in entries_of(value.bytes()?, 1) {
                let (key, value) = split_entry(entry?)?;
                write_member(out, start, key, value, inner)?;
            }
            out.push('}');
        }
        Some((_, value)) => {
            write_special(out, BYTES_KEY, &STANDARD.encode(value.bytes()?));
        }
    }
    Ok(())
}

/// Writes an encoded `InstrumentationScope`, without the members that are empty.
pub(crate) fn write_scope(out: &mut String, scope: &[u8]) -> Result<(), MalformedMessage> {
    let (mut name, mut version, mut dropped, mut has_attributes) = ("", "", 0, false);
    let mut fields = MessageReader::new(scope);
    while let Some((number, value)) = fields.next_field()? {
        match number {
            1 => name = value.text()?,
            2 => version = value.text()?,
            3 => has_attributes = true,
            #[expect(clippy::cast_possible_truncation, reason = "as protobuf reads a uint32")]
            4 => dropped = value.varint()? as u32,
            _ => {}
        }
    }
    out.push('{');
    let start = out.len();
    let member = |out: &mut String, key: &str| {
        if out.len() > start {
            out.push(',');
        }
        write_text(out, key);
        out.push(':');
    };
    for (key, text) in [(SCOPE_NAME, name), (SCOPE_VERSION, version)] {
        if !text.is_empty() {
            member(out, key);
            write_text(out, text);
        }
    }
    if has_attributes {
        member(out, SCOPE_ATTRIBUTES);
        write_object(out, entries_of(scope, 3))?;
    }
    if dropped > 0 {
        member(out, SCOPE_DROPPED);
        write_number(out, &i64::from(dropped));
    }
    out.push('}');
    Ok(())
}

fn write_special(out: &mut String, key: &str, text: &str) {
    out.push('{');
    write_text(out, key);
    out.push(':');
    write_text(out, text);
    out.push('}');
}

/// Writes text in quotes.
pub(super) fn write_text(out: &mut String, text: &str) {
    out.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escaped = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(text.get(plain..at).unwrap_or_default());
        if escaped.is_empty() {
            let digit = |nibble| char::from_digit(nibble, 16).unwrap_or('0');
            out.push_str("\\u00");
            out.push(digit(u32::from(byte >> 4)));
            out.push(digit(u32::from(byte & 0xF)));
        } else {
            out.push_str(escaped);
        }
        plain = at + 1;
    }
    out.push_str(text.get(plain..).unwrap_or_default());
    out.push('"');
}

fn write_number(out: &mut String, number: &impl serde::Serialize) {
    // Every number has fewer digits.
    let mut digits = std::io::Cursor::new([0_u8; 32]);
    if serde_json::to_writer(&mut digits, number).is_ok() {
        let length = usize::try_from(digits.position()).unwrap_or_default();
        let digits = digits.get_ref().get(..length).unwrap_or_default();
        out.push_str(std::str::from_utf8(digits).unwrap_or_default());
    }
}

fn write_double(out: &mut String, value: f64) {
    if value.is_finite() {
        return write_number(out, &value);
    }
    let text = match value {
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        nan if nan.to_bits() == f64::NAN.to_bits() => "NaN".to_owned(),
        // Bits of an application.
        nan => format!("NaN:{:016x}", nan.to_bits()),
    };
    write_special(out, DOUBLE_KEY, &text);
}
