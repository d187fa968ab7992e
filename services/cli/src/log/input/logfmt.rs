//! Lines of logfmt: pairs of `key=value` between blanks.
//!
//! A value in double quotes has the escapes of Go, of which `\"`, `\\`, `\n`, `\r` and `\t` are used in practice. A key
//! alone is true. Without quotes numbers, `true` and `false` have their type. No published parser is maintained.

use serde_json::{Number, Value};
use trestle_proto::log::v1::Record;

use super::{TimeRules, fields};

/// The record of a line.
pub(super) fn parse(line: &str, times: TimeRules) -> Result<Record, String> {
    let mut record = Record::default();
    for (key, value) in pairs(line)? {
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
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn pairs_have_types_and_quotes() {
        let line =
            r#"  ts=1 msg="a \"b\" c\n\x" n=-5 d=1.5 id=007 v=1.2.3 ok=true flag e= u=a=b  "#;
        let expected = [
            ("ts", json!(1)),
            ("msg", json!("a \"b\" c\n\\x")),
            ("n", json!(-5)),
            ("d", json!(1.5)),
            ("id", json!("007")),
            ("v", json!("1.2.3")),
            ("ok", json!(true)),
            ("flag", json!(true)),
            ("e", json!("")),
            ("u", json!("a=b")),
        ];
        assert_eq!(pairs(line), Ok(expected.to_vec()));
        for line in ["=a", "a=1 =b", "a=\"b", "\"a\"=1"] {
            assert!(pairs(line).is_err(), "{line}");
        }
    }

    fn written(pairs: &[(String, String)]) -> String {
        let quoted = |value: &str| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"");
            value.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t")
        };
        let pairs = pairs.iter().map(|(key, value)| format!("{key}=\"{}\"", quoted(value)));
        pairs.collect::<Vec<_>>().join(" ")
    }

    proptest! {
        #[test]
        fn quoted_pairs_are_read_back(
            expected in proptest::collection::vec(("[a-z_.@/-]{1,8}", ".*"), 0..5),
        ) {
            let line = written(&expected);
            let found = pairs(&line).unwrap();
            let found: Vec<_> = found
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value.as_str().unwrap().to_owned()))
                .collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn arbitrary_text_is_pairs_or_an_error(line in ".*") {
            if let Err(error) = pairs(&line) {
                prop_assert!(!error.is_empty());
            }
        }
    }
}
