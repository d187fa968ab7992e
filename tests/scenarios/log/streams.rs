//! Creating, changing, listing and deleting streams.

use tonic::Code;
use trestle_proto::log::v1 as proto;
use trestle_tests::{World, log_record, log_scenario, seconds};

use super::{SECOND, an_hour};

log_scenario!(
    a_stream_is_created_once_and_has_the_settings_that_were_set,
    streams_are_listed_in_pages_and_deleted_with_their_records,
    rejects_names_and_settings_past_their_bounds,
);

async fn a_stream_is_created_once_and_has_the_settings_that_were_set(world: &World) {
    let stream = world.existing_log_stream("web.api");
    let settings = proto::LogStream {
        name: stream.name(),
        labels: [("team".to_owned(), "web".to_owned())].into(),
        retention: Some(seconds(3600)),
        roll_policy: Some(proto::RollPolicy { max_age: Some(seconds(60)), max_bytes: 1_000_000 }),
        promoted_attributes: vec![proto::PromotedAttribute {
            key: "http.status".to_owned(),
            r#type: proto::AttributeType::Int64.into(),
            is_indexed: true,
        }],
        create_time: None,
    };

    let created = stream.create(settings.clone()).await.unwrap();
    let again = stream.create(settings.clone()).await.unwrap();
    let other = proto::LogStream { retention: None, ..settings.clone() };
    let error = stream.create(other).await.unwrap_err();

    assert!(created.created && !again.created);
    let shown = stream.get().await.unwrap();
    assert_eq!(shown.stats, Some(proto::LogStreamStats::default()));
    let shown = shown.stream.unwrap();
    assert!(shown.create_time.is_some());
    assert_eq!(proto::LogStream { create_time: None, ..shown.clone() }, settings);
    assert_eq!(created.stream, Some(shown));
    assert_eq!(error.kind(), (Code::AlreadyExists, "LOG_STREAM_ALREADY_EXISTS"));

    let request = proto::UpdateStreamRequest {
        stream: Some(proto::LogStream { name: stream.name(), ..Default::default() }),
        update_mask: Some(prost_types::FieldMask { paths: vec!["retention".to_owned()] }),
    };
    let updated = stream.client().update_stream(request).await.unwrap().into_inner();
    let updated = updated.stream.unwrap();
    assert_eq!((updated.retention, updated.labels), (None, settings.labels));
}

async fn streams_are_listed_in_pages_and_deleted_with_their_records(world: &World) {
    for name in ["b", "a", "c"] {
        let stream = world.log_stream(name).await;
        stream.append(&[log_record(an_hour(), name)]).await.unwrap();
        stream.flush().await.unwrap();
        stream.append(&[log_record(an_hour() + SECOND, name)]).await.unwrap();
    }
    let list = async |page_token: String| {
        let request =
            proto::ListStreamsRequest { page_size: Some(2), page_token, ..Default::default() };
        let page = world.logs().list_streams(request).await.unwrap().into_inner();
        let names: Vec<_> = page.streams.into_iter().map(|stream| stream.name).collect();
        (names, page.next_page_token)
    };
    let (names, token) = list(String::new()).await;
    assert_eq!(names, ["a", "b"]);
    assert_eq!(list(token).await, (vec!["c".to_owned()], String::new()));

    let deleted = world.existing_log_stream("a");
    deleted.delete().await.unwrap();

    let not_found = (Code::NotFound, "LOG_STREAM_NOT_FOUND");
    assert_eq!(deleted.read().await.unwrap_err().kind(), not_found);
    assert_eq!(deleted.get().await.unwrap_err().kind(), not_found);
    assert_eq!(deleted.flush().await.unwrap_err().kind(), not_found);
    assert_eq!(deleted.segments().await.unwrap_err().kind(), not_found);
    assert_eq!(deleted.delete().await.unwrap_err().kind(), not_found);
    let error = deleted.append(&[log_record(an_hour(), "x")]).await.unwrap_err();
    assert_eq!(error.kind(), not_found);
    assert_eq!(list(String::new()).await.0, ["b", "c"]);
    let again = world.log_stream("a").await;
    assert_eq!(again.read().await.unwrap().records, []);
    assert_eq!(world.existing_log_stream("b").read().await.unwrap().records.len(), 2);
}

async fn rejects_names_and_settings_past_their_bounds(world: &World) {
    let stream = world.existing_log_stream("web");
    let create = async |settings: proto::LogStream| {
        let error = stream.create(settings).await.unwrap_err();
        (error.code, error.reason, error.fields)
    };
    let named = |name: &str| proto::LogStream { name: name.to_owned(), ..Default::default() };

    let field = |name: &str| vec![format!("stream.{name}")];
    let invalid = Code::InvalidArgument;
    for name in ["Web", "-web", "a/b", "a b"] {
        let expected = (invalid, "INVALID_RESOURCE_NAME".to_owned(), field("name"));
        assert_eq!(create(named(name)).await, expected, "{name}");
    }
    let too_long = create(named(&"a".repeat(129))).await;
    assert_eq!(too_long, (invalid, "OUT_OF_RANGE_INPUT".to_owned(), field("name")));
    let retention = proto::LogStream { retention: Some(seconds(59)), ..named("web") };
    let expected = (invalid, "OUT_OF_RANGE_INPUT".to_owned(), field("retention"));
    assert_eq!(create(retention).await, expected);
    assert!(world.logs().list_streams(proto::ListStreamsRequest::default()).await.is_ok());
}
