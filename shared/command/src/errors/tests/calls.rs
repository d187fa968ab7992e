//! Errors of the calls of a command: the address, and what may have been written.

use super::*;

const SITE: CallSite<'_> = CallSite { endpoint: "http://here", reads_only: false };

fn broken() -> CliError {
    Status::from_error(Box::new(io::Error::other("reset"))).into()
}

#[test]
fn an_error_without_an_answer_names_the_address_once() {
    let expired = || CliError::from(Status::cancelled("Timeout expired"));
    let late = CliError::from(Status::deadline_exceeded("late"));
    let proxy = "grpc-status header missing, mapped from HTTP status code 503";
    let connect =
        || CliError::Connect { endpoint: "http://here".to_owned(), cause: "reset".to_owned() };

    for error in [
        expired(),
        late,
        broken(),
        Status::unavailable(proxy).into(),
        connect(),
        broken().halted(true, || Halt { endpoint: "http://here".to_owned(), ..halt() }),
    ] {
        let text = error.render_at(false, Some(SITE));
        assert_eq!(text.matches("http://here:80").count(), 1, "{text}");
        let object: Value = serde_json::from_str(&error.render_at(true, Some(SITE))).unwrap();
        assert_eq!(object["error"]["endpoint"], "http://here:80", "{object}");
    }
    assert!(expired().described("http://here").contains("\n  endpoint: http://here:80"));
    let rejected = CliError::from(rejected()).render_at(false, Some(SITE));
    assert!(!rejected.contains("http://here"), "{rejected}");
}

#[test]
fn an_error_of_a_command_that_only_reads_mentions_no_write() {
    for error in [
        CliError::from(Status::cancelled("Timeout expired")),
        CliError::from(Status::unavailable("busy")),
        CliError::from(Status::resource_exhausted("busy")),
        broken(),
    ] {
        let writes = error.render_at(false, Some(SITE));
        let reads = error.render_at(false, Some(CallSite { reads_only: true, ..SITE }));

        assert!(writes.contains("writ"), "{writes}");
        assert!(reads.contains("\n  hint: repeat") && !reads.contains("writ"), "{reads}");
    }
}

#[test]
fn the_error_of_a_role_behind_a_gateway_names_the_role() {
    let details = ErrorDetails::with_retry_info(Some(Duration::from_millis(5)));
    let busy = Status::with_error_details(Code::Unavailable, "the service is unreachable", details);

    let error = CliError::from(busy).of_role("queue");

    assert_eq!(error.to_string(), "queue: the service is unreachable");
    assert!(error.render(false).contains("wait 5 ms"), "{}", error.render(false));
    let late = CliError::from(Status::cancelled("Timeout expired")).of_role("queue");
    let text = late.render_at(false, Some(SITE));
    assert!(text.starts_with("error: queue: no answer in time: --timeout limits"), "{text}");
    assert!(text.contains("code: DEADLINE_EXCEEDED") && late.is_unavailable(), "{text}");
    assert!(!broken().of_role("queue").to_string().contains("queue"));
}

#[test]
fn a_call_that_was_not_sent_is_an_error_of_the_connection_and_not_repeated() {
    let (endpoint, cause) = ("http://here".to_owned(), "Connection refused".to_owned());
    let status = Status::from_error(Box::new(NotConnected { endpoint, cause }));

    assert!(!crate::retry::Temporary::is_temporary(&status));
    let error = CliError::from(status);
    assert!(matches!(error, CliError::Connect { .. }), "{error:?}");
    assert!(!error.is_unavailable(), "nothing was executed");
    let text = error.halted(false, || panic!("it never began")).render_at(false, Some(SITE));
    assert!(text.starts_with("error: cannot connect to http://here:80\n"), "{text}");
    assert!(text.contains("nothing was sent"), "{text}");
}
