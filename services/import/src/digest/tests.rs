//! Tests of the module.

use super::*;

#[test]
fn sums_ignore_order_and_count_repeats() {
    let sum = |texts: &[&str]| {
        let mut digest = Digest::default();
        texts.iter().for_each(|text| digest.add(of_message(text.as_bytes())));
        digest
    };
    assert_eq!(sum(&["a", "b", "c"]), sum(&["c", "a", "b"]));
    assert_ne!(sum(&["a", "b"]), sum(&["a", "b", "b"]));
    assert_ne!(sum(&["a", "b"]), sum(&["a", "c"]));
    let kept: Digest = serde_json::from_str(&serde_json::to_string(&sum(&["a"])).expect("fits"))
        .expect("reads what was written");
    assert_eq!(kept, sum(&["a"]));
}
