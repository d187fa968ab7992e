//! Lines of logfmt: pairs of `key=value` between blanks.
//!
//! A value in double quotes has the escapes of Go, of which `\"`, `\\`, `\n`, `\r` and `\t` are used in practice. A key
//! alone is true. Without quotes numbers, `true` and `false` have their type. No published parser is maintained.

use serde_json::{Number, Value};
use trestle_proto::log::v1::Record;

use super::{FieldNames, TimeRules, fields};

/// The record of a line.
pub(super) fn parse(line: &str, times: TimeRules, names: &FieldNames) -> Result<Record, String> {
    let mut record = Record::default();
    let mut pairs = pairs(line)?;
    for (usual, name) in names.given() {
        if let Some(at) = pairs.iter().position(|(key, _)| *key == name) {
            fields::set_as(&mut record, (usual, name), pairs.remove(at).1, times)?;
        }
    }
    for (key, value) in pairs {
        fields::set(&mut record, key, value, times)?;
    }
    Ok(record)
}

/// The pairs of a line, in order.
fn pairs(line: &str) -> Result<Vec<(&str, Value)>, String> {
    let (mut rest, mut pairs) = (line.trim(), Vec::new());
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        if key.is_empty() || key.contains('"') {
            return Err(format!("must be key=value pairs, found `{}`", first_chars(rest)));
        }
        let (value, after) = match after.strip_prefix('=') {
            None => (Value::Bool(true), after),
            Some(after) => match after.strip_prefix('"') {
                Some(quoted) => unquoted(quoted, key)?,
                None => {
                    let end = after.find(char::is_whitespace).unwrap_or(after.len());
                    let (value, after) = after.split_at(end);
                    (typed(value), after)
                }
            },
        };
        pairs.push((key, value));
        rest = after.trim_start();
    }
    Ok(pairs)
}

/// The value up to its closing quote, and what follows that.
fn unquoted<'a>(text: &'a str, key: &str) -> Result<(Value, &'a str), String> {
    let (mut value, mut chars) = (String::new(), text.chars());
    while let Some(c) = chars.next() {
        match c {
            '"' => return Ok((Value::String(value), chars.as_str())),
            '\\' => match chars.next() {
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('t') => value.push('\t'),
                Some(c @ ('"' | '\\')) => value.push(c),
                other => {
                    value.push('\\');
                    value.extend(other);
                }
            },
            c => value.push(c),
        }
    }
    Err(format!("value has no closing quote: key=`{key}`"))
}

fn typed(value: &str) -> Value {
    match value {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        _ => {}
    }
    // A number that reads back as the same text: an id such as 007 is none.
    let whole = value.parse::<i64>().ok().filter(|number| number.to_string() == value);
    let double = || {
        let is_decimal = value.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-'));
        value.parse::<f64>().ok().filter(|_| is_decimal && value.contains('.'))
    };
    let number = whole.map(Number::from).or_else(|| double().and_then(Number::from_f64));
    number.map_or_else(|| Value::String(value.to_owned()), Value::Number)
}

fn first_chars(text: &str) -> String {
    text.chars().take(20).collect()
}

#[cfg(test)]
mod tests;
