//! Tests of the module.

use std::time::Duration;

use tonic_types::ErrorDetails;

use super::*;

mod calls;

fn rejected() -> Status {
    let mut details = ErrorDetails::new();
    details.set_error_info(
        "PROPERTY_NAME_INVALID",
        "trestle.table.v1.TableService",
        [("azureCode".to_owned(), "PropertyNameInvalid".to_owned())],
    );
    details.add_bad_request_violation("entity.properties[\"a-b\"]", "name=`a-b`: rule one");
    details.add_bad_request_violation("entity.properties[\"1\"]", "name=`1`: rule two");
    Status::with_error_details(Code::InvalidArgument, "entity is malformed", details)
}

#[test]
fn an_invalid_request_shows_reason_and_every_violation() {
    let error = CliError::from(rejected());

    assert_eq!(
        error.render(false),
        "error: entity is malformed\n  \
         reason: PROPERTY_NAME_INVALID (INVALID_ARGUMENT)\n  \
         violation: entity.properties[\"a-b\"]: name=`a-b`: rule one\n  \
         violation: entity.properties[\"1\"]: name=`1`: rule two"
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
         {\"field\":\"entity.properties[\\\"a-b\\\"]\",\"rule\":\"name=`a-b`: rule one\"},\
         {\"field\":\"entity.properties[\\\"1\\\"]\",\"rule\":\"name=`1`: rule two\"}],\
         \"hint\":null,\"retry_after_ms\":null,\"exit_code\":2}}"
    );
}

#[test]
fn each_field_of_an_error_is_one_line_without_control_characters() {
    let name = "a\u{1b}[2J\nb";
    let index = [("index".to_owned(), name.to_owned())];
    let mut details = ErrorDetails::with_error_info(name, "trestle", index);
    details.add_bad_request_violation(name, name);
    let status = Status::with_error_details(Code::NotFound, format!("table=`{name}`"), details);
    let at = Halt { endpoint: name.to_owned(), progress: name.to_owned(), next: name.to_owned() };

    let text = CliError::from(status).halted(true, || at).render(false);

    let shown = "a\\u001b[2J\\nb";
    assert_eq!(
        text,
        format!(
            "error: table=`{shown}`\n  reason: {shown} (NOT_FOUND)\n  \
             operation: index {shown} of the batch\n  violation: {shown}: {shown}\n  \
             hint: {shown}\n  endpoint: {shown}\n  progress: {shown}"
        )
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
fn a_failed_connection_has_its_hint_first_and_no_words_of_libraries() {
    let connect = |cause: &str| CliError::Connect {
        endpoint: "http://here:1".to_owned(),
        cause: cause.to_owned(),
    };

    for (cause, hint) in [
        ("Connection refused", "is the server running there?"),
        ("failed to lookup address information", "the name of the server does not resolve"),
        ("Connection timed out", "does a firewall drop the connection?"),
        (
            NO_ANSWER,
            "is the server overloaded or suspended, does another one listen there, or does a",
        ),
    ] {
        let text = connect(cause).render(false);
        let start = format!("error: cannot connect to http://here:1\n  hint: {hint}");
        assert!(text.starts_with(&start), "{text}");
        assert!(text.ends_with(&format!("nothing was sent\n  cause: {cause}")), "{text}");
        let object: Value = serde_json::from_str(&connect(cause).render(true)).unwrap();
        assert_eq!(object["error"]["endpoint"], "http://here:1");
        assert_eq!(object["error"]["cause"], cause);
    }
    let broken = Status::from_error(Box::new(io::Error::from_raw_os_error(104)));
    let text = CliError::from(broken).render(false);
    assert!(
        text.starts_with("error: the connection failed: the server closed the connection"),
        "{text}"
    );
    assert!(!text.contains("os error") && !text.contains("transport"), "{text}");
    let reset = CliError::from(Status::internal("h2 protocol error: stream reset"));
    assert!(reset.render(false).starts_with("error: the connection failed: stream reset"));
    let missing = || io::Error::from_raw_os_error(2);
    for error in
        [CliError::file("cannot read")(missing()), CliError::input("cannot read")(missing())]
    {
        assert_eq!(error.to_string(), "cannot read: No such file or directory");
    }
}

#[test]
fn what_other_servers_do_is_in_words() {
    for (library, words) in [
        ("tls handshake eof", "the server closed the connection in the TLS handshake"),
        ("connection error detected: frame with invalid size", "the answer is not HTTP/2"),
        ("stream closed because of a broken pipe", "the server closed the connection"),
        ("Connection reset by peer", "the server closed the connection"),
        ("deadline has elapsed", "no answer in time"),
        ("anything else", "anything else"),
    ] {
        assert_eq!(of_other_server(library.to_owned()), words);
    }
}

#[test]
fn errors_of_this_side_have_the_code_that_grpc_defines_for_them() {
    let expired = CliError::from(Status::cancelled("Timeout expired"));
    let broken = CliError::from(Status::from_error(Box::new(io::Error::other("broken"))));

    for (error, code) in [(expired, "DEADLINE_EXCEEDED"), (broken, "UNAVAILABLE")] {
        let object: Value = serde_json::from_str(&error.render(true)).unwrap();
        assert_eq!(object["error"]["code"], code, "{object}");
        assert_eq!(object["error"]["exit_code"], 5, "{object}");
    }
    let cancelled = CliError::from(Status::cancelled("by the server"));
    assert_eq!(cancelled.code(), 1);
    let expired = CliError::from(Status::cancelled("Timeout expired")).render(false);
    assert!(expired.starts_with("error: no answer in time: --timeout"), "{expired}");
}

#[test]
fn an_answer_of_a_proxy_is_named_by_its_status_and_may_be_temporary() {
    let message = "grpc-status header missing, mapped from HTTP status code 503";
    let error = CliError::from(Status::unavailable(message));

    assert!(error.render(false).starts_with("error: the answer is not of gRPC: HTTP status 503\n"));
    assert_eq!((error.code(), error.is_unexplained()), (UNAVAILABLE, false));
    let missing = CliError::from(Status::unimplemented(message.replace("503", "404")));
    assert!(missing.is_unexplained() && missing.is_foreign());
}

#[test]
fn numbers_of_errors_of_the_system_are_removed_wherever_they_are() {
    for (text, shown) in [
        ("Is a directory (os error 21)", "Is a directory"),
        (
            "listen: Address in use (os error 98); set another",
            "listen: Address in use; set another",
        ),
        ("a (os error 2): b (os error 13)", "a: b"),
        ("no number (os error )", "no number"),
        ("a file (os error x)", "a file (os error x)"),
        ("cut (os error 2", "cut (os error 2"),
        ("nothing of the kind", "nothing of the kind"),
    ] {
        assert_eq!(without_number(text.to_owned()), shown);
    }
}

#[test]
fn unwritten_rows_are_in_the_exit_codes_of_imports_only() {
    let rows = "1  failed, or some rows were not written\n";

    assert!(EXIT_CODES.contains("1  failed\n") && !EXIT_CODES.contains("rows"));
    assert!(IMPORT_EXIT_CODES.contains(rows), "{IMPORT_EXIT_CODES}");
    for (command, has_rows) in [("import", true), ("export", false), ("list", false)] {
        assert_eq!(table_exit_codes(command).contains(rows), has_rows, "{command}");
    }
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
        endpoint: "http://here:1".to_owned(),
        progress: "94,800 rows written".to_owned(),
        next: "continue with --resume".to_owned(),
    };

    let halted = failed.halted(true, at);

    let text = halted.render(false);
    let expected = "\n  hint: continue with --resume\n  endpoint: http://here:1\n  \
                    progress: 94,800 rows written";
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
fn a_wrong_address_is_not_answered_with_a_repetition() {
    let misdirected = || {
        let called = "http://here:1";
        CliError::Connect { endpoint: called.to_owned(), cause: "x".to_owned() }
            .misdirected(called, "another server".to_owned())
    };
    let at = || Halt { next: "repeat it: nothing is kept".to_owned(), ..halt() };

    let before = misdirected().halted(false, at);
    assert!(matches!(before, CliError::Misdirected { .. }), "it never began: {before:?}");
    let text = misdirected().halted(true, at).render(false);
    let hint = "hint: with the right address or certificate, repeat it: nothing is kept";
    assert!(text.contains(hint), "{text}");
}

#[test]
fn a_broken_connection_never_claims_that_nothing_was_written() {
    let error = Status::from_error(Box::new(io::Error::other("reset")));

    assert!(is_transport(&error));
    assert!(CliError::from(error).render(false).contains("is unknown"));
}

fn halt() -> Halt {
    Halt {
        endpoint: "http://here:1".to_owned(),
        progress: "5 rows written".to_owned(),
        next: "continue with --resume".to_owned(),
    }
}

#[test]
fn every_code_of_a_call_has_an_exit_code() {
    for number in 1..=16 {
        let code = Code::from_i32(number);
        let expected = match code {
            Code::InvalidArgument | Code::OutOfRange => 2,
            Code::NotFound => 3,
            Code::AlreadyExists | Code::Aborted | Code::FailedPrecondition => 4,
            Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded => 5,
            _ => 1,
        };
        let error = CliError::from(Status::new(code, "x"));

        assert_eq!(error.code(), expected, "{code:?}");
        assert_eq!(error.is_unavailable(), expected == 5, "{code:?}");
        assert_eq!(error.halted(true, halt).code(), expected, "halted {code:?}");
    }
}

#[test]
fn other_errors_have_the_exit_codes_of_the_help() {
    let source = |busy| CliError::Source { text: "x".to_owned(), busy };
    let misdirected = CliError::Misdirected {
        endpoint: String::new(),
        problem: String::new(),
        cause: String::new(),
    };
    for (error, expected) in [
        (CliError::Interrupted, 130),
        (CliError::Terminated, 143),
        (CliError::Rejected, 1),
        (CliError::Protocol("x".to_owned()), 1),
        (source(true), 5),
        (source(false), 1),
        (misdirected, 6),
        (CliError::file("cannot read")(io::ErrorKind::NotFound.into()), 1),
        (CliError::input("cannot read")(io::ErrorKind::NotFound.into()), 2),
    ] {
        assert_eq!(error.code(), expected, "{error:?}");
        for help in
            [EXIT_CODES, QUEUE_EXIT_CODES, BLOB_EXIT_CODES, LOG_EXIT_CODES, VERIFY_EXIT_CODES]
        {
            let documented = |line: &str| line.trim().starts_with(&format!("{expected}  "));
            assert!(help.lines().any(documented), "{expected} in {help}");
        }
    }
}

#[test]
fn a_deadline_of_the_client_is_no_broken_connection() {
    let mut expired = Status::from_error(Box::new(io::Error::other("late")));
    assert!(CliError::from(expired.clone()).is_unexplained());
    expired = Status::new(Code::DeadlineExceeded, "late");
    assert!(!is_transport(&expired));
    assert!(!CliError::from(expired).is_unexplained());
    assert!(is_transport(&Status::internal("h2 protocol error: reset")));
    assert!(!is_transport(&Status::internal("a disk failed, h2 protocol error")));
}

#[test]
fn only_a_failed_connection_or_a_foreign_answer_is_probed() {
    let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    let page = || CliError::from(Status::unknown("grpc-status header missing, mapped from 404"));
    let connect =
        CliError::Connect { endpoint: String::new(), cause: "invalid certificate".to_owned() };

    assert!(page().is_unexplained() && page().is_foreign());
    assert!(page().halted(true, halt).is_unexplained() && page().halted(true, halt).is_foreign());
    assert!(connect.is_unexplained() && !connect.is_foreign());
    for error in [
        CliError::from(Status::from_error(Box::new(refused))),
        CliError::from(Status::not_found("x")),
        CliError::Usage("grpc-status header missing".to_owned()),
        CliError::Interrupted,
    ] {
        assert!(!error.is_unexplained(), "{error:?}");
    }
}

#[test]
fn a_diagnosis_keeps_the_progress_and_for_programs_the_cause() {
    let broken = CliError::from(Status::from_error(Box::new(io::Error::other("reset"))));
    let problem = "http://here:1 uses TLS: use https://".to_owned();

    let error = broken.halted(true, halt).misdirected("http://here:1", problem.clone());

    assert_eq!(error.code(), 6);
    let shown = error.render(false);
    for part in [problem.as_str(), "http://here:1", "5 rows written", "continue with --resume"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(!shown.contains("reset"), "the problem names it in words: {shown}");
    let object: Value = serde_json::from_str(&error.render(true)).unwrap();
    assert_eq!(object["error"]["cause"], "the connection failed: reset");
    let cause = "invalid peer certificate: UnknownIssuer".to_owned();
    let error = CliError::Connect { endpoint: String::new(), cause };
    let shown = error.misdirected("https://here", problem.clone()).render(false);
    assert_eq!(shown, format!("error: {problem}"));
}

#[test]
fn the_advice_never_claims_that_nothing_was_written_after_a_doubtful_end() {
    for (code, is_doubtful) in [
        (Code::Unavailable, false),
        (Code::ResourceExhausted, false),
        (Code::DeadlineExceeded, true),
        (Code::Cancelled, true),
        (Code::Unknown, true),
    ] {
        let shown = CliError::from(Status::new(code, "x")).render(false);

        assert_eq!(shown.contains("is unknown, read back first"), is_doubtful, "{shown}");
        assert_eq!(shown.contains("nothing was written"), !is_doubtful, "{shown}");
    }
    for code in [Code::NotFound, Code::InvalidArgument, Code::PermissionDenied, Code::Internal] {
        let shown = CliError::from(Status::new(code, "x")).render(false);
        assert!(!shown.contains("hint"), "{shown}");
    }
}

#[test]
fn an_error_of_a_batch_element_keeps_its_details() {
    let given = rejected();
    let details = RpcStatus::decode(given.details()).unwrap();

    let status = status_of(&details);

    assert_eq!((status.code(), status.message()), (given.code(), given.message()));
    assert_eq!(CliError::from(status).render(true), CliError::from(given).render(true));
}

#[test]
fn a_closed_reader_of_the_output_is_never_an_error_of_the_command() {
    let closed = || CliError::file("cannot write")(io::ErrorKind::BrokenPipe.into());

    assert!(closed().is_broken_pipe());
    assert!(closed().halted(true, halt).is_broken_pipe());
    assert!(!CliError::file("cannot write")(io::ErrorKind::StorageFull.into()).is_broken_pipe());
}

#[test]
fn a_call_that_is_rejected_before_anything_began_has_no_progress() {
    let rejected = |begun| CliError::from(Status::not_found("x")).halted(begun, halt);
    let busy = |begun| CliError::from(Status::unavailable("x")).halted(begun, halt);

    assert!(!rejected(false).render(false).contains("progress"));
    for error in [rejected(true), busy(false), busy(true)] {
        assert!(error.render(false).contains("progress: 5 rows written"), "{error:?}");
    }
    let twice = rejected(true).halted(true, || panic!("has its progress already"));
    assert_eq!(twice.render(false).matches("progress").count(), 1);
}

#[test]
fn a_full_disk_or_quota_is_not_to_be_retried_in_a_second() {
    for (reason, hint) in [
        ("INSUFFICIENT_STORAGE", "hint: a retry fails until space is free on the server"),
        ("STORAGE_QUOTA_EXCEEDED", "hint: a retry fails until the account deletes something"),
    ] {
        let mut details = ErrorDetails::with_retry_info(Some(Duration::from_secs(1)));
        details.set_error_info(reason, "trestle.table.v1.TableService", []);
        let code = Code::ResourceExhausted;
        let full = CliError::from(Status::with_error_details(code, "no space", details));

        let text = full.render(false);

        assert!(text.contains(hint), "{text}");
        assert!(!text.contains("wait 1000 ms"), "{text}");
    }
}

#[test]
fn an_answer_without_tls_is_found_in_the_error_itself() {
    let connect = |cause: &str| CliError::Connect { endpoint: String::new(), cause: cause.into() };
    let corrupt = "received corrupt message of type InvalidContentType";

    assert!(connect(corrupt).is_of_plain_server());
    let halt = Halt { endpoint: String::new(), progress: String::new(), next: String::new() };
    assert!(connect(corrupt).halted(true, || halt).is_of_plain_server());
    assert!(!connect("Connection refused").is_of_plain_server());
}
