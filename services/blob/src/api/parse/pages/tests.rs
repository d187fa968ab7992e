use super::*;

fn parse(
    size: Option<u64>,
    sequence: Option<SequenceNumber>,
) -> Result<PageUpdate, (Reason, String)> {
    let mut parser = RequestParser::default();
    let update = parser.page_update(size, sequence);
    parser.finish(Some(update)).map_err(|fault| (fault.reason, fault.message))
}

#[test]
fn an_update_of_a_page_blob_changes_something() {
    let rejected = |message: &str| Err((Reason::InvalidInput, message.to_owned()));
    let empty = "size: required: the new length, or set, raise or increment";
    assert_eq!(parse(None, None), rejected(empty));
    let unset = rejected("increment: must be true, or absent: value=`false`");
    assert_eq!(parse(None, Some(SequenceNumber::Increment(false))), unset);
    assert_eq!(parse(Some(512), Some(SequenceNumber::Increment(false))), unset);

    let sequence = Some(SequenceUpdate::Increment);
    let increment = parse(None, Some(SequenceNumber::Increment(true)));
    assert_eq!(increment, Ok(PageUpdate { size: None, sequence }));
    assert_eq!(parse(Some(512), None), Ok(PageUpdate { size: Some(512), sequence: None }));
}

fn check<T>(parse: impl FnOnce(&mut RequestParser) -> T) -> Result<T, (Reason, String)> {
    let mut parser = RequestParser::default();
    let value = parse(&mut parser);
    let violation = |fault: trestle_model::fault::Fault| fault.violations[0].clone();
    parser.finish(Some(value)).map_err(violation).map_err(|it| (it.reason, it.field))
}

#[test]
fn a_page_blob_has_whole_pages_up_to_8_tib() {
    let size = |bytes| check(|parser| parser.page_blob_size(bytes));
    for bytes in [0, 512, 8 << 40] {
        assert_eq!(size(bytes), Ok(bytes));
    }
    for bytes in [1, 511, 513, (8 << 40) + 512, u64::MAX] {
        assert_eq!(size(bytes), Err((Reason::InvalidHeaderValue, "size".to_owned())), "{bytes}");
    }
}

#[test]
fn a_sequence_number_is_one_of_63_bits() {
    let number = |number| check(|parser| parser.sequence_number(number, "set"));
    for valid in [0, 1, (1 << 63) - 1] {
        assert_eq!(number(valid), Ok(valid));
    }
    for invalid in [1 << 63, u64::MAX] {
        assert_eq!(number(invalid), Err((Reason::InvalidHeaderValue, "set".to_owned())));
    }
    for (update, field) in
        [(SequenceNumber::Set(1 << 63), "set"), (SequenceNumber::Raise(1 << 63), "raise")]
    {
        let found = check(|parser| parser.page_update(None, Some(update)));
        assert_eq!(found, Err((Reason::InvalidHeaderValue, field.to_owned())));
    }
}

#[test]
fn pages_begin_and_end_at_whole_ones_and_are_at_least_one() {
    let rejected = |field: &str| Err((Reason::InvalidPageRange, field.to_owned()));
    let start = |bytes| check(|parser| parser.pages(bytes, "offset"));
    let length = |bytes| check(|parser| parser.pages_length(bytes, "length"));
    assert_eq!((start(0), start(512), start(u64::MAX - 511)), (Ok(0), Ok(512), Ok(u64::MAX - 511)));
    assert_eq!((length(512), length(0)), (Ok(512), rejected("length")));
    for bytes in [1, 511, 513, u64::MAX] {
        assert_eq!((start(bytes), length(bytes)), (rejected("offset"), rejected("length")));
    }
}

#[test]
fn a_page_of_ranges_has_1_to_10_000() {
    let max = |size| check(|parser| parser.ranges_max(size));
    for (size, expected) in [(None, 10_000), (Some(1), 1), (Some(10_001), 10_000)] {
        assert_eq!(max(size), Ok(expected));
    }
    for size in [0, -1, i32::MIN] {
        let reason = Reason::OutOfRangeQueryParameterValue;
        assert_eq!(max(Some(size)), Err((reason, "page_size".to_owned())));
    }
}
