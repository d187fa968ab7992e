//! Boundaries, and the parts between them.

use proptest::prelude::*;

use super::*;

fn texts(body: &str) -> Result<Vec<&str>, Truncated> {
    let text = |part| str::from_utf8(part).expect("UTF-8");
    parts(body.as_bytes(), "b1").map(|part| part.map(text)).collect()
}

#[test]
fn a_boundary_is_found_quoted_and_not_and_among_other_parameters() {
    for (content_type, expected) in [
        ("multipart/mixed; boundary=b1", Some("b1")),
        ("multipart/mixed;boundary=b1", Some("b1")),
        ("Multipart/Mixed; BOUNDARY = b1 ", Some("b1")),
        ("multipart/mixed; boundary=\"b 1;x\"", Some("b 1;x")),
        ("multipart/mixed; charset=utf-8; boundary=b1; x=y", Some("b1")),
        ("multipart/mixed; x=\"boundary=no\"; boundary=b1", Some("b1")),
        ("multipart/mixed", None),
        ("multipart/mixed; boundary=", None),
        ("multipart/mixed; boundary=\"b1", None),
        ("multipart/mixed; x", None),
        ("multipart/form-data; boundary=b1", None),
        ("application/http; boundary=b1", None),
    ] {
        assert_eq!(boundary(content_type), expected, "{content_type}");
    }
    let long = format!("multipart/mixed; boundary={}", "b".repeat(257));
    assert_eq!(boundary(&long), None);
}

#[test]
fn parts_are_the_text_between_boundaries() {
    for (body, expected) in [
        ("--b1\r\none\r\n--b1\r\ntwo\r\n--b1--\r\n", vec!["one", "two"]),
        ("--b1\none\n--b1\ntwo\n--b1--", vec!["one", "two"]),
        ("preamble\r\n--b1\r\none\r\n--b1--\r\nepilogue", vec!["one"]),
        ("--b1\r\n\r\none\r\n\r\n\r\n--b1--", vec!["\r\none\r\n\r\n"]),
        ("--b1 \t\r\none\r\n--b1-- \r\n", vec!["one"]),
        // The end lacks its dashes.
        ("--b1\r\none\r\n--b1\r\n", vec!["one"]),
        ("--b1\r\none\r\n--b1", vec!["one"]),
        // No part.
        ("--b1--", vec![]),
        ("--b1\r\n--b1--", vec![]),
        ("--b1\r\n", vec![]),
        ("", vec![]),
        // Not a boundary: another name, inside of a line, more behind it.
        ("--b1\r\n--b12\r\none --b1\r\n--b1x\r\n--b1--", vec!["--b12\r\none --b1\r\n--b1x"]),
    ] {
        assert_eq!(texts(body), Ok(expected), "{body:?}");
    }
}

#[test]
fn a_body_without_its_last_boundary_is_truncated() {
    for body in ["one", "--b1 x", "--b1\r\none", "--b1\r\none\r\n--b1\r\ntwo\r\n--b12--"] {
        assert_eq!(texts(body), Err(Truncated), "{body:?}");
    }
    let mut broken = parts(b"--b1\r\none", "b1");
    assert_eq!((broken.next(), broken.next()), (Some(Err(Truncated)), None));
}

#[test]
fn text_around_the_boundaries_is_reported() {
    for (body, expected) in [
        ("\r\n--b1\r\none\r\n--b1-- \r\n\r\n", true),
        ("--b1--", true),
        ("zero\r\n--b1\r\none\r\n--b1--", false),
        ("--b1\r\none\r\n--b1--\r\n--b1\r\ntwo\r\n--b1--", false),
    ] {
        let mut parts = parts(body.as_bytes(), "b1");
        assert!(parts.by_ref().all(|part| part.is_ok()));
        assert_eq!(parts.are_all(), expected, "{body:?}");
    }
}

#[test]
fn a_body_of_nothing_but_near_boundaries_is_read_in_one_pass() {
    let near = "--b1-".repeat(200_000);
    let body = format!("--b1\r\n{near}\r\n--b1--");
    assert_eq!(texts(&body), Ok(vec![&*near]));
}

#[test]
fn a_boundary_has_at_most_its_longest_length_and_is_not_empty() {
    let of = |length: usize| format!("multipart/mixed; boundary=\"{}\"", "b".repeat(length));
    assert_eq!(boundary(&of(BOUNDARY_BYTES_MAX)).map(str::len), Some(BOUNDARY_BYTES_MAX));
    assert_eq!(boundary(&of(BOUNDARY_BYTES_MAX + 1)), None);
    assert_eq!(boundary(&of(0)), None);
    assert_eq!(boundary("multipart/mixed; boundary=\" \""), None);
}

#[test]
fn lines_that_look_like_boundaries_around_the_parts_are_reported() {
    for (body, expected) in [
        ("--b1\r\none\r\n--b1--\r\n", false),
        ("text\r\n--b1\r\none\r\n--b1--\r\nmore --text", false),
        ("--b2\r\n--b1\r\none\r\n--b1--", true),
        ("--b1\r\none\r\n--b1--\r\n--b2", true),
    ] {
        let mut parts = parts(body.as_bytes(), "b1");
        assert!(parts.by_ref().all(|part| part.is_ok()), "{body:?}");
        assert_eq!(parts.surround_parts(), expected, "{body:?}");
    }
}

/// A part that is not blank and has no boundary in it.
fn contents() -> impl Strategy<Value = String> {
    "[a-z][a-z:{} \r\n-]{0,30}[a-z]".prop_filter("no boundary", |text| !text.contains("--b1"))
}

proptest! {
    #[test]
    fn composed_parts_survive_with_any_line_end(
        contents in proptest::collection::vec(contents(), 0..6),
        line_end in prop_oneof![Just("\r\n"), Just("\n")],
        has_dashes in any::<bool>(),
    ) {
        let mut body = String::new();
        for content in &contents {
            body.extend(["--b1", line_end, content.as_str(), line_end]);
        }
        body.push_str(if has_dashes { "--b1--" } else { "--b1" });
        prop_assert_eq!(texts(&body), Ok(contents.iter().map(String::as_str).collect()));
    }

    #[test]
    fn a_cut_before_the_last_boundary_is_reported(
        contents in proptest::collection::vec(contents(), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut body = String::new();
        let mut last = 0;
        for content in &contents {
            body.push_str("--b1\r\n");
            last = body.len();
            body.push_str(content);
            body.push_str("\r\n");
        }
        // In the last part, behind its first character.
        let cut = last + 1 + cut.index(body.len() - last - 1);
        prop_assert_eq!(texts(&body[..cut]), Err(Truncated));
    }

    #[test]
    fn a_quoted_boundary_is_found_among_other_parameters(
        value in "[A-Za-z0-9'()+_,./:=?][A-Za-z0-9'()+_,./:=? ;-]{0,60}[A-Za-z0-9]",
        other in "[a-z]{1,5}=(\"[a-z;= ]{0,9}\"|[a-z]{1,9})",
    ) {
        let content_type = format!("multipart/mixed; {other}; boundary=\"{value}\"; {other}");
        prop_assert_eq!(boundary(&content_type), Some(value.as_str()));
    }
}
