//! Tests of the module.

use super::*;

#[test]
fn a_line_is_text_or_an_object_with_one_body() {
    let text = |text: &str| Ok((Body::Text(text.to_owned()), text.len()));
    assert_eq!(body_of(b"{", true), text("{"));
    assert_eq!(body_of(br#"{"text":"a","dequeue_count":3}"#, false), text("a"));
    let data = body_of(br#"{"data_base64":"AP8="}"#, false);
    assert_eq!(data, Ok((Body::Data(vec![0, 255].into()), 2)));
    for line in ["{", "{}", r#"{"text":"a","data_base64":""}"#, r#"{"data_base64":"?"}"#] {
        assert!(body_of(line.as_bytes(), false).is_err(), "{line}");
    }
    let rule = body_of(b"a job", false).unwrap_err();
    let expected = "must be a JSON object with text or data_base64, as `drain` writes it: syntax error at \
                    column 1; with --text every line is the text of a message";
    assert_eq!(rule, expected);
    assert_eq!(body_of(b"\xff", true), Err("must be UTF-8".to_owned()));
}
