use super::*;

fn account(name: &str) -> AccountName {
    AccountName::parse(name).expect("a valid name")
}

#[test]
fn every_row_of_a_stream_is_in_its_domain_and_no_other() {
    let (stream, other) = (StreamId(7), StreamId(8));
    let at = Ticks::new(5_000).expect("in range");
    let of = |stream| {
        [
            head(stream),
            segment(stream, 1, SegmentId(2)),
            announced(stream, SegmentId(2)),
            retired(stream, at, SegmentId(2)),
            request(stream, "id"),
            request_time(stream, at, "id"),
            expired(stream, at, SegmentId(2)),
            batch(stream, 3),
        ]
    };
    for (key, others) in of(stream).iter().zip(of(other)) {
        assert_eq!(own_domain(key), stream_domain(stream), "{key:?}");
        assert_ne!(own_domain(&others), stream_domain(stream), "{key:?}");
        assert_eq!(stream_of(key).expect("a stream"), stream);
    }
    assert_ne!(own_domain(&deleted_stream(stream)), stream_domain(stream));
}

#[test]
fn rows_sort_by_their_numbers_within_a_stream() {
    let stream = StreamId(7);
    let keys = [batch(stream, 0), batch(stream, 255), batch(stream, 256), batch(stream, u64::MAX)];
    assert!(keys.is_sorted());
    let (before, from) =
        (rows_before(StreamRow::Batch, stream, 256), rows_from(StreamRow::Batch, stream, 256));
    for (index, key) in keys.iter().enumerate() {
        assert_eq!((before.start <= *key) && (*key < before.end), index < 2);
        assert_eq!((from.start <= *key) && (*key < from.end), index >= 2);
        assert_eq!(number_of(key).expect("a number"), [0, 255, 256, u64::MAX][index]);
    }
}

#[test]
fn names_and_request_ids_are_read_back_from_keys() {
    let name = StreamName::stored("web.api".to_owned());
    let key = stream(&account("acme"), &name);
    assert_eq!(stream_name_of(&key).expect("a name"), ("acme".to_owned(), name));
    let span = streams(&account("acme"), "web");
    assert!(span.start <= key && key < span.end);

    let at = Ticks::new(5_000).expect("in range");
    let key = request_time(StreamId(1), at, "batch-1");
    assert_eq!(request_id_of(&key).expect("an id"), "batch-1");
    assert_eq!(number_of(&key).expect("a time"), 5_000);
    assert_eq!(decode_ticks(&encode_ticks(at)).expect("a time"), at);
    assert!(decode_ticks(b"").is_err());
}
