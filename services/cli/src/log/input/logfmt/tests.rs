//! Lines of logfmt, well-formed and malformed.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn pairs_have_types_and_quotes() {
    let line = r#"  ts=1 msg="a \"b\" c\n\x" n=-5 d=1.5 id=007 v=1.2.3 ok=true flag e= u=a=b  "#;
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
