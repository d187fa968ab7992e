//! Values that JSON has no exact form of.

use super::*;

#[test]
fn what_json_lacks_is_an_object_of_one_member() {
    let of = |kind| of_value(&AnyValue { value: Some(kind) });
    assert_eq!(of(Kind::BytesValue(vec![0, 255].into())), json!({ "$bytes": "AP8=" }));
    assert_eq!(of(Kind::DoubleValue(f64::NEG_INFINITY)), json!({ "$double": "-Infinity" }));
    let list = KeyValueList {
        values: vec![any_value::pair("$bytes".to_owned(), any_value::of_text("AP8="))],
    };
    assert_eq!(of(Kind::KvlistValue(list)), json!({ "$$bytes": "AP8=" }));
}

#[test]
fn an_object_that_only_looks_like_one_is_a_list() {
    for json in [
        json!({ "$bytes": "no base64" }),
        json!({ "$bytes": 1 }),
        json!({ "$double": "much" }),
        json!({ "$bytes": "AP8=", "more": 1 }),
        json!({ "$other": "AP8=" }),
    ] {
        let found = value(json.clone());
        assert!(matches!(found.value, Some(Kind::KvlistValue(_))), "{json}");
        assert_eq!(any_value::json(&found), json);
    }
}
