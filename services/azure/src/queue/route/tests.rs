use http::{Request, request::Builder};
use tonic::body::Body;
use tonic_types::StatusExt as _;

use super::*;

fn head(method: &str, target: &str) -> RequestHead {
    let request: Builder = Request::builder().method(method).uri(format!("/acme{target}"));
    let request = request.header("host", "127.0.0.1");
    RequestHead::take(&mut request.body(Body::empty()).expect("a request"), "queue")
        .expect("a head")
}

fn routed(method: &str, target: &str) -> QueueOperation {
    route(&head(method, target)).expect(target)
}

fn code_of(method: &str, target: &str) -> String {
    let error = route(&head(method, target)).expect_err(target);
    let details = error.status.get_error_details();
    details.error_info().map(|info| info.reason.clone()).unwrap_or_default()
}

#[test]
fn a_rejected_time_to_live_names_the_value_for_no_expiry() {
    for value in ["0", "-2"] {
        let target = format!("/q/messages?messagettl={value}");
        let error = route(&head("POST", &target)).expect_err(&target);
        let message = error.status.message();
        let rule = "must be 1 or more seconds, or -1, with which the message never expires";
        assert_eq!(message, format!("messagettl: {rule}: value=`{value}`"));
        let extras: Vec<_> = error.extras.iter().map(|(name, _)| *name).collect();
        assert!(extras.contains(&"MinimumAllowed"), "{extras:?}");
    }
}

#[test]
fn operations_on_the_account_are_determined_by_their_parameters() {
    let page = ListPage {
        prefix: Some("q".to_owned()),
        marker: Some("/acme/q-1".to_owned()),
        max_results: Some(2),
        has_metadata: true,
    };
    let listed = "/?comp=list&prefix=q&marker=%2Facme%2Fq-1&maxresults=2&include=metadata";
    for (method, target, operation) in [
        ("GET", listed, OnAccount::ListQueues(page)),
        ("GET", "?comp=list&prefix=&include=", OnAccount::ListQueues(ListPage::default())),
        ("GET", "/?restype=service&comp=properties", OnAccount::GetProperties),
        ("PUT", "/?comp=properties&restype=service&timeout=5", OnAccount::SetProperties),
        ("GET", "-secondary/?restype=service&comp=stats", OnAccount::GetStats),
    ] {
        assert_eq!(routed(method, target), QueueOperation::Account(operation), "{method} {target}");
    }
}

#[test]
fn operations_on_a_queue_are_determined_by_method_and_component() {
    for (method, target, operation) in [
        ("PUT", "/my-q", OnQueue::Create),
        ("PUT", "/my-q/", OnQueue::Create),
        ("DELETE", "/my%2Dq", OnQueue::Delete),
        ("GET", "/my-q?comp=metadata", OnQueue::GetMetadata),
        ("HEAD", "/my-q?comp=Metadata", OnQueue::GetMetadata),
        ("PUT", "/my-q?comp=metadata", OnQueue::SetMetadata),
        ("GET", "/my-q?comp=acl", OnQueue::GetPolicies),
        ("HEAD", "/my-q?comp=acl", OnQueue::GetPolicies),
        ("PUT", "/my-q?comp=acl", OnQueue::SetPolicies),
    ] {
        let expected = QueueOperation::Queue("my-q".to_owned(), operation);
        assert_eq!(routed(method, target), expected, "{method} {target}");
    }
}

#[test]
fn parses_operations_on_messages_with_their_parameters() {
    let message = MessageReceipt { message_id: "an-id".to_owned(), pop_receipt: "a+b=".to_owned() };
    let plain = OnMessages::Send { visibility_timeout: None, time_to_live: None };
    let visibility_timeout = OnMessages::Send {
        visibility_timeout: Some(0),
        time_to_live: Some(TimeToLive::Seconds(1)),
    };
    let no_expiry = OnMessages::Send {
        visibility_timeout: Some(604_800),
        time_to_live: Some(TimeToLive::Never),
    };
    for (method, target, operation) in [
        ("POST", "", plain),
        ("POST", "?visibilitytimeout=0&messagettl=1", visibility_timeout),
        ("POST", "?messagettl=-1&visibilitytimeout=604800", no_expiry),
        ("GET", "", OnMessages::Receive { max: None, visibility_timeout: None }),
        (
            "GET",
            "?peekonly=false&numofmessages=32&visibilitytimeout=1",
            OnMessages::Receive { max: Some(32), visibility_timeout: Some(1) },
        ),
        ("GET", "?peekonly=TRUE&numofmessages=1", OnMessages::Peek { max: Some(1) }),
        ("DELETE", "", OnMessages::Clear),
        ("DELETE", "/an-id?popreceipt=a%2Bb%3D", OnMessages::Delete { message: message.clone() }),
        (
            "PUT",
            "/an-id?popreceipt=a%2Bb%3D&visibilitytimeout=0",
            OnMessages::Update { message, visibility_timeout: 0 },
        ),
    ] {
        let expected = QueueOperation::Messages("q".to_owned(), operation);
        assert_eq!(routed(method, &format!("/q/messages{target}")), expected, "{target}");
    }
}

#[test]
fn rejects_invalid_operations_with_their_own_codes() {
    for (method, target, code) in [
        ("GET", "/", "MISSING_REQUIRED_QUERY_PARAMETER"),
        ("GET", "/?comp=properties", "MISSING_REQUIRED_QUERY_PARAMETER"),
        ("GET", "/?restype=service&comp=tables", "INVALID_QUERY_PARAMETER_VALUE"),
        ("GET", "/?restype=container&comp=properties", "INVALID_QUERY_PARAMETER_VALUE"),
        ("PUT", "/?comp=list", "UNSUPPORTED_HTTP_VERB"),
        ("DELETE", "/?restype=service&comp=properties", "UNSUPPORTED_HTTP_VERB"),
        ("PUT", "-secondary/?restype=service&comp=stats", "UNSUPPORTED_HTTP_VERB"),
        ("GET", "/?restype=service&comp=stats", "INVALID_QUERY_PARAMETER_VALUE"),
        ("GET", "/?comp=list&include=tags", "INVALID_QUERY_PARAMETER_VALUE"),
        ("GET", "/?comp=list&maxresults=0", "OUT_OF_RANGE_QUERY_PARAMETER_VALUE"),
        ("GET", "/?comp=list&maxresults=5001", "OUT_OF_RANGE_QUERY_PARAMETER_VALUE"),
        ("GET", "/q", "MISSING_REQUIRED_QUERY_PARAMETER"),
        ("POST", "/q", "UNSUPPORTED_HTTP_VERB"),
        ("DELETE", "/q?comp=metadata", "UNSUPPORTED_HTTP_VERB"),
        ("PUT", "/q?comp=lease", "INVALID_QUERY_PARAMETER_VALUE"),
        ("PATCH", "/q/messages", "UNSUPPORTED_HTTP_VERB"),
        ("GET", "/q/messages/id", "UNSUPPORTED_HTTP_VERB"),
        ("DELETE", "/q/messages/id", "MISSING_REQUIRED_QUERY_PARAMETER"),
        ("DELETE", "/q/messages/id?popreceipt=", "MISSING_REQUIRED_QUERY_PARAMETER"),
        ("PUT", "/q/messages/id?popreceipt=a", "MISSING_REQUIRED_QUERY_PARAMETER"),
        ("PUT", "/q/messages/id?visibilitytimeout=0", "MISSING_REQUIRED_QUERY_PARAMETER"),
        ("POST", "/q/messages?messagettl=0", "OUT_OF_RANGE_QUERY_PARAMETER_VALUE"),
        ("POST", "/q/messages?messagettl=-2", "OUT_OF_RANGE_QUERY_PARAMETER_VALUE"),
        ("POST", "/q/messages?messagettl=soon", "INVALID_QUERY_PARAMETER_VALUE"),
        ("POST", "/q/messages?visibilitytimeout=604801", "OUT_OF_RANGE_QUERY_PARAMETER_VALUE"),
        ("GET", "/q/messages?visibilitytimeout=0", "OUT_OF_RANGE_QUERY_PARAMETER_VALUE"),
        ("GET", "/q/messages?numofmessages=33", "OUT_OF_RANGE_QUERY_PARAMETER_VALUE"),
        ("GET", "/q/messages?peekonly=yes", "INVALID_QUERY_PARAMETER_VALUE"),
        ("GET", "/q/others", "INVALID_URI"),
        ("DELETE", "/q/messages/?popreceipt=a", "INVALID_URI"),
        ("DELETE", "/q/messages?popreceipt=a", "INVALID_URI"),
        ("DELETE", "/q/messages/", "INVALID_URI"),
        ("PUT", "/q/messages/?popreceipt=a&visibilitytimeout=0", "INVALID_URI"),
        ("GET", "/q/messages/id/more", "INVALID_URI"),
        ("GET", "//q", "INVALID_URI"),
        ("PUT", "/%FF", "INVALID_URI"),
    ] {
        assert_eq!(code_of(method, target), code, "{method} {target}");
    }
}

#[test]
fn a_path_is_split_before_it_is_decoded() {
    let named = |target| match routed("PUT", target) {
        QueueOperation::Queue(name, OnQueue::Create) => name,
        other => panic!("{target}: {other:?}"),
    };

    assert_eq!(named("/q%2Fmessages"), "q/messages");
    assert_eq!(named("/%2e%2e"), "..");
    assert_eq!(named("/q%00"), "q\0");
    assert_eq!(named("/%252e"), "%2e");
}
