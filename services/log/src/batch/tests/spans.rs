//! Exports of OTLP traces: the records that spans and their events become, and which spans are rejected.

use trestle_proto::opentelemetry::proto::{
    common::v1::{InstrumentationScope, KeyValue},
    resource::v1::Resource,
    trace::v1::{
        ScopeSpans, Span, Status,
        span::{Event, Link, SpanKind},
        status::StatusCode,
    },
};

use super::*;

const SECOND: u64 = 1_000_000_000;

fn pair(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(text(value)) }
}

/// A root that took a second and a half.
fn root(name: &str) -> Span {
    Span {
        trace_id: vec![0xAB; 16].into(),
        span_id: vec![0xCD; 8].into(),
        name: name.to_owned(),
        start_time_unix_nano: NOW,
        end_time_unix_nano: NOW + 3 * SECOND / 2,
        ..Span::default()
    }
}

fn event(name: &str, time_unix_nano: u64) -> Event {
    Event { name: name.to_owned(), time_unix_nano, ..Event::default() }
}

fn link(trace: usize) -> Link {
    let (trace_id, span_id) = (vec![1; trace].into(), vec![2; 8].into());
    Link { trace_id, span_id, ..Link::default() }
}

fn with_status(code: StatusCode, message: &str) -> Span {
    let status = Status { code: code.into(), message: message.to_owned() };
    Span { status: Some(status), ..root("s") }
}

fn of_resource(spans: Vec<Span>) -> ResourceSpans {
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    ResourceSpans { scope_spans, ..ResourceSpans::default() }
}

/// The records of spans, and what is rejected.
fn exported(spans: Vec<Span>) -> (Vec<Record>, Rejected) {
    let (batch, rejected) = batch_of::<ResourceSpans>(&[of_resource(spans).encode_to_vec().into()]);
    let Some(batch) = batch else { return (Vec::new(), rejected) };
    let rows = BatchView::parse(&batch.bytes).unwrap().rows(0);
    (rows.map(|row| Record::decode(row.unwrap().record).unwrap()).collect(), rejected)
}

fn only(span: Span) -> Record {
    let (mut records, rejected) = exported(vec![span]);
    assert_eq!((records.len(), rejected), (1, Rejected::default()));
    records.remove(0)
}

fn names(records: &[Record]) -> Vec<String> {
    let name = |record: &Record| match &record.body.as_ref().unwrap().value {
        Some(Value::StringValue(name)) => name.clone(),
        other => panic!("{other:?}"),
    };
    records.iter().map(name).collect()
}

#[test]
fn a_span_is_a_record_with_its_duration() {
    let span = Span {
        flags: 0x301,
        dropped_attributes_count: 7,
        attributes: vec![pair("http.route", "/pay")],
        ..root("GET /pay")
    };

    let expected = Record {
        time_unix_nano: NOW,
        body: Some(text("GET /pay")),
        attributes: [("http.route".to_owned(), text("/pay"))].into(),
        dropped_attributes_count: 7,
        flags: 0x301,
        trace_id: vec![0xAB; 16].into(),
        span_id: vec![0xCD; 8].into(),
        value: Some(1.5),
        ..Record::default()
    };
    assert_eq!(only(span), expected);
    let instant = Span { end_time_unix_nano: NOW, ..root("") };
    assert_eq!(only(instant).value, Some(0.0));
}

#[test]
fn what_a_record_has_no_field_for_is_an_attribute() {
    let number = |value| AnyValue { value: Some(Value::IntValue(value)) };
    let span = Span {
        parent_span_id: vec![0x0F; 8].into(),
        trace_state: "vendor=1".to_owned(),
        dropped_events_count: 2,
        dropped_links_count: 3,
        ..root("s")
    };
    let expected = [
        ("otel.dropped_events_count", number(2)),
        ("otel.dropped_links_count", number(3)),
        ("parent_span_id", text("0f0f0f0f0f0f0f0f")),
        ("w3c.tracestate", text("vendor=1")),
    ];
    let expected = expected.map(|(key, value)| (key.to_owned(), value));
    assert_eq!(only(span).attributes, expected.into());
    // Some exporters write zeros for the parent of a root.
    let zeros = Span { parent_span_id: vec![0; 8].into(), ..root("s") };
    assert_eq!(only(zeros), only(root("s")));

    let kinds = [
        (SpanKind::Internal, "internal"),
        (SpanKind::Server, "server"),
        (SpanKind::Client, "client"),
        (SpanKind::Producer, "producer"),
        (SpanKind::Consumer, "consumer"),
    ];
    for (kind, name) in kinds {
        let record = only(Span { kind: kind.into(), ..root("s") });
        assert_eq!(record.attributes, [("span.kind".to_owned(), text(name))].into());
    }
}

#[test]
fn only_a_failed_span_has_a_severity() {
    let failed = only(with_status(StatusCode::Error, "no stock"));
    assert_eq!((failed.severity_number, failed.severity_text.as_str()), (17, "ERROR"));
    assert_eq!(failed.attributes["otel.status_code"], text("ERROR"));
    assert_eq!(failed.attributes["otel.status_description"], text("no stock"));

    let succeeded = only(with_status(StatusCode::Ok, ""));
    assert_eq!((succeeded.severity_number, succeeded.severity_text.as_str()), (0, ""));
    assert_eq!(succeeded.attributes, [("otel.status_code".to_owned(), text("OK"))].into());
    let unset = only(with_status(StatusCode::Unset, ""));
    assert_eq!((unset.severity_number, unset.attributes.len()), (0, 0));
}

#[test]
fn an_attribute_of_ours_replaces_none_of_a_span() {
    let attributes = vec![pair("span.kind", "mine"), pair("otel.status_code", "mine")];
    let span = Span {
        attributes,
        kind: SpanKind::Server.into(),
        ..with_status(StatusCode::Unset, "text")
    };

    let record = only(span);

    assert_eq!(record.attributes["span.kind"], text("server"));
    assert_eq!(record.attributes["exported_span.kind"], text("mine"));
    assert_eq!(record.attributes["otel.status_code"], text("mine"), "which is not stated");
    assert_eq!(record.attributes["otel.status_description"], text("text"));
}

#[test]
fn events_are_records_of_the_span_at_their_own_times() {
    let failure = Event {
        attributes: vec![pair("exception.type", "IOError")],
        dropped_attributes_count: 4,
        ..event("exception", NOW + 5)
    };
    let events = vec![failure, event("retry", 0)];

    let (records, rejected) = exported(vec![Span { events, flags: 1, ..root("s") }, root("t")]);

    assert_eq!(rejected, Rejected::default());
    assert_eq!(names(&records), ["s", "exception", "retry", "t"]);
    let expected = Record {
        time_unix_nano: NOW + 5,
        body: Some(text("exception")),
        event_name: "exception".to_owned(),
        attributes: [("exception.type".to_owned(), text("IOError"))].into(),
        dropped_attributes_count: 4,
        flags: 1,
        trace_id: vec![0xAB; 16].into(),
        span_id: vec![0xCD; 8].into(),
        ..Record::default()
    };
    assert_eq!(records[1], expected);
    assert_eq!(records[2].time_unix_nano, 0, "unknown, so that of the arrival");
}

#[test]
fn links_are_a_list_of_maps() {
    let described = Link { attributes: vec![pair("why", "retry")], ..link(16) };

    let record = only(Span { links: vec![link(16), described], ..root("s") });

    let mut links = String::new();
    let value = record.attributes["links"].encode_to_vec();
    crate::json::write_entry(&mut links, 0, "links", &value).unwrap();
    let ids = r#""trace_id":"01010101010101010101010101010101","span_id":"0202020202020202""#;
    let expected = format!(r#""links":[{{{ids}}},{{{ids},"attributes":{{"why":"retry"}}}}]"#);
    assert_eq!(links, expected);
}

#[test]
fn a_bad_span_is_rejected_with_its_events_and_no_other() {
    let large = vec![pair("large", &"x".repeat(RECORD_BYTES))];
    let bad = [
        (Span { trace_id: vec![1; 15].into(), ..root("") }, "trace_id: has 15 bytes, not 16"),
        (Span { trace_id: vec![0; 16].into(), ..root("") }, "trace_id: is all zero"),
        (Span { span_id: Bytes::new(), ..root("") }, "span_id: has 0 bytes, not 8"),
        (
            Span { start_time_unix_nano: NOW + DAY + 1, end_time_unix_nano: u64::MAX, ..root("") },
            "start_time_unix_nano: is out of range",
        ),
        (Span { attributes: large, ..root("") }, ": has 1048"),
    ];
    for (span, rule) in bad {
        let (records, rejected) = exported(vec![root("first"), span, root("last")]);
        assert_eq!((names(&records), rejected.count), (vec!["first".into(), "last".into()], 1));
        let text = rejected.message;
        let rest = text.strip_prefix("resource_spans[0].scope_spans[0].spans[1]").unwrap();
        assert!(rest.trim_start_matches('.').starts_with(rule), "{rule}: {text}");
    }
}

#[test]
fn a_span_whose_events_do_not_fit_into_the_request_is_rejected_whole() {
    // Each event is on a day of its own, and one day more than the rest of the request may have.
    let on_days = |days: u64| (1..=days).map(|day| event("e", NOW - day * DAY)).collect();
    let many = Span { events: on_days(1_000), ..root("many") };
    let most = Span { events: on_days(999), ..root("most") };

    let (records, rejected) = exported(vec![many, most, root("last")]);

    let rule = ".spans[0].time_unix_nano: is on a day too many";
    assert!(rejected.count == 1 && rejected.message.contains(rule), "{rejected:?}");
    assert_eq!(records.len(), 1_001);

    // A request of 9 MB: the records of a span are bounded together.
    let large = Event { attributes: vec![pair("k", &"x".repeat(900_000))], ..event("e", NOW) };
    let (records, rejected) =
        exported(vec![Span { events: vec![large; 10], ..root("large") }, root("last")]);
    assert_eq!((names(&records), rejected.count), (vec!["last".to_owned()], 1));
    assert!(rejected.message.contains("over 8323072 bytes"), "{}", rejected.message);
}

#[test]
fn each_event_counts_as_read_with_its_resource() {
    // Each record is read with 60 KB: 3,000 would be 180 MB in memory.
    let resource = Resource { attributes: vec![pair("r", &"x".repeat(60_000))], ..<_>::default() };
    let spans = |count: usize| {
        let events = vec![event("e", NOW); count];
        let spans = of_resource(vec![Span { events, ..root("s") }]);
        let request = ResourceSpans { resource: Some(resource.clone()), ..spans };
        batch_of::<ResourceSpans>(&[request.encode_to_vec().into()])
    };

    let (batch, rejected) = spans(2_000);
    assert_eq!((batch.map(|batch| batch.records), rejected.count), (Some(2_001), 0));
    let (batch, rejected) = spans(3_000);
    assert_eq!((batch, rejected.count), (None, 1));
    assert!(rejected.message.contains("with resource and scope"), "{}", rejected.message);
}

#[test]
fn a_malformed_scope_rejects_its_spans_and_a_resource_without_spans_has_no_stream() {
    let scope = InstrumentationScope { attributes: vec![pair("~", "")], ..<_>::default() };
    let mut request = of_resource(vec![root("a"), root("b")]);
    request.scope_spans[0].scope = Some(scope);
    request.scope_spans.extend(of_resource(vec![root("c")]).scope_spans);

    let (batch, rejected) = batch_of::<ResourceSpans>(&[not_utf8(&request)]);

    assert_eq!((batch.unwrap().records, rejected.count), (1, 2));
    assert!(
        rejected.message.starts_with("resource_spans[0].scope_spans[0].scope.attributes"),
        "{}",
        rejected.message
    );
    let requests = [of_resource(vec![root("a")]), of_resource(vec![]), <_>::default()];
    let requests = requests.map(|it| it.encode_to_vec().into());
    let streams = resources_by_stream::<ResourceSpans>(&requests, stream_of_resource).unwrap();
    assert_eq!(streams.get("unknown_service").map(Vec::len), Some(1));
    assert_eq!(streams.len(), 1);
}

#[test]
fn texts_that_are_not_utf8_reject_their_span_only() {
    let bad =
        |span| ResourceSpans { scope_spans: of_resource(vec![span]).scope_spans, ..<_>::default() };
    let with_event = Span { events: vec![event("~", NOW)], ..root("s") };
    let with_attribute = Span { attributes: vec![pair("k", "~")], ..root("s") };
    let mut request = of_resource(vec![root("~"), with_event, with_attribute, root("kept")]);
    request.scope_spans.extend(bad(root("~")).scope_spans);
    let first = of_resource(vec![root("first")]).encode_to_vec().into();

    let (batch, rejected) = batch_of::<ResourceSpans>(&[first, not_utf8(&request)]);

    assert_eq!((batch.unwrap().records, rejected.count), (2, 4), "{}", rejected.message);
    for at in ["[0].spans[0]", "[0].spans[1]", "[0].spans[2]", "[1].spans[0]"] {
        let text = format!("resource_spans[1].scope_spans{at}: ");
        assert!(rejected.message.contains(&text), "{text}: {}", rejected.message);
    }
    assert_eq!(rejected.message.matches("data is not UTF-8 encoded").count(), 4);
}

/// An id of a length that is right or wrong, in one case of some all zero.
fn id(length: usize) -> impl Strategy<Value = Bytes> {
    let lengths = prop_oneof![6 => Just(length), 1 => Just(0), 1 => Just(length - 1)];
    let byte = prop_oneof![6 => 1_u8.., 1 => Just(0)];
    (lengths, byte).prop_map(|(length, byte)| vec![byte; length].into())
}

fn span() -> impl Strategy<Value = Span> {
    let ids = (id(16), id(8), prop_oneof![2 => Just(Bytes::new()), 1 => id(8)]);
    let time = || prop_oneof![1 => Just(0), 9 => NOW - 5..NOW + 5, 1 => Just(NOW + 2 * DAY)];
    let event = (time(), samples::attributes()).prop_map(|(at, attributes)| Event {
        attributes: attributes.into_iter().map(samples::entry).collect(),
        ..event("e", at)
    });
    let events = proptest::collection::vec(event, 0..3);
    let links = proptest::collection::vec((id(16), id(8)), 0..2);
    (ids, time(), time(), -1..8_i32, proptest::option::of(-1..5_i32), events, links).prop_map(
        |(ids, start_time_unix_nano, end_time_unix_nano, kind, code, events, links)| Span {
            trace_id: ids.0,
            span_id: ids.1,
            parent_span_id: ids.2,
            start_time_unix_nano,
            end_time_unix_nano,
            kind,
            status: code.map(|code| Status { code, ..Status::default() }),
            events,
            links: links
                .into_iter()
                .map(|(trace_id, span_id)| Link { trace_id, span_id, ..Link::default() })
                .collect(),
            ..root("s")
        },
    )
}

/// The rules, on a span whose attributes keep theirs.
fn span_keeps_rules(span: &Span) -> bool {
    let is_id = |id: &[u8], length| id.len() == length && id.iter().any(|byte| *byte != 0);
    is_id(&span.trace_id, 16) && is_id(&span.span_id, 8) && time_of(span) <= NOW + DAY
}

fn time_of(span: &Span) -> u64 {
    match (span.start_time_unix_nano, span.end_time_unix_nano) {
        (0, end) => end,
        (start, _) => start,
    }
}

proptest! {
    #[test]
    fn spans_with_their_ids_are_stored_with_their_valid_events_and_others_are_counted(
        spans in proptest::collection::vec(span(), 1..5),
    ) {
        let (records, rejected) = exported(spans.clone());

        let kept: Vec<_> = spans.iter().filter(|span| span_keeps_rules(span)).collect();
        prop_assert_eq!(kept.len() as u64 + rejected.count, spans.len() as u64, "{}", rejected.message);
        let is_valid = |event: &&Event| event.time_unix_nano <= NOW + DAY;
        let events = |span: &&Span| span.events.iter().filter(is_valid).count();
        prop_assert_eq!(records.len(), kept.len() + kept.iter().map(events).sum::<usize>());
        let stored: Vec<_> = records.iter().filter(|record| record.value.is_some()).collect();
        prop_assert_eq!(stored.len(), kept.len());
        for (record, span) in stored.iter().zip(kept) {
            prop_assert_eq!(&record.trace_id, &span.trace_id);
            prop_assert_eq!(record.time_unix_nano, time_of(span));
        }
    }
}
