//! Segments of data points.

use super::*;

/// Data points of 40 series, one each second.
fn points(count: u64) -> Vec<Record> {
    let text = |text: String| AnyValue { value: Some(Value::StringValue(text)) };
    let point = |at: u64| Record {
        time_unix_nano: NOW - (count / 40 - at / 40) * 1_000_000_000,
        event_name: format!("requests.{}", at % 4),
        attributes: BTreeMap::from([("host".to_owned(), text(format!("host-{}", at % 40)))]),
        value: Some(at as f64),
        ..Record::default()
    };
    (0..count).map(point).collect()
}

#[test]
fn data_points_are_read_by_time_although_they_are_stored_by_series() {
    let appends: Vec<_> =
        points(5_000).chunks(1_700).map(|records| SampleBatch::of(records.to_vec())).collect();
    let mut expected = expected(&appends, 0);
    let schema = small_parts(SegmentSchema::new(Vec::new()));
    let segment = seal(&schema, &appends, 0).remove(0);

    let rows = block_on(rows_of(&segment, all(0..u64::MAX, Direction::Forward)));
    assert!(same(&rows, &expected), "forward");

    let window = expected[4_000].0..expected[4_200].0;
    expected.retain(|(time, _, _)| window.contains(time));
    expected.reverse();
    let rows = block_on(rows_of(&segment, all(window, Direction::Backward)));
    assert!(same(&rows, &expected), "a window over two row groups, backward");
}

#[test]
fn a_data_point_has_few_bytes() {
    let appends: Vec<_> =
        points(20_000).chunks(10_000).map(|records| SampleBatch::of(records.to_vec())).collect();

    let segment = seal(&SegmentSchema::new(Vec::new()), &appends, 0).remove(0);

    let bytes = segment.bytes.len() as f64 / 20_000.0;
    assert!(bytes < 10.0, "{bytes} bytes a point");
}

#[test]
fn points_stay_by_series_when_their_segments_are_merged() {
    let appends: Vec<_> =
        points(1_000).chunks(100).map(|records| SampleBatch::of(records.to_vec())).collect();
    let schema = SegmentSchema::new(Vec::new());
    let (merged, direct) = block_on(async {
        let mut readers = Vec::new();
        for (append, first) in appends.iter().zip((0..).step_by(100)) {
            let segments = seal(&schema, std::slice::from_ref(append), first);
            readers.push(reader_of(&segments[0], SegmentRead::whole()).await);
        }
        let merged = merge_segments(readers, &schema).await.expect("merged");
        (merged, seal(&schema, &appends, 0).remove(0))
    });

    assert_eq!(merged.rows, direct.rows);
    let rows = block_on(rows_of(&merged, all(0..u64::MAX, Direction::Forward)));
    assert!(same(&rows, &expected(&appends, 0)));
    let slack = direct.bytes.len() / 10;
    assert!(merged.bytes.len() < direct.bytes.len() + slack, "sorted by series");
}

#[test]
fn rows_of_a_large_resource_are_decoded_a_few_at_a_time() {
    let text = AnyValue { value: Some(Value::StringValue("r".repeat(20_000))) };
    let resource = BTreeMap::from([("host".to_owned(), text)]);
    for is_series in [true, false] {
        let mut records = points(2_000);
        if !is_series {
            records.iter_mut().for_each(|record| record.value = None);
        }
        let appends = [SampleBatch { records, resource: resource.clone(), scope: None }];
        let segment = seal(&SegmentSchema::new(Vec::new()), &appends, 0).remove(0);
        for direction in [Direction::Forward, Direction::Backward] {
            block_on(async {
                let mut reader = reader_of(&segment, all(0..u64::MAX, direction)).await;
                let mut positions = Vec::new();
                while let Some(rows) = reader.next_rows().await.expect("readable") {
                    // All of them have 40 MB.
                    let bytes: usize = rows.iter().map(|row| row.record.len()).sum();
                    assert!(
                        bytes < if is_series { 10_000_000 } else { 5_000_000 },
                        "series: {is_series}, {bytes} bytes at once"
                    );
                    assert!(!positions.is_empty() || rows.len() <= SIZES.first_rows);
                    positions.extend(rows.iter().map(|row| (row.time, row.sequence)));
                }
                if direction == Direction::Backward {
                    positions.reverse();
                }
                assert!(positions.len() == 2_000 && positions.is_sorted());
                assert_eq!(reader.rows_scanned(), 2_000);
            });
        }
    }
}
