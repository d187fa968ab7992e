use super::*;

/// The fields that a request violates.
fn violated<T>(parsed: Result<T, Fault>) -> Vec<String> {
    let violations = parsed.err().map(|fault| fault.violations).unwrap_or_default();
    violations.into_iter().map(|violation| violation.field).collect()
}

fn seconds(seconds: i64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds, nanos: 0 })
}

fn stream() -> proto::LogStream {
    proto::LogStream { name: "web".to_owned(), ..proto::LogStream::default() }
}

#[test]
fn a_stream_has_defaults_and_every_bound_is_reported_by_its_field() {
    let (name, plain) = settings(Some(stream())).expect("valid");
    assert_eq!((name.as_str(), plain), ("web", crate::stream::StreamSettings::default()));

    let policy = |max_age, max_bytes| Some(proto::RollPolicy { max_age, max_bytes });
    let attribute = |key: &str, kind: proto::AttributeType| proto::PromotedAttribute {
        key: key.to_owned(),
        r#type: kind.into(),
        is_indexed: false,
    };
    let broken = proto::LogStream {
        name: "Web".to_owned(),
        labels: [("".to_owned(), "x".repeat(1025))].into(),
        retention: seconds(59),
        roll_policy: policy(seconds(0), 65_535),
        promoted_attributes: vec![
            attribute("", proto::AttributeType::String),
            attribute("a", proto::AttributeType::Unspecified),
            attribute("b", proto::AttributeType::Bool),
            attribute("b", proto::AttributeType::Int64),
        ],
        create_time: None,
    };
    assert_eq!(
        violated(settings(Some(broken))),
        [
            "stream.name",
            "stream.labels[\"\"]",
            "stream.labels[\"\"]",
            "stream.retention",
            "stream.roll_policy.max_age",
            "stream.roll_policy.max_bytes",
            "stream.promoted_attributes[0].key",
            "stream.promoted_attributes[1].type",
            "stream.promoted_attributes[3].key",
        ]
    );
    assert_eq!(violated(settings(None)), ["stream", "stream.name"]);

    for (retention, age, bytes) in [(60, 1, 65_536), (36_500 * 86_400, 86_400, 268_435_456)] {
        let stream = proto::LogStream {
            retention: seconds(retention),
            roll_policy: policy(seconds(age), bytes),
            ..stream()
        };
        settings(Some(stream)).expect("at the bound");
    }
    let past = proto::LogStream {
        retention: seconds(36_500 * 86_400 + 1),
        roll_policy: policy(seconds(86_401), 268_435_457),
        labels: (0..33).map(|label| (label.to_string(), String::new())).collect(),
        promoted_attributes: vec![attribute("a", proto::AttributeType::Bool); 17],
        ..stream()
    };
    let fields = violated(settings(Some(past)));
    for field in [
        "stream.retention",
        "stream.roll_policy.max_age",
        "stream.roll_policy.max_bytes",
        "stream.labels",
        "stream.promoted_attributes",
    ] {
        assert!(fields.iter().any(|found| found == field), "{field}: {fields:?}");
    }
}

#[test]
fn a_malformed_duration_is_rejected_as_it_was_given() {
    for (seconds, nanos, shown) in [
        (5, 0, "value=`5s`"),
        (-1, 0, "value=`-1s`"),
        (0, i32::MAX, "value=`seconds: 0, nanos: 2147483647`"),
        (i64::MIN, i32::MIN, "value=`seconds: -9223372036854775808, nanos: -2147483648`"),
    ] {
        let given = Some(prost_types::Duration { seconds, nanos });
        let policy = proto::RollPolicy { max_age: given, max_bytes: 0 };
        let changed = proto::LogStream { retention: given, ..stream() };
        let text = settings(Some(changed)).expect_err(shown).to_string();
        assert!(text.contains(shown), "{text}");
        let changed = proto::LogStream { roll_policy: Some(policy), ..stream() };
        match settings(Some(changed)) {
            Ok(_) => assert_eq!((seconds, nanos), (5, 0)),
            Err(fault) => assert!(fault.to_string().contains(shown), "{fault}"),
        }
    }
}

#[test]
fn an_update_changes_what_its_mask_names() {
    let request = |paths: &[&str]| proto::UpdateStreamRequest {
        stream: Some(proto::LogStream { retention: seconds(60), ..stream() }),
        update_mask: Some(prost_types::FieldMask {
            paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        }),
    };
    let (_, change) = settings_change(request(&["retention", "labels"])).expect("valid");
    assert_eq!(change.retention, Some(Some(Duration::from_secs(60))));
    assert_eq!(change.labels, Some([].into()));
    assert!(change.roll.is_none() && change.promoted.is_none());

    assert_eq!(violated(settings_change(request(&[]))), ["update_mask"]);
    assert_eq!(violated(settings_change(request(&["labels", "name"]))), ["update_mask.paths[1]"]);
}

#[test]
fn pages_request_ids_and_times_have_bounds() {
    let list = |page_size| proto::ListStreamsRequest { page_size, ..Default::default() };
    assert_eq!(list_streams(list(None)).expect("valid").page_size, 1000);
    assert_eq!(list_streams(list(Some(1))).expect("valid").page_size, 1);
    for size in [0, -1, 1001] {
        assert_eq!(violated(list_streams(list(Some(size)))), ["page_size"]);
    }

    let mut violations = Violations::default();
    assert_eq!(request_id(String::new(), &mut violations), None);
    assert!(request_id("a".repeat(64), &mut violations).is_some() && violations.is_empty());
    request_id("a".repeat(65), &mut violations);
    assert_eq!(violated(violations.check(())), ["request_id"]);

    let mut violations = Violations::default();
    let time = |seconds, nanos| Some(prost_types::Timestamp { seconds, nanos });
    assert_eq!(times(None, None, &mut violations), 0..u64::MAX);
    assert_eq!(times(time(-5, 1), time(2, 3), &mut violations), 0..2_000_000_003);
    assert_eq!(times(None, time(i64::MAX, 0), &mut violations), 0..u64::MAX);
    assert!(violations.is_empty());
    let _ = times(time(0, -1), time(0, 1_000_000_000), &mut violations);
    assert_eq!(violated(violations.check(())), ["start_time", "end_time"]);
}
