//! Requests on messages at the bounds of every rule, with the field that an error names.

use trestle_proto::queue::v1::{OutgoingMessage, ReceiptRef};

use super::*;
use crate::{receipt::Receipt, slot::Slot};

const DAY: i64 = 24 * 3600;

fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    nanos(seconds, 0)
}

fn nanos(seconds: i64, nanos: i32) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos })
}

fn text(text: &str) -> OutgoingMessage {
    OutgoingMessage { body: Some(Body::Text(text.to_owned())), ..Default::default() }
}

fn send_of(messages: Vec<OutgoingMessage>) -> Result<Send, Fault> {
    send(proto::SendMessagesRequest { queue: "orders".to_owned(), messages, ..Default::default() })
}

/// The one message of a send.
fn sent(message: OutgoingMessage) -> Attempt {
    send_of(vec![message]).expect("the request as a whole").messages.remove(0)
}

/// The fields that an error names, with the reason of each.
fn named(fault: &Fault) -> Vec<(&str, Reason)> {
    fault.violations.iter().map(|it| (it.field.as_str(), it.reason)).collect()
}

/// A receipt that is well-formed.
fn receipt() -> String {
    let slot =
        Slot { visible_at: trestle_model::time::Ticks::new(5).expect("a time"), sequence: 7 };
    Receipt { slot, generation: 3, nonce: 9, is_in_group: false }.to_text()
}

fn reference(pop_receipt: &str) -> ReceiptRef {
    ReceiptRef { message_id: "id".to_owned(), pop_receipt: pop_receipt.to_owned() }
}

#[test]
fn a_send_has_one_to_a_hundred_messages() {
    assert_eq!(send_of(vec![text(""); 100]).expect("a full one").messages.len(), 100);
    for count in [0, 101] {
        let fault = send_of(vec![text(""); count]).expect_err("rejected");
        assert_eq!(named(&fault), [("messages", Reason::InvalidInput)]);
        assert!(fault.message.contains(&format!("count=`{count}`")), "{}", fault.message);
    }
}

#[test]
fn the_bodies_of_a_send_have_4_mib_together() {
    let body = "x".repeat(65_536);
    assert!(send_of(vec![text(&body); 64]).is_ok());

    let mut messages = vec![text(&body); 64];
    messages.push(text("x"));
    let fault = send_of(messages).expect_err("a byte too many");
    assert_eq!(named(&fault), [("messages", Reason::RequestBodyTooLarge)]);
}

#[test]
fn a_message_that_is_rejected_leaves_the_others() {
    let large = "x".repeat(65_537);
    let no_body = OutgoingMessage::default();
    let mut send = send_of(vec![text("a"), text(&large), no_body, text("b")]).expect("a send");

    let faults: Vec<Fault> = send.messages.drain(1..3).filter_map(Result::err).collect();
    assert_eq!(named(&faults[0]), [("messages[1].body", Reason::RequestBodyTooLarge)]);
    assert!(faults[0].message.contains("bytes=`65537`"), "{}", faults[0].message);
    assert_eq!(named(&faults[1]), [("messages[2].body", Reason::PropertiesNeedValue)]);
    assert_eq!(send.messages.iter().filter(|message| message.is_ok()).count(), 2);
}

#[test]
fn a_message_keeps_the_form_of_its_body() {
    let text = sent(text("é")).expect("a text");
    assert_eq!(text.payload, Payload::Text("é".into()));
    let data =
        OutgoingMessage { body: Some(Body::Data(vec![0, 255].into())), ..Default::default() };
    let data = sent(data).expect("bytes");
    assert_eq!(data.payload, Payload::Data(vec![0, 255].into()));
}

#[test]
fn a_message_expires_after_a_week_unless_it_has_another_time_to_live() {
    let of = |expiration| {
        sent(OutgoingMessage { expiration, ..text("a") }).map(|message| message.time_to_live)
    };
    let ttl = |value: Option<prost_types::Duration>| of(value.map(Expiration::TimeToLive));

    assert_eq!(of(None).expect("a message"), Some(Duration::from_secs(7 * 24 * 3600)));
    assert_eq!(of(Some(Expiration::NeverExpires(proto::NoExpiry {}))).expect("a message"), None);
    assert_eq!(ttl(seconds(1)).expect("a message"), Some(Duration::from_secs(1)));
    assert_eq!(
        ttl(seconds(3650 * DAY)).expect("a message"),
        Some(Duration::from_secs(315_360_000))
    );
    for value in
        [seconds(0), nanos(0, 999_999_999), seconds(-1), nanos(1, -1), nanos(1, 1_000_000_000)]
    {
        let fault = ttl(value).expect_err("rejected");
        let expected = [("messages[0].time_to_live", Reason::OutOfRangeQueryParameterValue)];
        assert_eq!(named(&fault), expected, "{value:?}");
    }
    let malformed = ttl(nanos(1, -1)).expect_err("rejected").to_string();
    assert!(malformed.contains("value=`seconds: 1, nanos: -1`"), "{malformed}");
}

#[test]
fn a_delay_is_at_most_a_week_and_less_than_the_time_to_live() {
    let of = |delay, time_to_live: Option<prost_types::Duration>| {
        let expiration = time_to_live.map(Expiration::TimeToLive);
        sent(OutgoingMessage { visibility_delay: delay, expiration, ..text("a") })
    };
    let forever = |delay| {
        let expiration = Some(Expiration::NeverExpires(proto::NoExpiry {}));
        sent(OutgoingMessage { visibility_delay: delay, expiration, ..text("a") })
    };

    assert_eq!(of(None, None).expect("a message").delay, Duration::ZERO);
    assert_eq!(of(seconds(9), seconds(10)).expect("a message").delay, Duration::from_secs(9));
    assert_eq!(forever(seconds(7 * DAY)).expect("a message").delay, Duration::from_secs(604_800));
    for fault in [forever(seconds(7 * DAY + 1)), forever(nanos(7 * DAY, 1)), forever(seconds(-1))] {
        let fault = fault.expect_err("out of range");
        let expected = [("messages[0].visibility_delay", Reason::OutOfRangeQueryParameterValue)];
        assert_eq!(named(&fault), expected);
    }
    for (delay, ttl) in [(10, 10), (11, 10)] {
        let fault = of(seconds(delay), seconds(ttl)).expect_err("it expires before it is visible");
        let expected = [("messages[0].visibility_delay", Reason::InvalidQueryParameterValue)];
        assert_eq!(named(&fault), expected);
        let both = format!("visibility_delay=`{delay}s`, time_to_live=`{ttl}s`");
        assert!(fault.message.contains(&both), "{}", fault.message);
    }
    let week = of(seconds(7 * DAY), None).expect_err("the default time to live is a week too");
    assert_eq!(named(&week).len(), 1);
}

#[test]
fn ids_and_groups_have_bounded_bytes_and_empty_ones_are_absent() {
    let message = |id: &str, group: &str| OutgoingMessage {
        deduplication_id: id.to_owned(),
        ordering_group: group.to_owned(),
        ..text("a")
    };
    let empty = sent(message("", "")).expect("a message");
    assert_eq!((empty.deduplication_id, empty.group), (None, None));
    let longest = "é".repeat(64);
    let full = sent(message(&longest, &longest)).expect("128 bytes each");
    assert_eq!(full.deduplication_id, Some(longest.clone()));
    assert_eq!(full.group, Some(longest.clone()));

    let long = longest + "x";
    let fault = sent(message(&long, &long)).expect_err("129 bytes each");
    let fields = ["messages[0].deduplication_id", "messages[0].ordering_group"];
    assert_eq!(named(&fault), fields.map(|field| (field, Reason::InvalidInput)));
}

#[test]
fn every_violation_of_a_message_is_reported() {
    let broken = OutgoingMessage {
        visibility_delay: seconds(-1),
        expiration: seconds(0).map(Expiration::TimeToLive),
        deduplication_id: "x".repeat(129),
        ..Default::default()
    };
    let fault = sent(broken).expect_err("rejected");
    let fields: Vec<&str> = named(&fault).into_iter().map(|(field, _)| field).collect();
    let expected = ["body", "visibility_delay", "time_to_live", "deduplication_id"];
    assert_eq!(fields, expected.map(|name| format!("messages[0].{name}")));
}

#[test]
fn a_send_names_a_queue_and_may_have_a_request_id() {
    let request = |queue: &str, id: String| proto::SendMessagesRequest {
        queue: queue.to_owned(),
        request_id: id,
        messages: vec![text("a")],
    };
    let named_send = send(request("orders", "r".repeat(64))).expect("a send");
    assert_eq!(named_send.queue.as_str(), "orders");
    assert_eq!(named_send.request_id, Some("r".repeat(64)));
    assert_eq!(send(request("orders", String::new())).expect("a send").request_id, None);

    let fault = send(request("Orders", "r".repeat(65))).expect_err("both are rejected");
    let fields: Vec<&str> = named(&fault).into_iter().map(|(field, _)| field).collect();
    assert_eq!(fields, ["queue", "request_id"]);
}

#[test]
fn a_receive_has_the_defaults_of_azure_and_bounds() {
    let request = |max_messages, visibility_timeout, wait| proto::ReceiveMessagesRequest {
        queue: "orders".to_owned(),
        max_messages,
        visibility_timeout,
        wait,
    };
    let (_, plain) = receive(request(None, None, None)).expect("a receive");
    assert_eq!((plain.max, plain.wait), (1, Duration::ZERO));
    assert_eq!(plain.visibility_timeout, Duration::from_secs(30));
    let (_, most) = receive(request(Some(32), seconds(7 * DAY), seconds(20))).expect("a receive");
    assert_eq!((most.max, most.wait), (32, Duration::from_secs(20)));
    assert_eq!(most.visibility_timeout, Duration::from_secs(604_800));

    for (request, field) in [
        (request(Some(0), None, None), "max_messages"),
        (request(Some(33), None, None), "max_messages"),
        (request(None, seconds(0), None), "visibility_timeout"),
        (request(None, nanos(7 * DAY, 1), None), "visibility_timeout"),
        (request(None, None, nanos(20, 1)), "wait"),
        (request(None, None, seconds(-1)), "wait"),
    ] {
        let fault = receive(request).expect_err(field);
        assert_eq!(named(&fault), [(field, Reason::OutOfRangeQueryParameterValue)]);
    }
}

#[test]
fn an_update_needs_a_receipt_and_a_timeout() {
    let request = |pop_receipt: &str, visibility_timeout| proto::UpdateMessageRequest {
        queue: "orders".to_owned(),
        receipt: Some(reference(pop_receipt)),
        visibility_timeout,
        ..Default::default()
    };
    let (_, at_once) = update(request(&receipt(), seconds(0))).expect("a queue");
    let at_once = at_once.expect("an update");
    assert_eq!((at_once.visibility_timeout, at_once.payload.is_none()), (Duration::ZERO, true));

    let (_, empty) = update(request("", None)).expect("a queue");
    let required = Reason::MissingRequiredQueryParameter;
    let expected = [("receipt.pop_receipt", required), ("visibility_timeout", required)];
    assert_eq!(named(&empty.expect_err("both are missing")), expected);
    let (_, malformed) = update(request("not-a-receipt", seconds(7 * DAY + 1))).expect("a queue");
    let malformed = malformed.expect_err("both are rejected");
    let expected = [
        ("receipt.pop_receipt", Reason::InvalidQueryParameterValue),
        ("visibility_timeout", Reason::OutOfRangeQueryParameterValue),
    ];
    assert_eq!(named(&malformed), expected);
    let bad_queue = proto::UpdateMessageRequest { queue: "-".to_owned(), ..request("", None) };
    assert_eq!(named(&update(bad_queue).expect_err("a bad name"))[0].0, "queue");
}

#[test]
fn a_delete_reports_each_malformed_receipt() {
    let valid = receipt();
    let of = |receipts: Vec<ReceiptRef>| {
        delete(proto::DeleteMessagesRequest { queue: "orders".to_owned(), receipts })
    };
    let cut = &valid[1..];
    let padded = format!("{}=", &valid[1..]);
    let texts = [valid.as_str(), "", cut, padded.as_str(), "ééééééééééééééé"];
    let (_, parsed) = of(texts.map(reference).to_vec()).expect("a delete");

    assert!(parsed[0].is_ok());
    for (index, result) in parsed.iter().enumerate().skip(1) {
        let fault = result.as_ref().expect_err("malformed");
        assert_eq!(named(fault)[0].0, format!("receipts[{index}].pop_receipt"));
    }
    for count in [0, 101] {
        let fault = of(vec![reference(&valid); count]).expect_err("rejected");
        assert_eq!(named(&fault), [("receipts", Reason::InvalidInput)]);
    }
}

#[test]
fn a_redrive_moves_to_another_queue() {
    let of = |destination: &str, max_messages| {
        let (queue, destination) = ("dead".to_owned(), destination.to_owned());
        redrive(proto::RedriveMessagesRequest { queue, destination, max_messages })
    };
    let (_, destination, max) = of("", None).expect("to where each came from");
    assert_eq!((destination.is_none(), max), (true, 1000));
    let (_, destination, max) = of("orders", Some(1)).expect("a redrive");
    assert_eq!((destination.expect("a queue").as_str(), max), ("orders", 1));

    for (destination, max, field) in [
        ("dead", None, "destination"),
        ("Dead", None, "destination"),
        ("", Some(0), "max_messages"),
        ("", Some(1001), "max_messages"),
    ] {
        assert_eq!(named(&of(destination, max).expect_err(field))[0].0, field, "{destination}");
    }
}
