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
fn an_empty_key_is_shown_and_another_empty_value_is_not() {
    let records = [json!({ "PartitionKey": "", "RowKey": "", "text": "" })];

    let drawn = Drawing { width: Some(40) }.listing(&listing(&records)).concat();

    assert!(drawn.contains("PartitionKey") && drawn.contains("RowKey"), "{drawn}");
    assert!(!drawn.contains("text"), "{drawn}");
}

#[test]
fn records_with_more_columns_than_fit_are_vertical() {
    let record: Value = (0..9).map(|number| (format!("c{number}"), json!(number))).collect();

    let drawn = Drawing { width: Some(40) }.listing(&listing(&[record.clone(), record]));

    assert_eq!(drawn.len(), 2, "{drawn:?}");
    assert!(widest(&drawn) <= 40, "{drawn:?}");
}

/// The texts of the header of a table, by column, where no word of it is broken.
fn header(table: &str) -> Vec<String> {
    let lines = table.lines().skip(1).take_while(|line| !line.starts_with('╞'));
    let mut titles: Vec<String> = Vec::new();
    for line in lines {
        for (at, part) in line.trim_matches('│').split('┆').enumerate() {
            if titles.len() <= at {
                titles.push(String::new());
            }
            titles[at] = format!("{} {}", titles[at], part.trim()).trim().to_owned();
        }
    }
    titles
}

#[test]
fn what_another_command_takes_is_never_shortened() {
    let id = "d4941e91-f0ad-46d4-9f13-df1125a75f78";
    let record = json!({
        "message_id": id, "insertion_time": "2026-11-25T19:28:14.2532708Z", "text": "hello",
        "pop_receipt": "AQAAAQAAAAABAAAAAQjfSypSI1dA",
    });
    let records = [record.clone(), record];

    for width in [20, 60, 80, 100, 140] {
        let drawn = Drawing { width: Some(width) }.listing(&listing(&records));
        let text = drawn.concat();
        if width >= 60 {
            assert_eq!(text.matches(id).count(), 2, "{width}: {text}");
            assert_eq!(text.matches("AQAAAQAAAAABAAAAAQjfSypSI1dA").count(), 2, "{width}: {text}");
        }
        assert!(!text.contains("…") || width > 80, "{width}: {text}");
        assert!(widest(&drawn) <= usize::from(width), "{width}: {text}");
    }
    let table = Drawing { width: Some(100) }.listing(&listing(&records));
    assert_eq!(table.len(), 1, "it fits where times are shortened: {table:?}");
}

#[test]
fn a_long_value_of_many_records_is_shortened_and_a_key_is_not() {
    let record = json!({ "RowKey": "k".repeat(600), "text": "~".repeat(600) });

    let drawn = Drawing { width: Some(40) }.listing(&listing(&[record.clone(), record]));

    let text = drawn.concat();
    assert_eq!(text.matches('k').count(), 1200, "{text}");
    assert_eq!(text.matches('~').count(), 2 * LISTED_CHARS_MAX, "{text}");
}

#[test]
fn every_value_of_one_entity_is_whole() {
    let text = "x".repeat(200);
    let rows = [json!({ "property": "etag", "type": "", "value": text })];

    let drawn = Drawing { width: Some(60) }.whole(&rows, str::to_owned).unwrap();

    assert_eq!(drawn.matches('x').count(), 200, "{drawn}");
    assert!(widest(std::slice::from_ref(&drawn)) <= 60, "{drawn}");
}

#[test]
fn a_list_in_a_record_whose_header_does_not_fit_has_two_columns() {
    let counts = json!({ "Edm.Int64": 1, "Edm.Boolean": 1, "Edm.DateTime": 1, "Edm.String": 1 });
    let record = json!({ "properties": { "longpropertyname": counts, "b": counts } });

    let drawn = Drawing { width: Some(50) }.record(["Table", ""], &record, str::to_owned);

    assert_eq!(drawn.len(), 1, "{drawn:?}");
    assert_eq!(drawn[0].matches("Edm.DateTime=1").count(), 2, "{drawn:?}");
    assert!(drawn[0].contains("longpropertyname"), "{drawn:?}");
    assert!(widest(&drawn) <= 50, "{drawn:?}");
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_word_of_a_header_is_broken(
        titles in proptest::collection::vec("[a-z]{1,14}( [a-z]{1,14})?", 1..7),
        texts in proptest::collection::vec("[a-z ]{0,40}", 7),
        width in 40..160_u16,
    ) {
        let titles: Vec<_> =
            titles.iter().enumerate().map(|(at, title)| format!("{title}{at}")).collect();
        let fields = titles.iter().zip(&texts).map(|(title, text)| (title.clone(), json!(text)));
        let record: Value = fields.collect();

        let drawing = Drawing { width: Some(width) };
        let drawn = drawing.listing(&listing(&[record.clone(), record]));

        let is_table = drawn.len() == 1;
        for table in &drawn {
            let found = header(table);
            prop_assert!(!is_table || found.iter().all(|it| titles.contains(it)), "{table}");
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
