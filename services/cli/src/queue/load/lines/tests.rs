//! Tests of the module.

use super::*;
use crate::lines::Position;

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
}

#[test]
fn reading_continues_at_a_position() {
    let open = |text: &'static [u8], at| {
        let lines = Lines::new(Box::new(text), at, LINE_BYTES_MAX);
        MessageLines { lines, name: "f".to_owned(), is_text: true }
    };
    let mut lines = open(b"a\r\nb\nc\n", Position::default());
    lines.next().unwrap();
    lines.next().unwrap();

    let at = lines.lines.at;
    assert_eq!((at.byte, at.line, at.row), (5, 2, 2));
    let mut rest = open(b"c\n\xff", at);
    assert_eq!(rest.next().unwrap(), Some((Body::Text("c".to_owned()), 1)));
    assert!(rest.next().unwrap_err().to_string().starts_with("f:4: "));
}
