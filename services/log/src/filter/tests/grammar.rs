//! The language: canonical texts, and errors with their positions.

use super::*;

#[test]
fn filters_have_a_canonical_text() {
    for (text, canonical) in [
        ("severity ge 17", "severity ge 17"),
        ("severity ge 'ERROR'", "severity ge 17"),
        ("severity gt 'warn'", "severity gt 16"),
        ("severity lt 'Info'", "severity lt 9"),
        ("'debug' le severity", "severity ge 5"),
        ("severity le 'trace'", "severity le 4"),
        ("severity eq 'fatal'", "severity ge 21 and severity le 24"),
        ("severity ne 'info' and value gt 1", "(severity lt 9 or severity gt 12) and value gt 1"),
        ("attributes/http.route eq '/a'", "attributes/http.route eq '/a'"),
        ("attributes/a-1:b_c", "attributes/a-1:b_c eq true"),
        ("not attributes/'any key' eq 1", "not (attributes/'any key' eq 1)"),
        ("attributes/'plain' eq 1", "attributes/plain eq 1"),
        ("attributes/'it''s' eq 1", "attributes/'it''s' eq 1"),
        ("resource/k8s.pod ne X'00ff'", "resource/k8s.pod ne X'00ff'"),
        ("contains( body ,'it''s')", "contains(body, 'it''s')"),
        ("startswith(resource/'a/b', 'x') or true", "startswith(resource/'a/b', 'x') or true"),
        ("(not contains(body,'a'))", "not (contains(body, 'a'))"),
        ("trace_id eq 'ABcd'", "trace_id eq 'abcd'"),
        ("time ge datetime'2026-11-25T08:00Z'", "time ge datetime'2026-11-25T08:00:00Z'"),
        ("sequence eq 5L and span_id eq ''", "sequence eq 5L and span_id eq ''"),
    ] {
        let parsed = filter(text);
        assert_eq!(parsed.expr.to_string(), canonical, "{text}");
        assert_eq!(filter(canonical), parsed, "{text}");
    }
    assert_eq!(LogFilter::parse(" \n"), Ok(None));
}

#[test]
fn syntax_errors_report_position_and_expectation() {
    for (text, position, message) in [
        ("level eq 1", 5, "named `level`, expected `severity`, `severity_text`, `body`, "),
        ("body eq 'a' or a.b eq 1", 16, "`scope`, `attributes/KEY` or `resource/KEY`"),
        ("attributes eq 1", 10, "No property of records is named `attributes`"),
        ("body/x eq 1", 6, "No property of records is named `body/x`"),
        ("attributes/ eq 1", 11, "Expected a key after `/`"),
        ("attributes/'a eq 1", 18, "Text has no closing quote"),
        ("severity ge 'loud'", 18, "'warn', 'error' or 'fatal' to compare `severity` with"),
        ("severity eq true", 16, "Expected a number, 'trace'"),
        ("body", 4, "Expected a text in single quotes to compare `body` with"),
        ("trace_id eq 1", 13, "Expected a text in single quotes"),
        ("value eq '1'", 12, "Expected a number to compare `value` with"),
        ("time gt 1", 9, "Expected datetime'"),
        ("attributes/a eq guid'01234567-89ab-cdef-0123-456789abcdef'", 58, "Expected a text, a"),
        (
            "endswith(body, 'a')",
            8,
            "`endswith` is not supported, expected `contains` or `startswith`",
        ),
        ("contains(value, 'a')", 19, "Function `contains` expects a text, and `value` is none"),
        ("contains(body 'a')", 17, "Expected `,`, found `'a'`"),
        ("contains(body, 5)", 16, "Expected a text in single quotes, found `5`"),
        ("contains(body, 'a'", 18, "Expected `)`, found the end"),
        ("contains('a', body)", 13, "Expected a property, then a text"),
        ("body, eq 'a'", 5, "Expected an operator"),
    ] {
        let error = LogFilter::parse(text).expect_err(text);
        assert!(error.message.contains(message), "{text}: {error}");
        assert_eq!(error.position, position, "{text}: {error}");
    }
}
