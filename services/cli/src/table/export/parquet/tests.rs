//! Files of Parquet, read back.

use arrow_array::{
    Array, ArrayRef, cast::AsArray as _, types::Float64Type, types::Int32Type, types::Int64Type,
    types::TimestampMicrosecondType, types::TimestampNanosecondType,
};
use bytes::Bytes;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use prost_types::Timestamp;
use trestle_proto::table::v1::{Property, Value};

use super::{super::columns, *};

fn entity(row: &str, properties: &[(&str, Kind)]) -> Entity {
    let property = |(name, kind): &(&str, Kind)| Property {
        name: (*name).to_owned(),
        value: Some(Value { kind: Some(kind.clone()) }),
    };
    Entity {
        partition_key: "p".to_owned(),
        row_key: row.to_owned(),
        timestamp: Some(Timestamp { seconds: 1, nanos: 100 }),
        properties: properties.iter().map(property).collect(),
        ..Entity::default()
    }
}

fn text(text: &str) -> Kind {
    Kind::StringValue(text.to_owned())
}

fn time(seconds: i64, nanos: i32) -> Kind {
    Kind::DatetimeValue(Timestamp { seconds, nanos })
}

/// The columns that the first pass over these entities finds.
fn found(entities: &[Entity]) -> Vec<ParquetColumn> {
    let mut found = std::collections::BTreeMap::new();
    entities.iter().cloned().for_each(|entity| columns::find(&mut found, entity));
    found.into_iter().map(|(name, values)| ParquetColumn::new(name, values)).collect()
}

fn written(entities: &[Entity], sizes: FileSizes) -> Bytes {
    let mut out = Vec::new();
    let mut writer = ParquetWriter::sized(&mut out, &found(entities), true, sizes).unwrap();
    entities.iter().for_each(|entity| writer.write(entity).unwrap());
    writer.finish().unwrap();
    out.into()
}

fn opened(file: &Bytes) -> ParquetRecordBatchReaderBuilder<Bytes> {
    ParquetRecordBatchReaderBuilder::try_new(file.clone()).unwrap()
}

/// The file as one batch, and its column of a name.
fn column(file: &Bytes, name: &str) -> ArrayRef {
    let mut batches = opened(file).with_batch_size(1_000_000).build().unwrap();
    let batch = batches.next().unwrap().unwrap();
    assert!(batches.next().is_none());
    Arc::clone(batch.column_by_name(name).unwrap())
}

fn texts(file: &Bytes, name: &str) -> Vec<Option<String>> {
    let column = column(file, name);
    column.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
}

#[test]
fn each_type_has_a_column_of_it_and_absent_values_are_null() {
    let guid = "00112233-4455-6677-8899-aabbccddeeff";
    let full = entity(
        "full",
        &[
            ("a_text", text("")),
            ("b_int", Kind::Int32Value(i32::MIN)),
            ("c_long", Kind::Int64Value(i64::MAX)),
            ("d_double", Kind::DoubleValue(-0.0)),
            ("e_bool", Kind::BooleanValue(false)),
            ("f_binary", Kind::BinaryValue(vec![0, 255].into())),
            ("g_guid", Kind::GuidValue(guid.to_owned())),
            ("h_time", time(-1, 999_999_000)),
        ],
    );
    let file = written(&[full, entity("none", &[])], FileSizes::EXPORTED);

    let schema = opened(&file).schema().clone();
    let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let properties =
        ["a_text", "b_int", "c_long", "d_double", "e_bool", "f_binary", "g_guid", "h_time"];
    assert_eq!(names, [&["PartitionKey", "RowKey", "Timestamp"][..], &properties].concat());
    let is_nullable: Vec<_> = schema.fields().iter().map(|field| field.is_nullable()).collect();
    assert_eq!(is_nullable[..3], [false, false, true]);
    assert_eq!(texts(&file, "RowKey"), [Some("full".to_owned()), Some("none".to_owned())]);
    assert_eq!(texts(&file, "a_text"), [Some(String::new()), None]);
    assert_eq!(texts(&file, "g_guid"), [Some(guid.to_owned()), None]);
    let of = |name: &str| column(&file, name);
    assert_eq!(of("b_int").as_primitive::<Int32Type>().value(0), i32::MIN);
    assert_eq!(of("c_long").as_primitive::<Int64Type>().value(0), i64::MAX);
    let double = of("d_double").as_primitive::<Float64Type>().value(0);
    assert_eq!(double.to_bits(), (-0.0_f64).to_bits());
    assert!(!of("e_bool").as_boolean().value(0));
    assert_eq!(of("f_binary").as_binary::<i32>().value(0), [0, 255]);
    assert_eq!(of("h_time").as_primitive::<TimestampMicrosecondType>().value(0), -1);
    let written_at = of("Timestamp").as_primitive::<TimestampNanosecondType>().value(0);
    assert_eq!(written_at, 1_000_000_100);
    for name in properties {
        assert!(of(name).is_valid(0) && of(name).is_null(1), "{name}");
    }
}

#[test]
fn times_are_as_coarse_as_is_exact() {
    let first_second = -11_644_473_600;
    for (times, form, expected) in [
        (vec![(first_second, 0), (253_402_300_799, 999_999_000)], ColumnForm::Micros, None),
        (vec![(1, 100), (2, 0)], ColumnForm::Nanos, None),
        (
            vec![(1, 100), (first_second, 0)],
            ColumnForm::Text,
            Some(["1970-01-01T00:00:01.0000001Z", "1601-01-01T00:00:00Z"]),
        ),
    ] {
        let row = |&(seconds, nanos): &(i64, i32)| entity("r", &[("at", time(seconds, nanos))]);
        let entities: Vec<_> = times.iter().map(row).collect();

        let file = written(&entities, FileSizes::EXPORTED);

        assert_eq!(found(&entities)[0].form, form, "{times:?}");
        assert_eq!(found(&entities)[0].why_text().is_some(), expected.is_some());
        if let Some(expected) = expected {
            assert_eq!(texts(&file, "at"), expected.map(|text| Some(text.to_owned())));
        }
        if form == ColumnForm::Nanos {
            let values = column(&file, "at");
            let values = values.as_primitive::<TimestampNanosecondType>();
            assert_eq!(values.values().to_vec(), [1_000_000_100, 2_000_000_000]);
        }
    }
}

#[test]
fn a_property_of_several_types_is_text_and_is_reported() {
    let entities = [
        entity("1", &[("x", Kind::Int32Value(7))]),
        entity("2", &[("x", text("seven"))]),
        entity("3", &[("x", Kind::BinaryValue(vec![0, 255].into()))]),
        entity("4", &[("x", Kind::DoubleValue(7.0))]),
    ];

    let file = written(&entities, FileSizes::EXPORTED);

    let expected = ["7", "seven", "AP8=", "7.0"].map(|text| Some(text.to_owned()));
    assert_eq!(texts(&file, "x"), expected);
    let reason = "its values have several types: Edm.String, Edm.Int32, Edm.Double, Edm.Binary";
    assert_eq!(found(&entities)[0].why_text().as_deref(), Some(reason));
    assert_eq!(found(&entities[1..2])[0].why_text(), None);
}

#[test]
fn row_groups_end_by_rows_and_by_bytes() {
    let long = "x".repeat(100);
    let entities: Vec<_> =
        (0..10).map(|row| entity(&row.to_string(), &[("x", text(&long))])).collect();
    let rows = |sizes: FileSizes| -> Vec<_> {
        let file = written(&entities, sizes);
        assert_eq!(texts(&file, "RowKey").len(), 10);
        let groups = opened(&file).metadata().row_groups().to_vec();
        groups.iter().map(|group| group.num_rows()).collect()
    };
    let many = FileSizes { chunk_rows: 2, ..FileSizes::EXPORTED };

    assert_eq!(rows(FileSizes { group_rows: 4, ..many }), [4, 4, 2]);
    assert_eq!(rows(FileSizes { group_bytes: 500, ..many }), [4, 4, 2]);
    assert_eq!(rows(many), [10]);
}

#[test]
fn a_row_counts_for_a_row_group_also_where_its_values_are_absent() {
    let names: Vec<_> = (0..100).map(|column| format!("c{column}")).collect();
    let entities: Vec<_> =
        names.iter().map(|name| entity(name, &[(name, Kind::Int32Value(1))])).collect();
    let sizes = FileSizes { chunk_rows: 10, group_bytes: 40_000, ..FileSizes::EXPORTED };

    let file = written(&entities, sizes);

    let groups = opened(&file).metadata().row_groups().to_vec();
    let rows: Vec<_> = groups.iter().map(|group| group.num_rows()).collect();
    assert_eq!(rows, [50, 50]);
}

#[test]
fn an_empty_table_is_a_file_without_rows() {
    let file = written(&[], FileSizes::EXPORTED);

    let opened = opened(&file);
    assert_eq!(opened.metadata().file_metadata().num_rows(), 0);
    assert_eq!(opened.schema().fields().len(), 3);
}

#[test]
fn what_the_first_pass_did_not_find_is_an_error() {
    let first = [entity("1", &[("at", time(1, 0)), ("n", Kind::Int32Value(7))])];
    for (property, named) in [
        (("other", Kind::Int32Value(1)), "property=`other`, type=`Edm.Int32`"),
        (("n", Kind::Int64Value(1)), "property=`n`, type=`Edm.Int64`"),
        (("at", time(1, 100)), "property=`at`, type=`Edm.DateTime`"),
    ] {
        let mut writer = ParquetWriter::new(Vec::new(), &found(&first), false).unwrap();
        writer.write(&first[0]).unwrap();

        let error = writer.write(&entity("2", &[property])).unwrap_err().to_string();

        let reason = "value has no column, the table changed during the export";
        let expected =
            format!("{reason}: {named}, partition_key=`p`, row_key=`2`; repeat the export");
        assert_eq!(error, expected);
    }
}

#[test]
fn the_error_of_the_output_is_its_own() {
    struct Closed;

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let error = ParquetWriter::new(Closed, &[], false).and_then(ParquetWriter::finish);

    assert_eq!(error.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}
