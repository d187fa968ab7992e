//! Rows whose keys are in other columns.

use super::*;

fn column(name: &str) -> KeyOrigin {
    KeyOrigin::Column(name.to_owned())
}

/// The keys in these columns, and a constant.
fn mapping(partition_key: &str, row_key: &str) -> RowMapping {
    let kind = Some(Kind::StringValue("web".to_owned()));
    let constant = Property { name: "b".to_owned(), value: Some(Value { kind }) };
    let (partition_key, row_key) = (column(partition_key), column(row_key));
    RowMapping { partition_key, row_key, constants: vec![constant], types: ColumnTypes::new() }
}

fn jsonl_rows(text: &str, mapping: &RowMapping) -> Vec<Result<String, String>> {
    let input = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let reader = jsonl::JsonlReader::new(input, FilePosition::default());
    let mut reader = RowReader(Reader::Jsonl(reader.mapped(mapping.clone())));
    std::iter::from_fn(|| {
        let entity = reader.read().unwrap()?.entity;
        let entity = entity.map(|entity| entity_json::to_string(&entity, Meta::None).unwrap());
        Some(entity.map_err(|error| error.to_string()))
    })
    .collect()
}

fn one_jsonl(text: &str, mapping: &RowMapping) -> Result<String, String> {
    jsonl_rows(text, mapping).remove(0)
}

#[test]
fn the_keys_of_csv_are_in_the_named_columns_and_constants_are_in_order() {
    let rows = csv_rows("c,id,a\np,r,1\n", &mapping("id", "c"));

    assert_eq!(
        rows,
        [(2, Ok(r#"{"PartitionKey":"r","RowKey":"p","a":"1","b":"web"}"#.to_owned()))]
    );
    let both = csv_rows("id,c\nx,\n", &mapping("id", "id"));
    assert_eq!(both[0].1.as_deref(), Ok(r#"{"PartitionKey":"x","RowKey":"x","b":"web","c":""}"#));
    let swapped = csv_rows("PartitionKey,RowKey\np,r\n", &mapping("RowKey", "PartitionKey"));
    assert_eq!(swapped[0].1.as_deref(), Ok(r#"{"PartitionKey":"r","RowKey":"p","b":"web"}"#));
}

#[test]
fn a_key_of_csv_may_have_a_type_column_which_is_ignored() {
    let rows = csv_rows("p,id,id@type\nx,5,Edm.Int64\n", &mapping("p", "id"));

    assert_eq!(rows[0].1.as_deref(), Ok(r#"{"PartitionKey":"x","RowKey":"5","b":"web"}"#));
}

#[test]
fn a_key_of_jsonl_is_the_text_of_a_string_a_number_or_a_truth_value() {
    let mapping = mapping("p", "id");
    for (id, key) in [
        (r#""a\"b""#, r#"a\"b"#),
        ("5", "5"),
        ("-0.50", "-0.50"),
        ("12345678901234567890", "12345678901234567890"),
        ("true", "true"),
    ] {
        let expected = format!(r#"{{"PartitionKey":"x","RowKey":"{key}","b":"web"}}"#);
        assert_eq!(one_jsonl(&format!(r#"{{"id":{id},"p":"x"}}"#), &mapping), Ok(expected));
    }
    for id in ["null", "{}", "[1]"] {
        let error = one_jsonl(&format!(r#"{{"id":{id},"p":"x"}}"#), &mapping).unwrap_err();
        assert!(error.ends_with("must be a string, a number, true or false"), "{error}");
    }
    let missing = one_jsonl(r#"{"p":"x"}"#, &mapping).unwrap_err();
    assert!(missing.starts_with("field=`id`, is required"), "{missing}");
}

#[test]
fn a_usual_key_is_a_string_as_before() {
    let error = one_jsonl(r#"{"PartitionKey":5,"RowKey":"r"}"#, &RowMapping::default());

    assert!(error.unwrap_err().ends_with("must be a string"));
}

#[test]
fn constant_keys_need_no_column() {
    let constant = KeyOrigin::Constant("all".to_owned());
    let mapping = RowMapping { partition_key: constant, ..mapping("", "id") };
    let expected = r#"{"PartitionKey":"all","RowKey":"1","b":"web"}"#;

    assert_eq!(csv_rows("id\n1\n", &mapping)[0].1.as_deref(), Ok(expected));
    assert_eq!(one_jsonl(r#"{"id":1}"#, &mapping).as_deref(), Ok(expected));
}

#[test]
fn a_column_with_the_name_of_another_key_or_of_a_constant_is_rejected() {
    let mapping = mapping("p", "id");
    for (csv, json, expected) in [
        ("p,id,b\n", r#"{"p":"x","id":"1","b":"2"}"#, "field=`b`, is given as a constant too"),
        ("p,id,RowKey\n", r#"{"p":"x","id":"1","RowKey":"2"}"#, "field=`RowKey`, is a key"),
    ] {
        let error = header_error(csv, &mapping);
        assert!(error.starts_with(expected), "{error}");
        let error = one_jsonl(json, &mapping).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let absent = header_error("p,a\n", &mapping);
    assert!(absent.contains("value=`id`: column is required"), "{absent}");
}

#[test]
fn rows_with_other_keys_resume_after_any_row() {
    let (mapping, text) = (mapping("p", "id"), "p,id,a\nx,1,2\nx,2,\"3\n4\"\nx,3,5\n");
    let open = |text: &str| {
        csv::CsvReader::new(Box::new(Cursor::new(text.as_bytes().to_vec())), &mapping).unwrap()
    };
    let whole = rest_of(&mut RowReader(Reader::Csv(open(text))));
    assert_eq!(whole.len(), 3);

    for (at, (_, _, position)) in whole.iter().enumerate() {
        let rest = &text[usize::try_from(position.byte).unwrap()..];
        let rest = Box::new(Cursor::new(rest.as_bytes().to_vec()));
        let resumed = rest_of(&mut RowReader(Reader::Csv(open(text).resume(rest, *position))));

        assert_eq!(resumed.len(), whole.len() - at - 1);
        for (resumed, first) in resumed.iter().zip(&whole[at + 1..]) {
            assert!(same(&resumed.0, &first.0), "{resumed:?}");
        }
    }
}
