//! Tables in a terminal: their width, and what is shown of long and wide values.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn listing(records: &[Value]) -> TableListing {
    TableListing { columns: Vec::new(), title: str::to_owned, records: records.to_vec() }
}

fn widest(tables: &[String]) -> usize {
    let lines = tables.iter().flat_map(|table| table.lines());
    lines.map(|line| line.chars().count()).max().unwrap_or_default()
}

#[test]
fn a_listing_is_as_wide_as_the_terminal_and_marks_what_it_leaves_out() {
    let records = ["a", "b"].map(|key| json!({ "key": key, "text": "word ".repeat(40) }));

    let drawn = Drawing { width: Some(40) }.listing(&listing(&records));

    assert!(widest(&drawn) <= 40, "{drawn:?}");
    assert_eq!(drawn.concat().matches('…').count(), 2, "{drawn:?}");
    assert_eq!(drawn.concat().lines().count(), 6, "a line for each record: {drawn:?}");
}

#[test]
fn one_record_is_vertical_and_complete() {
    let records = [json!({ "key": "a", "text": "word ".repeat(40), "none": null })];

    let drawn = Drawing { width: Some(40) }.listing(&listing(&records));

    assert!(widest(&drawn) <= 40, "{drawn:?}");
    assert_eq!(drawn.concat().matches("word").count(), 40, "{drawn:?}");
    assert!(drawn.concat().contains("│ key ") && !drawn.concat().contains("none"), "{drawn:?}");
}

#[test]
fn records_with_more_columns_than_fit_are_vertical() {
    let record: Value = (0..9).map(|number| (format!("c{number}"), json!(number))).collect();

    let drawn = Drawing { width: Some(40) }.listing(&listing(&[record.clone(), record]));

    assert_eq!(drawn.len(), 2, "{drawn:?}");
    assert!(widest(&drawn) <= 40, "{drawn:?}");
}

/// Characters that take one column, two, or are escaped.
fn cell_text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => "[a-z ]{0,12}",
        2 => "[あ-ん漢字]{0,8}",
        1 => Just("\n".to_owned()),
        1 => Just("\x1b[31m".to_owned()),
        1 => "[a-z]{60,100}",
    ];
    proptest::collection::vec(part, 0..4).prop_map(|parts| parts.concat())
}

/// The columns of the terminal that the characters of [`cell_text`] take.
fn display_width(line: &str) -> usize {
    line.chars().map(|c| if c > '\u{3000}' { 2 } else { 1 }).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_line_is_wider_than_the_terminal(
        rows in proptest::collection::vec(proptest::collection::vec(cell_text(), 5), 1..5),
        names in 1..6_usize,
        width in 40..160_u16,
    ) {
        let of_row = |row: &Vec<String>| {
            let fields = row.iter().take(names).enumerate();
            fields.map(|(at, text)| (format!("c{at}"), json!(text))).collect::<Value>()
        };
        let records: Vec<_> = rows.iter().map(of_row).collect();

        let drawing = Drawing { width: Some(width) };
        for table in drawing.listing(&listing(&records)) {
            for line in table.lines() {
                prop_assert!(display_width(line) <= usize::from(width), "{table}");
            }
            prop_assert!(!table.replace('\n', "").contains(char::is_control), "{table:?}");
        }
    }
}

#[test]
fn without_a_terminal_nothing_is_wrapped() {
    let text = "word ".repeat(15);
    let records = ["a", "b"].map(|key| json!({ "key": key, "text": text.trim() }));

    let drawn = Drawing { width: None }.listing(&listing(&records)).concat();

    assert_eq!(drawn.matches(text.trim()).count(), 2, "{drawn}");
}

#[test]
fn a_column_without_a_value_is_left_out() {
    let records = [json!({ "a": "1", "b": null, "c": null }), json!({ "a": "2", "c": "x" })];

    let drawn = Drawing { width: None }.listing(&listing(&records)).concat();

    assert!(drawn.contains("┆ c ") && !drawn.contains('b'), "{drawn}");
}

#[test]
fn a_listing_without_records_is_no_table() {
    assert_eq!(Drawing { width: Some(40) }.listing(&listing(&[])), Vec::<String>::new());
    let none = Drawing { width: None }.record(["a", "b"], &json!({}), str::to_owned);
    assert_eq!(none, Vec::<String>::new());
}

#[test]
fn each_list_in_a_record_is_a_table_of_its_own() {
    let record = json!({
        "name": "store",
        "hot": [{ "key": "p1", "rate": 5 }, { "key": "p2", "rate": 6 }],
        "properties": { "size": { "Edm.Int32": 7 } },
        "none": [],
    });

    let drawn = Drawing { width: None }.record(["Server", ""], &record, str::to_owned);

    assert_eq!(drawn.len(), 3, "{drawn:?}");
    assert!(drawn[0].contains("store") && !drawn[0].contains("none"), "{}", drawn[0]);
    assert!(drawn[1].contains("p1") && drawn[1].contains("p2"), "{}", drawn[1]);
    assert!(drawn[2].contains("size") && drawn[2].contains("Edm.Int32"), "{}", drawn[2]);
}

#[test]
fn named_columns_come_in_their_order() {
    let records = [json!({ "b": "2", "a": "1" }), json!({ "b": "4", "a": "3" })];
    let mut listing = TableListing::new(&["a", "b"], str::to_owned);
    assert!(listing.is_like(&["a", "b"]) && !listing.is_like(&["b", "a"]));
    listing.records.extend_from_slice(&records);

    let drawn = Drawing { width: None }.listing(&listing).concat();

    assert!(drawn.find('1') < drawn.find('2'), "{drawn}");
}
