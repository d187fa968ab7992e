use super::*;

fn ticks(number: u64) -> Ticks {
    Ticks::new(number).expect("in range")
}

#[test]
fn records_are_read_as_they_were_written() {
    let promoted =
        [PromotedType::String, PromotedType::Int64, PromotedType::Double, PromotedType::Bool]
            .map(|kind| PromotedAttribute { key: format!("{kind:?}"), kind, is_indexed: true });
    let settings = StreamSettings {
        labels: [("team".to_owned(), "web".to_owned())].into(),
        retention: Some(Duration::from_secs(3600)),
        roll: RollPolicy { max_age: Duration::from_millis(1500), max_bytes: 65_536 },
        promoted: promoted.into(),
    };
    let stream = StreamRecord::new(StreamId(9), ticks(11), settings);
    assert_eq!(stream.columns.len(), 4);
    assert_eq!(StreamRecord::decode(&stream.encode()).expect("valid"), stream);

    let head = Head {
        next_sequence: 9,
        sealed_before: 8,
        unsealed_bytes: 7,
        unsealed_since: 6,
        snapshot: 5,
        segments: 4,
        segment_records: 3,
        segment_bytes: 2,
        damaged_segments: 1,
    };
    assert_eq!(Head::decode(&head.encode()).expect("valid"), head);
    assert!(Head::decode(&Head { sealed_before: 10, ..head }.encode()).is_err());

    let segment = SegmentRecord {
        id: SegmentId(1),
        path: "acme/stream=web/date=2026-11-25/1.parquet".to_owned(),
        bytes: 2,
        records: 3,
        min_time: 4,
        max_time: 5,
        min_sequence: 6,
        max_sequence: 7,
        level: 8,
        created_at: ticks(9),
        checksums: Bytes::from_static(b"checksums"),
        damage: "a checksum does not match".to_owned(),
    };
    assert_eq!(SegmentRecord::decode(&segment.encode()).expect("valid"), segment);

    let request = RequestRecord { first_sequence: 1, count: 2, at: ticks(3) };
    assert_eq!(RequestRecord::decode(&request.encode()).expect("valid"), request);

    assert_eq!(decode_path(&encode_path("a/b")).expect("valid"), "a/b");
}

#[test]
fn damaged_records_are_reported() {
    let damaged: [&[u8]; 4] = [b"", b"\0", b"\x02", b"\x01\xFF\xFF"];
    for value in damaged {
        assert!(StreamRecord::decode(value).is_err(), "{value:?}");
        assert!(Head::decode(value).is_err(), "{value:?}");
        assert!(SegmentRecord::decode(value).is_err(), "{value:?}");
        assert!(RequestRecord::decode(value).is_err(), "{value:?}");
        assert!(decode_path(value).is_err(), "{value:?}");
    }
}
