//! Tests of the module.

use tonic_types::ErrorDetails;

use super::*;

#[test]
fn retries_are_bounded_and_wait_as_long_as_the_server_requests() {
    let mut retries = Retries::new();
    let down = Status::unavailable("down");

    let waits: Vec<_> = std::iter::from_fn(|| retries.next(&down)).collect();

    assert_eq!(waits.len(), 12);
    assert!(waits.iter().all(|wait| *wait <= WAIT_MAX * 2));
    assert!(waits[0] >= WAIT_FIRST && waits[0] <= WAIT_FIRST * 2);
    let details = ErrorDetails::with_retry_info(Some(Duration::from_secs(3)));
    let busy = Status::with_error_details(Code::ResourceExhausted, "busy", details);
    assert_eq!(Retries::new().next(&CliError::from(busy)), Some(Duration::from_secs(3)));
}

#[test]
fn a_final_error_is_not_retried() {
    let mut retries = Retries::new();

    assert_eq!(retries.next(&Status::invalid_argument("no")), None);
    assert_eq!(retries.next(&Status::not_found("no")), None);
    let (code, domain) = (Code::Unavailable, "trestle");
    let stopped = ErrorDetails::with_error_info("STORAGE_STOPPED", domain, []);
    assert_eq!(retries.next(&Status::with_error_details(code, "no", stopped)), None);
}
