//! Messages: send, receive, peek, clear.

use std::time::Duration;

use trestle_tests::{QueueRest, RestRequest};

/// The children of the only message of a body, in their order.
fn order(body: &str) -> Vec<&str> {
    let names = body.split('<').skip(1).map(|tag| tag.split(['>', ' ']).next().unwrap_or_default());
    names.filter(|name| !name.starts_with(['/', '?'])).skip(2).collect()
}

#[tokio::test]
async fn put_peek_and_get_return_their_xml_elements() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;

    let sent = rest.message("orders", "", "text & more").await;
    assert_eq!(sent.header("content-type"), "application/xml");
    let times = ["MessageId", "InsertionTime", "ExpirationTime"];
    let held = ["PopReceipt", "TimeNextVisible"];
    assert_eq!(order(sent.text()), [&times[..], &held].concat());

    let peeked = rest.call("GET", "/orders/messages?peekonly=true").await;
    assert_eq!((peeked.status, peeked.only("MessageText")), (200, "text & more".into()));
    assert_eq!(peeked.only("DequeueCount"), "0");
    assert_eq!(order(peeked.text()), [&times[..], &["DequeueCount", "MessageText"]].concat());

    let received = rest.call("GET", "/orders/messages?peekonly=false").await;
    assert_eq!((received.status, received.only("DequeueCount")), (200, "1".into()));
    let all = [&times[..], &held, &["DequeueCount", "MessageText"]].concat();
    assert_eq!(order(received.text()), all);
    for element in times {
        assert_eq!(received.only(element), sent.only(element), "{element}");
    }
    assert!(received.only("InsertionTime").ends_with(" GMT"), "{received:?}");
    assert_eq!(received.header("cache-control"), "no-cache");

    // Invisible now: nothing to receive, which is not an error.
    for query in ["", "?peekonly=true"] {
        let none = rest.call("GET", &format!("/orders/messages{query}")).await;
        assert_eq!(none.status, 200);
        assert!(none.text().ends_with("<QueueMessagesList />"), "{none:?}");
    }
}

#[tokio::test]
async fn message_text_round_trips_through_xml() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let largest = "é".repeat(32_768);

    for text in [
        "",
        " ",
        " leading and trailing\n",
        "one\r\ntwo\rthree\n\tfour",
        "<tag attribute=\"value\">&amp;</tag>]]>",
        "日本語 \u{1f600} \u{301} \u{fffd}",
        "PHhtbD4=",
        largest.as_str(),
    ] {
        rest.message("orders", "", text).await;
        let received = rest.call("GET", "/orders/messages?visibilitytimeout=600").await;
        assert_eq!(received.only("MessageText"), text);
    }
    // A literal line break is preserved too.
    let body = "<?xml version='1.0' encoding='utf-8'?>\n<QueueMessage>\n  <MessageText>a\r\nb\
                </MessageText>\n</QueueMessage>\n";
    let sent = rest.send(RestRequest::xml("POST", "/orders/messages", body)).await;
    assert_eq!(sent.status, 201, "{sent:?}");
    let received = rest.call("GET", "/orders/messages").await;
    assert_eq!(received.only("MessageText"), "a\r\nb");
    assert!(received.text().contains("a&#xD;\nb"), "{received:?}");
}

#[tokio::test]
async fn message_is_limited_to_64_kib_and_its_request_to_twice_that() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let send = |text: String| rest.send(RestRequest::message("POST", "/orders/messages", &text));

    assert_eq!(send("x".repeat(65_536)).await.status, 201);
    for (chars, limit) in [(65_537, "65536"), (131_584, "131584")] {
        let response = send("x".repeat(chars)).await;
        assert_eq!(response.failure(), (413, "RequestBodyTooLarge"), "{chars}");
        assert_eq!(response.only("MaxLimit"), limit);
    }
    let received = rest.call("GET", "/orders/messages").await;
    let (id, receipt) = (received.only("MessageId"), received.only("PopReceipt"));
    let target = format!("/orders/messages/{id}?popreceipt={receipt}&visibilitytimeout=0");
    let response = rest.send(RestRequest::message("PUT", &target, &"x".repeat(65_537))).await;
    assert_eq!(response.failure(), (413, "RequestBodyTooLarge"));
    assert_eq!(response.only("MaxLimit"), "65536");
}

#[tokio::test]
async fn out_of_range_parameters_are_rejected_with_the_limits() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;

    for (method, name, value, min, max) in [
        ("GET", "numofmessages", "0", "1", "32"),
        ("GET", "numofmessages", "33", "1", "32"),
        ("GET", "visibilitytimeout", "0", "1", "604800"),
        ("GET", "visibilitytimeout", "604801", "1", "604800"),
        ("POST", "visibilitytimeout", "-1", "0", "604800"),
        ("POST", "visibilitytimeout", "604801", "0", "604800"),
        ("POST", "messagettl", "0", "1", "9223372036854775807"),
        ("POST", "messagettl", "-2", "1", "9223372036854775807"),
        ("POST", "messagettl", "9223372036854775808", "1", "9223372036854775807"),
    ] {
        let target = format!("/orders/messages?{name}={value}");
        let response = rest.send(RestRequest::message(method, &target, "text")).await;
        assert_eq!(response.failure(), (400, "OutOfRangeQueryParameterValue"), "{target}");
        assert_eq!(response.only("QueryParameterName"), name);
        assert_eq!(response.only("QueryParameterValue"), value);
        assert_eq!(
            (response.only("MinimumAllowed"), response.only("MaximumAllowed")),
            (min.into(), max.into())
        );
    }
    for query in ["numofmessages=some", "visibilitytimeout=1.5", "peekonly=perhaps"] {
        let response = rest.call("GET", &format!("/orders/messages?{query}")).await;
        assert_eq!(response.failure(), (400, "InvalidQueryParameterValue"), "{query}");
        assert_eq!(response.only("QueryParameterName"), query.split('=').next().unwrap());
    }
}

#[tokio::test]
async fn accepts_parameters_at_their_limits() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;

    for query in ["visibilitytimeout=0", "messagettl=1", "messagettl=-1&visibilitytimeout=604800"] {
        rest.message("orders", &format!("?{query}"), "text").await;
    }
    let sent = rest.message("orders", "", "text").await;
    let (id, receipt) = (sent.only("MessageId"), sent.only("PopReceipt"));
    let target = format!("/orders/messages/{id}?popreceipt={receipt}&visibilitytimeout=604800");
    assert_eq!(rest.call("PUT", &target).await.status, 204);
    for query in [
        "peekonly=true&numofmessages=1",
        "peekonly=true&numofmessages=32",
        "numofmessages=1&visibilitytimeout=1",
        "numofmessages=32&visibilitytimeout=604800",
    ] {
        assert_eq!(rest.call("GET", &format!("/orders/messages?{query}")).await.status, 200);
    }
}

#[tokio::test]
async fn out_of_range_update_is_rejected_with_the_limits() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let sent = rest.message("orders", "", "text").await;
    let (id, receipt) = (sent.only("MessageId"), sent.only("PopReceipt"));

    for value in ["-1", "604801", "99999999999999999999"] {
        let target =
            format!("/orders/messages/{id}?popreceipt={receipt}&visibilitytimeout={value}");
        let response = rest.call("PUT", &target).await;
        assert_eq!(response.failure(), (400, "OutOfRangeQueryParameterValue"), "{value}");
        assert_eq!(response.only("QueryParameterName"), "visibilitytimeout");
        assert_eq!(
            (response.only("MinimumAllowed"), response.only("MaximumAllowed")),
            ("0".into(), "604800".into())
        );
    }
    let deleted = rest.call("DELETE", &format!("/orders/messages/{id}?popreceipt={receipt}")).await;
    assert_eq!(deleted.status, 204, "nothing has changed");
}

/// No source documents which of the two Azure reports first.
#[tokio::test]
async fn out_of_range_parameter_takes_precedence_over_a_missing_queue() {
    let rest = QueueRest::start().await;

    let response =
        rest.send(RestRequest::message("POST", "/nowhere/messages?messagettl=0", "text")).await;
    assert_eq!(response.failure(), (400, "OutOfRangeQueryParameterValue"));
    // The checks of the service follow.
    for (query, text) in [("?messagettl=1&visibilitytimeout=1", 1), ("", 65_537)] {
        let request =
            RestRequest::message("POST", &format!("/nowhere/messages{query}"), &"x".repeat(text));
        assert_eq!(rest.send(request).await.failure(), (404, "QueueNotFound"), "{query}");
    }
}

#[tokio::test]
async fn ttl_may_be_infinite_and_must_exceed_the_visibility_timeout() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;

    let ever = rest.message("orders", "?messagettl=-1", "ever").await;
    assert_eq!(ever.only("ExpirationTime"), "Fri, 31 Dec 9999 23:59:59 GMT");
    let long = rest.message("orders", "?messagettl=2147483647", "long").await;
    assert!(long.only("ExpirationTime").contains(" 20"), "{long:?}");
    for longer in ["2147483648", "315576000001", "9223372036854775807"] {
        let response = rest.message("orders", &format!("?messagettl={longer}"), "longer").await;
        let end = response.only("ExpirationTime");
        assert!(end.contains(" 20") || end == ever.only("ExpirationTime"), "{end}");
    }
    let peeked = rest.call("GET", "/orders/messages?peekonly=true&numofmessages=32").await;
    assert_eq!(peeked.all("MessageText"), ["ever", "long", "longer", "longer", "longer"]);

    let target = "/orders/messages?messagettl=10&visibilitytimeout=10";
    let response = rest.send(RestRequest::message("POST", target, "never stored")).await;
    assert_eq!(response.failure(), (400, "InvalidQueryParameterValue"));
    assert_eq!(response.only("QueryParameterName"), "visibilitytimeout");
    assert_eq!(response.only("QueryParameterValue"), "10");
    assert_eq!(response.only("Reason"), "messagettl must be greater than visibilitytimeout");
}

#[tokio::test]
async fn expired_message_is_not_found_by_any_operation() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let sent = rest.message("orders", "?messagettl=1", "short").await;
    tokio::time::sleep(Duration::from_millis(1200)).await;

    for query in ["", "?peekonly=true"] {
        let none = rest.call("GET", &format!("/orders/messages{query}")).await;
        assert_eq!(none.all("MessageId").len(), 0, "{none:?}");
    }
    let (id, receipt) = (sent.only("MessageId"), sent.only("PopReceipt"));
    let response =
        rest.call("DELETE", &format!("/orders/messages/{id}?popreceipt={receipt}")).await;
    assert_eq!(response.failure(), (404, "MessageNotFound"));
}

#[tokio::test]
async fn visibility_timeout_past_expiry_is_accepted_and_expiry_applies() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    let sent = rest.message("orders", "?messagettl=1", "short").await;
    let (id, receipt) = (sent.only("MessageId"), sent.only("PopReceipt"));

    let target = format!("/orders/messages/{id}?popreceipt={receipt}&visibilitytimeout=600");
    let updated = rest.call("PUT", &target).await;
    assert_eq!(updated.status, 204, "{updated:?}");
    tokio::time::sleep(Duration::from_millis(1200)).await;

    let receipt = updated.header("x-ms-popreceipt");
    let response =
        rest.call("DELETE", &format!("/orders/messages/{id}?popreceipt={receipt}")).await;
    assert_eq!(response.failure(), (404, "MessageNotFound"));
}

#[tokio::test]
async fn messages_are_received_oldest_first_and_cleared() {
    let rest = QueueRest::start().await;
    rest.queue("orders").await;
    for text in ["1", "2", "3", "4"] {
        rest.message("orders", "", text).await;
    }

    let peeked = rest.call("GET", "/orders/messages?peekonly=true&numofmessages=3").await;
    assert_eq!(peeked.all("MessageText"), ["1", "2", "3"]);
    let received = rest.call("GET", "/orders/messages?numofmessages=2").await;
    assert_eq!(received.all("MessageText"), ["1", "2"]);
    let receipts = received.all("PopReceipt");
    assert_ne!(receipts[0], receipts[1]);
    let rest_of_them = rest.call("GET", "/orders/messages?numofmessages=32").await;
    assert_eq!(rest_of_them.all("MessageText"), ["3", "4"]);

    let cleared = rest.call("DELETE", "/orders/messages").await;
    assert_eq!((cleared.status, cleared.text()), (204, ""));
    let id = &received.all("MessageId")[0];
    let response =
        rest.call("DELETE", &format!("/orders/messages/{id}?popreceipt={}", receipts[0])).await;
    assert_eq!(response.failure(), (404, "MessageNotFound"));
}

#[tokio::test]
async fn message_operations_on_a_missing_queue_are_not_found() {
    let rest = QueueRest::start().await;
    let receipt = "AQAAAQAAAAAAAAAAAAjfR-pMdAi6";
    let id = "a1a37668-0e97-458b-877e-e88f381fba7c";
    let held = format!("/nowhere/messages/{id}?popreceipt={receipt}&visibilitytimeout=0");

    for (method, target) in [
        ("POST", "/nowhere/messages"),
        ("GET", "/nowhere/messages"),
        ("GET", "/nowhere/messages?peekonly=true"),
        ("DELETE", "/nowhere/messages"),
        ("PUT", held.as_str()),
        ("DELETE", held.as_str()),
        ("PUT", "/nowhere/messages/id?popreceipt=x&visibilitytimeout=0"),
        ("DELETE", "/nowhere/messages/id?popreceipt=x"),
    ] {
        let response = rest.send(RestRequest::message(method, target, "text")).await;
        assert_eq!(response.failure(), (404, "QueueNotFound"), "{method} {target}");
        assert!(response.text().contains("The specified queue does not exist."), "{response:?}");
    }
}
