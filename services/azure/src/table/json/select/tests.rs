//! Selections of properties, and their form in a call.

use proptest::prelude::*;

use super::*;

fn paths(text: &str) -> Vec<String> {
    Select::parse(text).expect("a selection").mask().paths
}

#[test]
fn no_name_and_the_asterisk_select_every_property() {
    for text in ["", " ", ",", " , ,", "*", "a,*", "* ,PartitionKey"] {
        assert_eq!(Select::parse(text), None, "{text:?}");
    }
    assert!(Select::parse("a*").is_some(), "a name");
}

#[test]
fn system_properties_are_selected_by_their_exact_names() {
    for (text, system) in [
        ("PartitionKey", [true, false, false]),
        ("RowKey,a", [false, true, false]),
        (" Timestamp , Timestamp", [false, false, true]),
        ("PartitionKey,RowKey,Timestamp", [true, true, true]),
        ("partitionkey,rowkey,timestamp", [false, false, false]),
    ] {
        assert_eq!(Select::parse(text).expect(text).system(), system, "{text}");
    }
    // Names are case-sensitive: others are properties.
    assert_eq!(Select::parse("rowkey").expect("a name").custom(), ["rowkey"]);
}

#[test]
fn names_are_kept_once_in_the_order_of_utf_16() {
    let select = Select::parse("b, a,b ,\u{ffff},\u{10000},B").expect("a selection");
    // By UTF-16 code unit a character above U+FFFF is before U+FFFF.
    assert_eq!(select.custom(), ["B", "a", "b", "\u{10000}", "\u{ffff}"]);
    assert_eq!(select.text(), "b, a,b ,\u{ffff},\u{10000},B");
}

#[test]
fn control_members_are_no_properties_and_an_empty_mask_is_never_sent() {
    for text in ["odata.etag", "a@odata.type", "PartitionKey", "RowKey,odata.id"] {
        let select = Select::parse(text).expect(text);
        assert!(select.custom().is_empty(), "{text}");
        assert_eq!(select.mask().paths, ["PartitionKey"], "{text}");
    }
    assert_eq!(paths("odata.etag,x"), ["x"]);
    assert_eq!(paths("RowKey,x,y"), ["x", "y"]);
}

proptest! {
    #[test]
    fn the_order_and_the_repetition_of_names_do_not_matter(
        names in proptest::collection::vec("[a-zA-Z_é\u{fffd}😀]{1,4}", 1..8).prop_shuffle(),
    ) {
        let mut sorted = names.clone();
        sorted.sort();
        let twice = format!("{}, {}", names.join(","), names.join(" ,"));
        prop_assert_eq!(paths(&twice), paths(&sorted.join(",")));
        sorted.dedup();
        prop_assert_eq!(paths(&twice).len(), sorted.len());
    }
}
