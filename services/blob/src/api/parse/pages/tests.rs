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
