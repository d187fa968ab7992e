//! Errors of JSON in the words of a person, without those of the library that reads it.

use serde_json::error::{Category, Error};

/// The beginning of the library's error of nested values.
const DEPTH: &str = "recursion limit";

/// The problem of a text that is not the expected JSON: its field, the value and the rule, or the place of an error of
/// syntax.
#[must_use]
pub fn json_problem(text: &str, error: &Error) -> String {
    match error.classify() {
        Category::Eof => "it ends before it is complete".to_owned(),
        Category::Data => {
            let report = error.to_string();
            let report = report.split(" at line ").next().unwrap_or_default();
            type_problem(report, member_before(text, error))
        }
        Category::Syntax | Category::Io if error.to_string().starts_with(DEPTH) => {
            format!("is nested too deep at {}", place(text, error))
        }
        Category::Syntax | Category::Io => format!("syntax error at {}", place(text, error)),
    }
}

/// Where an error is; the line is left out in a text of one line.
fn place(text: &str, error: &Error) -> String {
    let has_lines = text.trim_end().contains('\n');
    let line = if has_lines { format!("line {}, ", error.line()) } else { String::new() };
    format!("{line}column {}", error.column())
}

/// The last member whose name begins before an error.
fn member_before<'a>(text: &'a str, error: &Error) -> Option<&'a str> {
    let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
    let start: usize = lines.map(str::len).sum();
    let before = text.get(..start.saturating_add(error.column()))?;
    let (names, _) = before.rsplit_once("\":")?;
    names.rsplit_once('"').map(|(_, name)| name)
}

/// A sentence of the library about a value in ours.
fn type_problem(report: &str, member: Option<&str>) -> String {
    let named = |rule: String| match member {
        Some(name) => format!("{name}: {rule}"),
        None => rule,
    };
    let quoted = |report: &str| report.split('`').nth(1).map(str::to_owned);
    match report.split_once(' ') {
        // A rule of ours.
        Some(("must", _)) => named(report.to_owned()),
        Some(("missing", _)) => format!("{}: required", quoted(report).unwrap_or_default()),
        Some(("unknown", _)) => format!("{}: unknown field", quoted(report).unwrap_or_default()),
        Some(("duplicate", _)) => {
            format!("{}: must not occur twice", quoted(report).unwrap_or_default())
        }
        _ => match report.split_once(", expected ") {
            Some((found, expected)) => {
                named(format!("must be {}{}", type_name(expected), value_of(found)))
            }
            None => named("does not have the expected form".to_owned()),
        },
    }
}

/// A type with its article.
fn type_name(expected: &str) -> &str {
    match expected {
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "i64" | "u64" | "i32" | "u32" | "usize" => "a whole number",
        text if text.starts_with("struct ") || text == "a map" => "an object",
        text => text,
    }
}

/// The value that was found; nothing where it has no text.
fn value_of(found: &str) -> String {
    let text = found.split_once('"').and_then(|(_, text)| text.strip_suffix('"'));
    let text = text.or_else(|| found.split('`').nth(1));
    text.map(|text| format!(": value=`{text}`")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only errors are of interest")]
    struct Settings {
        read: bool,
        days: Option<i64>,
        names: Option<Vec<String>>,
    }

    #[test]
    fn each_problem_names_its_field_value_and_rule() {
        for (text, expected) in [
            ("", "it ends before it is complete"),
            ("{\"read\":tru", "it ends before it is complete"),
            ("not", "syntax error at column 2"),
            ("{\n \"read\" true}", "syntax error at line 2, column 9"),
            ("{\"read\":true} x", "syntax error at column 15"),
            ("{\"read\":\"yes\"}", "read: must be true or false: value=`yes`"),
            ("{\"days\":1,\n\"read\":7}", "read: must be true or false: value=`7`"),
            ("{\"read\":true,\"days\":\"x\"}", "days: must be a whole number: value=`x`"),
            ("{\"read\":true,\"days\":1.5}", "days: must be a whole number: value=`1.5`"),
            ("{\"read\":true,\"names\":{}}", "names: must be a list"),
            ("{\"days\":1}", "read: required"),
            ("{\"more\":1}", "more: unknown field"),
            ("{\"read\":true,\"read\":true}", "read: must not occur twice"),
            ("[1,2,3,4]", "must be true or false: value=`1`"),
            ("5", "must be an object: value=`5`"),
        ] {
            let error = serde_json::from_str::<Settings>(text).unwrap_err();

            assert_eq!(json_problem(text, &error), expected, "{text}");
        }
    }

    #[test]
    fn values_that_are_nested_too_deep_are_named_so() {
        let text = "[".repeat(200);
        let error = serde_json::from_str::<serde_json::Value>(&text).unwrap_err();

        assert_eq!(json_problem(&text, &error), "is nested too deep at column 128");
    }
}
