//! Both file formats: round trips of arbitrary entities, line numbers of rows, and resumption at
//! any row.

use std::{
    collections::BTreeSet,
    io::{Cursor, Read as _},
};

use proptest::{collection::btree_map, prelude::*};
use prost::Message as _;
use prost_types::Timestamp;
use trestle_proto::table::v1::{Property, Value, value::Kind};

use super::*;

mod mapped;
use crate::{
    edm::EdmType,
    row_mapping::{ColumnTypes, KeyOrigin},
};

/// Strings with every special character of the formats.
fn odd_string() -> impl Strategy<Value = String> {
    let odd = prop_oneof![
        Just("\"".to_owned()),
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("\r".to_owned()),
        Just(",".to_owned()),
        Just("\u{feff}".to_owned()),
        Just(" ".to_owned()),
        Just("'".to_owned()),
        Just("\\".to_owned()),
        Just("\u{1f600}".to_owned()),
        Just("\u{2028}".to_owned()),
        any::<char>().prop_filter("no NUL", |c| *c != '\0').prop_map(String::from),
    ];
    proptest::collection::vec(odd, 0..8).prop_map(|parts| parts.concat())
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        odd_string().prop_map(Kind::StringValue),
        any::<i32>().prop_map(Kind::Int32Value),
        any::<i64>().prop_map(Kind::Int64Value),
        any::<f64>().prop_map(Kind::DoubleValue),
        prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(-0.0)]
            .prop_map(Kind::DoubleValue),
        (-1000..1000_i16).prop_map(|whole| Kind::DoubleValue(f64::from(whole))),
        any::<bool>().prop_map(Kind::BooleanValue),
        (-11_644_473_600..253_402_300_800_i64, 0..10_000_000_i32).prop_map(|(seconds, ticks)| {
            Kind::DatetimeValue(Timestamp { seconds, nanos: ticks * 100 })
        }),
        any::<[u8; 16]>().prop_map(|b| {
            let hex: String = b.iter().map(|byte| format!("{byte:02x}")).collect();
            let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
            Kind::GuidValue(parts.join("-"))
        }),
        any::<Vec<u8>>().prop_map(|bytes| Kind::BinaryValue(bytes.into())),
    ]
}

/// Any entity that a server could store, its properties in order.
pub(crate) fn entity() -> impl Strategy<Value = Entity> {
    let name = "[A-Za-z_é][A-Za-z0-9_é]{0,3}".prop_filter("is reserved", |name| {
        !["PartitionKey", "RowKey", "Timestamp"].contains(&name.as_str())
    });
    (odd_string(), odd_string(), btree_map(name, kind(), 0..6)).prop_map(
        |(partition_key, row_key, properties)| Entity {
            partition_key,
            row_key,
            properties: properties
                .into_iter()
                .map(|(name, kind)| Property { name, value: Some(Value { kind: Some(kind) }) })
                .collect(),
            ..Entity::default()
        },
    )
}

/// Bitwise equality, so that NaN equals itself and -0.0 differs from 0.0.
pub(crate) fn same(one: &Entity, other: &Entity) -> bool {
    let plain = |entity: &Entity| {
        let mut entity = entity.clone();
        for property in &mut entity.properties {
            // NaN has many bit patterns and one text.
            if let Some(Value { kind: Some(Kind::DoubleValue(number)) }) = &mut property.value
                && number.is_nan()
            {
                *number = f64::NAN;
            }
        }
        entity.encode_to_vec()
    };
    plain(one) == plain(other)
}

fn write(format: Format, entities: &[Entity]) -> Vec<u8> {
    write_with(format, entities, TypeAnnotations::Written)
}

fn write_with(format: Format, entities: &[Entity], types: TypeAnnotations) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = match format {
        Format::Jsonl => RowWriter::jsonl(&mut out, Meta::None, types),
        Format::Csv => {
            let names = entities.iter().flat_map(|entity| &entity.properties);
            let names: BTreeSet<_> = names.map(|property| property.name.clone()).collect();
            let columns = names.into_iter().collect();
            let header = CsvHeader { columns, with_timestamp: false, types, is_written: true };
            RowWriter::csv(&mut out, header).unwrap()
        }
    };
    for entity in entities {
        writer.write(entity).unwrap();
    }
    writer.flush().unwrap();
    drop(writer);
    out
}

fn open(format: Format, bytes: &[u8]) -> RowReader {
    let input = Box::new(Cursor::new(bytes.to_vec()));
    match format {
        Format::Jsonl => RowReader::jsonl(input, FilePosition::default()),
        Format::Csv => {
            RowReader(Reader::Csv(csv::CsvReader::new(input, &RowMapping::default()).unwrap()))
        }
    }
}

fn reopen(format: Format, bytes: &[u8], at: FilePosition) -> RowReader {
    let rest = bytes[usize::try_from(at.byte).unwrap()..].to_vec();
    match format {
        Format::Jsonl => RowReader::jsonl(Box::new(Cursor::new(rest)), at),
        Format::Csv => {
            let header = Box::new(Cursor::new(bytes.to_vec()));
            let header = csv::CsvReader::new(header, &RowMapping::default()).unwrap();
            RowReader(Reader::Csv(header.resume(Box::new(Cursor::new(rest)), at)))
        }
    }
}

fn rest_of(reader: &mut RowReader) -> Vec<(Entity, u64, FilePosition)> {
    std::iter::from_fn(|| {
        let row = reader.read().unwrap()?;
        Some((row.entity.unwrap(), row.line, reader.position()))
    })
    .collect()
}

proptest! {
    #[test]
    fn any_entities_survive_a_file(given in proptest::collection::vec(entity(), 1..6)) {
        for format in [Format::Jsonl, Format::Csv] {
            let bytes = write(format, &given);

            let read = rest_of(&mut open(format, &bytes));

            prop_assert_eq!(read.len(), given.len());
            for ((read, line, _), given) in read.iter().zip(&given) {
                prop_assert!(same(read, given), "line {line}: {given:?} became {read:?}");
            }
            let again: Vec<_> = read.into_iter().map(|(entity, _, _)| entity).collect();
            prop_assert_eq!(write(format, &again), bytes);
        }
    }

    #[test]
    fn reading_resumes_after_any_row(given in proptest::collection::vec(entity(), 1..6)) {
        for format in [Format::Jsonl, Format::Csv] {
            let bytes = write(format, &given);
            let whole = rest_of(&mut open(format, &bytes));
            for (at, (_, _, position)) in whole.iter().enumerate() {
                let rest = rest_of(&mut reopen(format, &bytes, *position));

                prop_assert_eq!(rest.len(), whole.len() - at - 1);
                for (resumed, first) in rest.iter().zip(&whole[at + 1..]) {
                    prop_assert!(same(&resumed.0, &first.0));
                    prop_assert_eq!((resumed.1, resumed.2), (first.1, first.2));
                }
            }
        }
    }
}

fn typed(name: &str, edm: EdmType) -> RowMapping {
    RowMapping { types: vec![(name.to_owned(), edm)], ..RowMapping::default() }
}

fn csv_rows(text: &str, mapping: &RowMapping) -> Vec<(u64, Result<String, String>)> {
    let input = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let mut reader = RowReader(Reader::Csv(csv::CsvReader::new(input, mapping).unwrap()));
    std::iter::from_fn(|| {
        let row = reader.read().unwrap()?;
        let entity = row.entity.map(|entity| entity_json::to_string(&entity, Meta::None).unwrap());
        Some((row.line, entity.map_err(|error| error.to_string())))
    })
    .collect()
}

fn header_error(text: &str, mapping: &RowMapping) -> String {
    let input = Box::new(Cursor::new(text.as_bytes().to_vec()));
    csv::CsvReader::new(input, mapping).err().unwrap().to_string()
}

#[test]
fn csv_distinguishes_an_absent_property_from_an_empty_string() {
    let rows =
        csv_rows("PartitionKey,RowKey,a,a@type\np,1,,\np,2,,Edm.String\n", &RowMapping::default());

    assert_eq!(rows[0].1.as_deref(), Ok(r#"{"PartitionKey":"p","RowKey":"1"}"#));
    assert_eq!(rows[1].1.as_deref(), Ok(r#"{"PartitionKey":"p","RowKey":"2","a":""}"#));
}

#[test]
fn plain_csv_is_text_unless_types_are_given() {
    let types = typed("n", EdmType::Int64);
    let text = "\u{feff}RowKey,PartitionKey,n,s,Timestamp\r\nr,p,5,,x\r\nr,p,,6,\r\n";

    let rows = csv_rows(text, &types);

    let first = r#"{"PartitionKey":"p","RowKey":"r","n@odata.type":"Edm.Int64","n":"5","s":""}"#;
    assert_eq!(rows[0], (2, Ok(first.to_owned())));
    assert_eq!(rows[1], (3, Ok(r#"{"PartitionKey":"p","RowKey":"r","s":"6"}"#.to_owned())));
}

#[test]
fn csv_errors_name_line_field_value_and_rule() {
    let text = concat!(
        "PartitionKey,RowKey,a,a@type\n",
        "p,1,\"two\nlines\",Edm.String\n",
        "p,2,x,Edm.Int32\n",
        "\n",
        "p,3\n",
        "p,4,x,\n",
        "p,5,x,Edm.Odd\n",
        "p,6,ok,String"
    );

    let rows = csv_rows(text, &RowMapping::default());

    let lines: Vec<_> = rows.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [2, 4, 6, 7, 8, 9]);
    let errors: Vec<_> = rows.into_iter().filter_map(|(_, entity)| entity.err()).collect();
    assert_eq!(
        errors[..3],
        [
            "field=`a`, value=`x`: Edm.Int32: must be a whole number from -2147483648 to \
             2147483647",
            "row has 2 cells, the header has 4",
            "field=`a`, value=`x`: has a value, but its cell in `a@type` is empty",
        ]
    );
    assert!(errors[3].starts_with("field=`a@type`, value=`Edm.Odd`: unknown type"));
    assert_eq!(errors.len(), 4);
}

#[test]
fn rejects_invalid_csv_headers() {
    let typed = |name: &str| typed(name, EdmType::Int32);
    for (header, types, expected) in [
        ("", RowMapping::default(), "value=`PartitionKey`: column is required"),
        ("PartitionKey,a", RowMapping::default(), "value=`RowKey`: column is required"),
        ("PartitionKey,RowKey,a,a", RowMapping::default(), "value=`a`: column occurs twice"),
        ("PartitionKey,RowKey,a@type", RowMapping::default(), "type column without a column `a`"),
        ("PartitionKey,RowKey,", RowMapping::default(), "a column has no name"),
        ("PartitionKey,RowKey,a", typed("b"), "value=`b`: no such column"),
        ("PartitionKey,RowKey,a,a@type", typed("a"), "no type may be given"),
    ] {
        let error = header_error(header, &types);
        assert!(error.contains(expected), "{header}: {error}");
    }
}

#[test]
fn invalid_utf8_is_an_error_of_its_field() {
    let input = Box::new(Cursor::new(b"PartitionKey,RowKey,a\np,1,\xff\n".to_vec()));
    let mut reader = csv::CsvReader::new(input, &RowMapping::default()).unwrap();

    let error = reader.read().unwrap().unwrap().entity.unwrap_err().to_string();

    assert_eq!(error, "field=`a`, value=`\u{fffd}`: must be UTF-8");
}

#[test]
fn rejects_an_endless_row_before_it_fills_the_memory() {
    let endless = || io::repeat(b'x').take(u64::MAX);
    let mut jsonl = jsonl::JsonlReader::new(Box::new(endless()), FilePosition::default());
    let header = Cursor::new(b"PartitionKey,RowKey\n".to_vec());
    let mut csv =
        csv::CsvReader::new(Box::new(header.chain(endless())), &RowMapping::default()).unwrap();

    assert!(jsonl.read().unwrap_err().to_string().contains("longer than 16777216 bytes"));
    assert!(csv.read().unwrap_err().to_string().contains("longer than 16777216 bytes"));
}

#[test]
fn jsonl_skips_blank_lines_and_a_byte_order_mark() {
    let text = "\u{feff}{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}\r\n\n  \n\
                {\"PartitionKey\":\"p\",\"RowKey\":\"2\"}";

    let rows = rest_of(&mut open(Format::Jsonl, text.as_bytes()));

    let found: Vec<_> =
        rows.iter().map(|(entity, line, at)| (entity.row_key.as_str(), *line, at.row)).collect();
    assert_eq!(found, [("1", 1, 1), ("2", 4, 2)]);
}

#[test]
fn the_format_is_that_of_the_extension_unless_it_is_given() {
    for (path, expected) in [
        ("a.jsonl", Some(Format::Jsonl)),
        ("a.NDJSON", Some(Format::Jsonl)),
        ("a.json", Some(Format::Jsonl)),
        ("a.csv.CSV", Some(Format::Csv)),
        ("-", Some(Format::Jsonl)),
        ("folder.csv/a", None),
        (".csv", None),
        ("a.csv.gz", None),
        ("", None),
    ] {
        let path = Path::new(path);
        assert_eq!(Format::of(path, None).ok(), expected, "{}", path.display());
        for given in [Format::Csv, Format::Jsonl] {
            assert_eq!(Format::of(path, Some(given)).ok(), Some(given));
        }
    }
}

#[test]
fn rows_without_types_have_values_alone() {
    let property = |name: &str, kind| Property {
        name: name.to_owned(),
        value: Some(Value { kind: Some(kind) }),
    };
    let entity = Entity {
        partition_key: "p".to_owned(),
        row_key: "r".to_owned(),
        properties: vec![
            property("at", Kind::DatetimeValue(Timestamp::default())),
            property("big", Kind::Int64Value(5)),
            property("n", Kind::DoubleValue(f64::NAN)),
        ],
        ..Entity::default()
    };
    let other = Entity { row_key: "s".to_owned(), properties: Vec::new(), ..entity.clone() };
    let text = |format| {
        let entities = [entity.clone(), other.clone()];
        String::from_utf8(write_with(format, &entities, TypeAnnotations::Omitted)).unwrap()
    };

    let json = concat!(
        r#"{"PartitionKey":"p","RowKey":"r","at":"1970-01-01T00:00:00Z","big":"5","n":"NaN"}"#,
        "\n",
        r#"{"PartitionKey":"p","RowKey":"s"}"#,
        "\n",
    );
    assert_eq!(text(Format::Jsonl), json);
    let csv = "PartitionKey,RowKey,at,big,n\np,r,1970-01-01T00:00:00Z,5,NaN\np,s,,,\n";
    assert_eq!(text(Format::Csv), csv);
}
