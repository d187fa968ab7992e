//! Tests of the module.

use std::time::Duration;

use tonic_types::ErrorDetails;

use super::*;

fn rejected() -> Status {
    let mut details = ErrorDetails::new();
    details.set_error_info(
        "PROPERTY_NAME_INVALID",
        "trestle.table.v1.TableService",
        [("azureCode".to_owned(), "PropertyNameInvalid".to_owned())],
    );
    details.add_bad_request_violation("entity.properties[0].name", "name=`a-b`: rule one");
    details.add_bad_request_violation("entity.properties[1].name", "name=`1`: rule two");
    Status::with_error_details(Code::InvalidArgument, "entity is malformed", details)
}

#[test]
fn an_invalid_request_shows_reason_and_every_violation() {
    let error = CliError::from(rejected());

    assert_eq!(
        error.render(false),
        "error: entity is malformed\n  \
         reason: PROPERTY_NAME_INVALID (INVALID_ARGUMENT)\n  \
         violation: entity.properties[0].name: name=`a-b`: rule one\n  \
         violation: entity.properties[1].name: name=`1`: rule two"
    );
    assert_eq!(error.code(), 2);
}

#[test]
fn an_invalid_request_is_one_object_for_programs() {
    let text = CliError::from(rejected()).render(true);

    assert_eq!(
        text,
        "{\"error\":{\"message\":\"entity is malformed\",\"code\":\"INVALID_ARGUMENT\",\
         \"reason\":\"PROPERTY_NAME_INVALID\",\
         \"metadata\":{\"azureCode\":\"PropertyNameInvalid\"},\"violations\":[\
         {\"field\":\"entity.properties[0].name\",\"rule\":\"name=`a-b`: rule one\"},\
         {\"field\":\"entity.properties[1].name\",\"rule\":\"name=`1`: rule two\"}],\
         \"hint\":null,\"retry_after_ms\":null}}"
    );
}

#[test]
fn a_violation_that_is_the_message_is_not_repeated() {
    let details = ErrorDetails::with_bad_request_violation("table", "too short");
    let code = Code::InvalidArgument;
    let status = Status::with_error_details(code, "table: too short", details);

    let text = CliError::from(status).render(false);

    assert_eq!(text, "error: table: too short\n  code: INVALID_ARGUMENT");
}

#[test]
fn a_refused_connection_reports_that_nothing_was_sent() {
    let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    let text = CliError::from(Status::from_error(Box::new(refused))).render(false);

    assert!(text.contains("nothing was sent"), "{text}");
}

#[test]
fn a_busy_server_reports_the_retry_delay() {
    let details = ErrorDetails::with_retry_info(Some(Duration::from_millis(1500)));
    let status = Status::with_error_details(Code::ResourceExhausted, "busy", details);
    let error = CliError::from(status);

    assert_eq!(
        error.render(false),
        "error: busy\n  code: RESOURCE_EXHAUSTED\n  \
         hint: wait 1500 ms, then repeat later; nothing was written"
    );
    assert_eq!(error.code(), 5);
}

#[test]
fn exit_codes_follow_the_kind_of_failure() {
    let call = |code| CliError::from(Status::new(code, "x")).code();

    assert_eq!(call(Code::NotFound), 3);
    assert_eq!(call(Code::AlreadyExists), 4);
    assert_eq!(call(Code::Aborted), 4);
    assert_eq!(call(Code::Unavailable), 5);
    assert_eq!(call(Code::Internal), 1);
    assert_eq!(CliError::Usage(String::new()).code(), 2);
    assert_eq!(CliError::Rows(String::new()).code(), 1);
    let endpoint = String::new();
    assert_eq!(CliError::Connect { endpoint, cause: String::new() }.code(), 5);
}

#[test]
fn a_stopped_store_requests_a_restart() {
    let mut details = ErrorDetails::with_retry_info(Some(Duration::from_secs(1)));
    details.set_error_info("STORAGE_STOPPED", "trestle", [("a".to_owned(), "b".to_owned())]);
    let status = Status::with_error_details(Code::Unavailable, "stopped", details);

    let text = CliError::from(status).render(false);

    assert!(text.ends_with("hint: the server needs a restart; nothing was written"), "{text}");
}

#[test]
fn an_interrupted_command_reports_its_progress_and_never_that_nothing_was_sent() {
    let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    let failed = CliError::from(Status::from_error(Box::new(refused)));
    let at = || Halt {
        endpoint: "http://here".to_owned(),
        progress: "94,800 rows written".to_owned(),
        next: "continue with --resume".to_owned(),
    };

    let halted = failed.halted(true, at);

    let text = halted.render(false);
    let expected = "\n  endpoint: http://here\n  progress: 94,800 rows written\n  \
                hint: continue with --resume";
    assert!(text.ends_with(expected) && !text.contains("nothing was sent"), "{text}");
    assert_eq!(halted.code(), 5);
    let object: Value = serde_json::from_str(&halted.render(true)).expect("an object");
    let error = &object["error"];
    assert_eq!(error["progress"], "94,800 rows written");
    assert_eq!(error["hint"], "continue with --resume");
    let text = CliError::Interrupted.halted(false, at).render(false);
    assert_eq!(text, format!("error: interrupted{expected}"));
    let reported = CliError::Rows("row 5".to_owned()).halted(true, at);
    assert!(matches!(reported, CliError::Rows(_)));
    let rejected = CliError::from(Status::not_found("no such table")).halted(false, at);
    assert!(matches!(rejected, CliError::Call(_)), "it never began");
}

#[test]
fn a_broken_connection_never_claims_that_nothing_was_written() {
    let error = Status::from_error(Box::new(io::Error::other("reset")));

    assert!(is_transport(&error));
    assert!(CliError::from(error).render(false).contains("is unknown"));
}
