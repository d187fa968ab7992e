//! Tests of the module.

use tonic_types::ErrorDetails;

use super::*;

#[test]
fn retries_are_bounded_and_wait_as_long_as_the_server_requests() {
    let mut retries = Retries::default();
    let down = Status::unavailable("down");

    let waits: Vec<_> = std::iter::from_fn(|| retries.next(&down)).collect();

    assert_eq!(waits.len(), 12);
    assert!(waits.iter().all(|wait| *wait <= WAIT_MAX * 2));
    assert!(waits[0] >= WAIT_FIRST && waits[0] <= WAIT_FIRST * 2);
    let details = ErrorDetails::with_retry_info(Some(Duration::from_secs(3)));
    let busy = Status::with_error_details(Code::ResourceExhausted, "busy", details);
    assert_eq!(Retries::default().next(&CliError::from(busy)), Some(Duration::from_secs(3)));
}

#[test]
fn a_final_error_is_not_retried() {
    let mut retries = Retries::default();

    assert_eq!(retries.next(&Status::invalid_argument("no")), None);
    assert_eq!(retries.next(&Status::not_found("no")), None);
    let (code, domain) = (Code::Unavailable, "trestle");
    for reason in ["STORAGE_STOPPED", "INSUFFICIENT_STORAGE", "STORAGE_QUOTA_EXCEEDED"] {
        let details = ErrorDetails::with_error_info(reason, domain, []);
        assert_eq!(retries.next(&Status::with_error_details(code, "no", details)), None);
    }
}

#[tokio::test(start_paused = true)]
async fn before_any_progress_retries_end_within_their_time() {
    let began = Instant::now();
    let mut retries = Retries::within(Duration::from_secs(3));

    while retries.wait(Status::unavailable("down")).await.is_ok() {}

    assert!(began.elapsed() <= Duration::from_secs(3), "{:?}", began.elapsed());
    assert!(began.elapsed() >= Duration::from_millis(750), "{:?}", began.elapsed());
}

#[test]
fn an_excessive_wait_that_the_server_requests_is_cut() {
    let wait = |requested| {
        let details = ErrorDetails::with_retry_info(Some(requested));
        let busy = Status::with_error_details(Code::ResourceExhausted, "busy", details);
        Retries::default().next(&busy)
    };

    assert_eq!(wait(Duration::from_secs(86_400)), Some(WAIT_MAX * 2));
    assert_eq!(wait(Duration::MAX), Some(WAIT_MAX * 2));
    assert!(wait(Duration::ZERO).is_some_and(|wait| wait >= WAIT_FIRST));
}

#[test]
fn a_broken_connection_is_temporary_and_a_deadline_is_not() {
    let reset = Status::from_error(Box::new(std::io::Error::other("reset")));
    assert!(reset.is_temporary());
    assert!(Status::internal("h2 protocol error: broken").is_temporary());

    let sent_by_the_server = [
        Status::internal("disk"),
        Status::unknown("x"),
        Status::deadline_exceeded("x"),
        Status::cancelled("Timeout expired"),
        Status::aborted("x"),
        Status::already_exists("x"),
    ];
    for status in sent_by_the_server {
        assert!(!status.is_temporary(), "{status:?}");
    }
    assert!(!CliError::Usage("x".to_owned()).is_temporary());
    assert_eq!(Temporary::retry_after(&CliError::Interrupted), None);
}

/// A call that fails so often, then succeeds; the number of its calls.
async fn calls_of(failures: usize, error: fn() -> Status) -> (usize, bool) {
    let mut calls = 0;
    let answer = repeated::<_, CliError>(async || {
        calls += 1;
        if calls > failures { Ok(()) } else { Err(error().into()) }
    })
    .await;
    (calls, answer.is_ok())
}

#[tokio::test(start_paused = true)]
async fn a_call_is_repeated_until_it_succeeds_or_no_try_is_left() {
    let down = || Status::unavailable("down");

    assert_eq!(calls_of(0, down).await, (1, true));
    assert_eq!(calls_of(RETRIES_MAX, down).await, (RETRIES_MAX + 1, true));
    assert_eq!(calls_of(RETRIES_MAX + 1, down).await, (RETRIES_MAX + 1, false));
    assert_eq!(calls_of(1, || Status::not_found("no")).await, (1, false));
}
