//! The forms of results: what programs parse, and what a person is shown.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use trestle_proto::table::v1::{Property, Value as PropertyValue, value::Kind};

use super::*;

/// Standard output in memory.
#[derive(Clone, Default)]
struct MemoryOutput(Arc<Mutex<Vec<u8>>>);

impl Write for MemoryOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a command prints, and whether it succeeds.
fn printed(
    format: OutputFormat,
    command: impl FnOnce(&mut Output) -> Result<(), CliError>,
) -> (String, Result<(), CliError>) {
    let memory = MemoryOutput::default();
    let args = OutputArgs { format, width: None, quiet: true, verbose: false };
    let out = Box::new(memory.clone());
    let mut output = Output { out, args, listing: None, listed: None, header: Vec::new() };
    let result = command(&mut output).and_then(|()| output.finish());
    let bytes = memory.0.lock().unwrap().clone();
    (String::from_utf8(bytes).unwrap(), result)
}

/// What pages of records print.
fn pages(format: OutputFormat, pages: &[Vec<Value>], columns: &[&str]) -> String {
    let (text, result) = printed(format, |output| {
        pages.iter().try_for_each(|records| output.records(records, columns))
    });
    result.unwrap();
    text
}

fn entity(row_key: &str, properties: &[(&str, &str)]) -> Entity {
    let property = |(name, text): &(&str, &str)| {
        let kind = Some(Kind::StringValue((*text).to_owned()));
        Property { name: (*name).to_owned(), value: Some(PropertyValue { kind }) }
    };
    let properties = properties.iter().map(property).collect();
    Entity { row_key: row_key.to_owned(), properties, ..Entity::default() }
}

/// Any text; half of its characters are ASCII, control characters included.
fn any_text() -> impl Strategy<Value = String> {
    let chars = proptest::collection::vec(
        prop_oneof![proptest::char::range('\0', '\x7f'), any::<char>()],
        0..12,
    );
    chars.prop_map(|chars| chars.into_iter().collect())
}

/// Pages of records with the same two fields of any text.
fn any_pages() -> impl Strategy<Value = Vec<Vec<Value>>> {
    let record = (any_text(), any_text());
    let record = record.prop_map(|(key, text)| json!({ "key": key, "text": text }));
    proptest::collection::vec(proptest::collection::vec(record, 0..4), 0..4)
}

proptest! {
    #[test]
    fn json_is_one_array_and_jsonl_an_object_a_line(given in any_pages()) {
        let records = given.concat();

        let text = pages(OutputFormat::Json, &given, &[]);
        if given.is_empty() {
            prop_assert_eq!(text, "");
        } else {
            let array: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(array, Value::Array(records.clone()));
        }
        let text = pages(OutputFormat::Jsonl, &given, &[]);
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        prop_assert_eq!(lines.collect::<Vec<Value>>(), records);
    }

    #[test]
    fn csv_has_one_header_and_every_value_unchanged(given in any_pages()) {
        let records = given.concat();

        let text = pages(OutputFormat::Csv, &given, &["key", "text"]);

        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<_> = reader
            .deserialize::<(String, String)>()
            .map(|row| row.map(|(key, text)| json!({ "key": key, "text": text })).unwrap())
            .collect();
        prop_assert_eq!(rows, records.clone());
        prop_assert_eq!(text.starts_with("key,text\n"), !given.is_empty());
    }

    #[test]
    fn plain_columns_are_a_line_for_each_record_without_control_characters(given in any_pages()) {
        let text = pages(OutputFormat::Plain, &given, &["key", "text"]);

        let lines: Vec<_> = text.lines().collect();
        prop_assert_eq!(lines.len(), given.concat().len() + usize::from(!given.is_empty()));
        for line in lines {
            prop_assert_eq!(line.matches('\t').count(), 1, "{}", line);
            prop_assert!(!line.replace('\t', "").contains(char::is_control), "{line:?}");
        }
    }
}

#[test]
fn an_empty_listing_is_an_empty_array_or_a_header() {
    let none = [Vec::new()];

    assert_eq!(pages(OutputFormat::Json, &none, &[]), "[]\n");
    assert_eq!(pages(OutputFormat::Jsonl, &none, &["key"]), "");
    assert_eq!(pages(OutputFormat::Csv, &none, &["key", "b"]), "key,b\n");
    assert_eq!(pages(OutputFormat::Plain, &none, &["key", "b"]), "key\tb\n");
    for (format, expected) in [
        (OutputFormat::Json, "[]\n"),
        (OutputFormat::Jsonl, ""),
        (OutputFormat::Csv, "PartitionKey,RowKey,a\n"),
        (OutputFormat::Table, ""),
    ] {
        let select = ["RowKey".to_owned(), "a".to_owned()];
        let (text, result) = printed(format, |output| output.no_entities(&select));
        result.unwrap();
        assert_eq!(text, expected, "{format:?}");
    }
}

#[test]
fn a_sentence_is_a_record_for_programs() {
    let object = json!({ "table": "a", "created": true });

    for (format, expected) in [
        (OutputFormat::Plain, "created table a\n"),
        (OutputFormat::Csv, "table,created\na,true\n"),
        (OutputFormat::Jsonl, "{\"table\":\"a\",\"created\":true}\n"),
    ] {
        let (text, result) = printed(format, |output| output.either("created table a", &object));
        result.unwrap();
        assert_eq!(text, expected);
    }
}

#[test]
fn a_csv_whose_header_is_printed_rejects_a_new_property() {
    let both = [entity("1", &[("a", "x")]), entity("2", &[("a", "y"), ("b", "z")])];
    let query =
        |format| printed(format, |output| both.iter().try_for_each(|it| output.entity(it, &[])));

    let (text, result) = query(OutputFormat::Csv);
    let error = result.unwrap_err();
    assert!(matches!(&error, CliError::Usage(rule) if rule.contains("--select")), "{error:?}");
    assert_eq!(text, "PartitionKey,RowKey,a\n,1,x\n");
    let (text, result) = query(OutputFormat::Plain);
    result.unwrap();
    assert_eq!(text, "PartitionKey\tRowKey\ta\n\t1\tx\nPartitionKey\tRowKey\ta\tb\n\t2\ty\tz\n");
}

#[test]
fn an_absent_property_is_an_empty_cell_below_its_header() {
    let page = [entity("1", &[("a", "x"), ("b", "y")]), entity("2", &[("b", "z")])];

    let (text, result) = printed(OutputFormat::Csv, |output| {
        output.entities(&page, &[])?;
        output.entity(&entity("3", &[("a", "w")]), &[])
    });

    result.unwrap();
    assert_eq!(text, "PartitionKey,RowKey,a,b\n,1,x,y\n,2,,z\n,3,w,\n");
}

#[test]
fn selected_properties_are_the_header_in_their_order_whether_or_not_they_have_a_value() {
    let select = ["b", "RowKey", "none", "a"].map(str::to_owned);

    for (page, rows) in [
        (&[entity("1", &[("a", "x"), ("b", "y")]), entity("2", &[])][..], ",1,y,,x\n,2,,,\n"),
        (&[entity("2", &[])], ",2,,,\n"),
    ] {
        let (text, result) = printed(OutputFormat::Csv, |output| output.entities(page, &select));
        result.unwrap();
        assert_eq!(text, format!("PartitionKey,RowKey,b,none,a\n{rows}"));
    }
}

#[test]
fn a_line_comes_after_the_table_before_it() {
    let records = [json!({ "key": "first" }), json!({ "key": "second" })];

    let (text, result) = printed(OutputFormat::Table, |output| {
        output.records(&records, &["key"])?;
        output.line("then")?;
        output.records(&records, &["key"])
    });

    result.unwrap();
    let at = |part: &str| text.find(part).unwrap();
    assert!(at("second") < at("then"), "{text}");
    assert_eq!(text.matches("first").count(), 2, "{text}");
}

#[test]
fn a_long_table_is_printed_in_parts_and_complete() {
    let record = |number: usize| json!({ "key": format!("<{number}>") });
    let records: Vec<_> = (0..=TABLE_ROWS_MAX).map(record).collect();

    let (text, result) = printed(OutputFormat::Table, |output| {
        output.records(records.get(..TABLE_ROWS_MAX).unwrap(), &["key"])?;
        assert!(output.listing.is_none(), "a full table is printed at once");
        output.records(records.get(TABLE_ROWS_MAX..).unwrap(), &["key"])
    });

    result.unwrap();
    for number in 0..=TABLE_ROWS_MAX {
        assert_eq!(text.matches(&format!("<{number}>")).count(), 1, "{number}");
    }
}

#[test]
fn tables_of_other_columns_are_not_mixed() {
    let (text, result) = printed(OutputFormat::Table, |output| {
        output.records(&[json!({ "a": "1" }), json!({ "a": "2" })], &["a"])?;
        output.records(&[json!({ "b": "3" }), json!({ "b": "4" })], &["b"])
    });

    result.unwrap();
    assert_eq!(text.matches('┌').count(), 2, "{text}");
}

#[test]
fn one_record_is_a_document_a_line_or_its_fields() {
    let record = json!({ "name": "a\tb", "none": null, "size": 5 });
    let shown = |format| {
        let (text, result) = printed(format, |output| output.record(["Name", ""], &record));
        result.unwrap();
        text
    };

    for format in [OutputFormat::Json, OutputFormat::Jsonl] {
        assert_eq!(serde_json::from_str::<Value>(&shown(format)).unwrap(), record);
    }
    assert_eq!(shown(OutputFormat::Jsonl).lines().count(), 1);
    assert_eq!(shown(OutputFormat::Plain), "name\ta\\tb\nsize\t5\n");
    assert_eq!(shown(OutputFormat::Csv), "name,none,size\na\tb,,5\n");
}

#[test]
fn no_result_is_a_line_of_a_table_only() {
    for (format, printed_before, expected) in [
        (OutputFormat::Table, false, "no blobs\n"),
        (OutputFormat::Table, true, ""),
        (OutputFormat::Plain, false, ""),
        (OutputFormat::Csv, false, ""),
        (OutputFormat::Json, false, ""),
    ] {
        let (text, _) = printed(format, |it| it.unless_empty(printed_before, "no blobs"));
        assert_eq!(text, expected, "{format:?}");
    }
}

#[test]
fn a_scope_of_a_later_version_is_unspecified() {
    assert_eq!(scope_name(i32::MAX), "UNSPECIFIED");
}

#[test]
fn one_item_is_counted_in_the_singular() {
    assert_eq!(counted(1, "message"), "1 message");
    assert_eq!(counted(0, "row"), "0 rows");
    assert_eq!(counted(1_000, "entity"), "1,000 entities");
}

#[test]
fn the_rate_of_a_resumed_command_counts_its_own_bytes_only() {
    let start = 1_000_000_000_000;
    let bar = ProgressBar::hidden();
    skip_ahead(&bar, start);

    assert_eq!(bar.position(), start);
    let (_sender, never) = std::sync::mpsc::channel::<()>();
    for read in 1..=15 {
        let _ = never.recv_timeout(Duration::from_millis(20));
        bar.set_position(start + read * 1_000);
        bar.tick();
        assert!(bar.per_sec() < 1_000_000.0, "{} a second", bar.per_sec());
    }
}

#[test]
fn the_first_frames_show_no_rate_and_no_remaining_time() {
    let gibibytes = 5.0 * 1024.0 * 1024.0 * 1024.0;
    for elapsed in [0, 20, 300, 499] {
        assert_eq!(rate_text(gibibytes, Duration::from_millis(elapsed)), "", "{elapsed} ms");
    }
    assert_eq!(rate_text(f64::NAN, RATE_AFTER), "");
    assert_eq!(rate_text(2048.0, RATE_AFTER), "2.00 KiB/s");
    assert_eq!(eta_text(Duration::from_secs(90), Duration::from_millis(499)), "");
    assert_eq!(eta_text(Duration::ZERO, RATE_AFTER), "", "nothing was done so far");
    assert_eq!(eta_text(Duration::from_secs(90), RATE_AFTER), "(eta 2m)");
}
