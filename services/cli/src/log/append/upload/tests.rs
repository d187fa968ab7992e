use tonic_types::{ErrorDetails, StatusExt as _};

use super::*;

#[test]
fn rejected_records_are_found_by_their_fields() {
    let mut details = ErrorDetails::new();
    details.add_bad_request_violation("append.records[7].body", "x");
    details.add_bad_request_violation("records[3]", "x");
    details.add_bad_request_violation("records[3].trace_id", "x");
    details.add_bad_request_violation("stream", "x");
    details.set_error_info("INVALID_RECORD", "", [("index".to_owned(), "5".to_owned())]);
    let status = Status::with_error_details(Code::InvalidArgument, "invalid", details);
    let error = prost::Message::decode(status.details()).unwrap();
    assert_eq!(positions(&error), [3, 5, 7]);
    assert_eq!(positions(&RpcStatus::default()), [0; 0]);
}
