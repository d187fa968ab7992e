//! The settings of the queue service for an account. Their rules are those of tables, whose scenarios cover them all.

use tonic::Code;
use trestle_proto::queue::v1::SetServicePropertiesRequest;
use trestle_proto::service::v1::{Cors, CorsRule, Logging, Metrics, ServiceProperties};
use trestle_tests::{World, queue_scenario, seconds};

queue_scenario!(
    queue_properties_have_defaults_and_keep_unset_parts,
    queue_and_table_properties_are_separate,
    invalid_queue_properties_change_nothing,
    rejects_queue_cors_rules_that_xml_cannot_express,
);

fn logging(write: bool) -> Logging {
    Logging { version: "1.0".to_owned(), write, ..Default::default() }
}

fn metrics(enabled: bool) -> Metrics {
    Metrics { version: "1.0".to_owned(), enabled, ..Default::default() }
}

fn rule() -> CorsRule {
    CorsRule {
        allowed_origins: vec!["https://example.com".to_owned()],
        allowed_methods: vec!["GET".to_owned()],
        max_age: Some(seconds(60)),
        ..Default::default()
    }
}

fn defaults() -> ServiceProperties {
    ServiceProperties {
        logging: Some(logging(false)),
        hour_metrics: Some(metrics(false)),
        minute_metrics: Some(metrics(false)),
        cors: Some(Cors::default()),
    }
}

async fn queue_properties_have_defaults_and_keep_unset_parts(world: &World) {
    assert_eq!(world.queue_properties().await.unwrap(), defaults());

    let cors = Some(Cors { rules: vec![rule()] });
    let first = ServiceProperties { cors: cors.clone(), ..Default::default() };
    world.set_queue_properties(first).await.unwrap();
    let hour =
        Metrics { include_apis: true, retention: Some(seconds(7 * 86_400)), ..metrics(true) };
    let second = ServiceProperties { hour_metrics: Some(hour.clone()), ..Default::default() };
    world.set_queue_properties(second).await.unwrap();

    let expected = ServiceProperties { cors, hour_metrics: Some(hour), ..defaults() };
    assert_eq!(world.queue_properties().await.unwrap(), expected);
    let none = ServiceProperties { cors: Some(Cors::default()), ..Default::default() };
    world.set_queue_properties(none).await.unwrap();
    let expected = ServiceProperties { cors: Some(Cors::default()), ..expected };
    assert_eq!(world.queue_properties().await.unwrap(), expected, "no rules clear them");
}

async fn queue_and_table_properties_are_separate(world: &World) {
    let logged = ServiceProperties { logging: Some(logging(true)), ..Default::default() };

    world.set_queue_properties(logged).await.unwrap();

    assert_eq!(world.queue_properties().await.unwrap().logging, Some(logging(true)));
    assert_eq!(world.properties().await.unwrap().logging, Some(logging(false)));
}

async fn invalid_queue_properties_change_nothing(world: &World) {
    let six = Cors { rules: vec![rule(); 6] };
    let six = ServiceProperties { cors: Some(six), ..Default::default() };
    let other = Logging { version: "2.0".to_owned(), ..logging(true) };
    let other = ServiceProperties { logging: Some(other), ..Default::default() };
    for (change, reason, field) in [
        (six, "INVALID_CORS_RULE", "properties.cors.rules"),
        (other, "INVALID_SERVICE_PROPERTY", "properties.logging.version"),
    ] {
        let rejected = world.set_queue_properties(change).await.unwrap_err();
        assert_eq!(rejected.kind(), (Code::InvalidArgument, reason));
        assert_eq!(rejected.fields, [field]);
    }
    let absent = SetServicePropertiesRequest { properties: None };
    let rejected = world.queues().set_service_properties(absent).await.unwrap_err();
    let rejected = trestle_tests::CallError::of(&rejected);
    assert_eq!(rejected.kind(), (Code::InvalidArgument, "PROPERTIES_NEED_VALUE"));
    assert_eq!(rejected.fields, ["properties"]);
    assert_eq!(world.queue_properties().await.unwrap(), defaults());
}

async fn rejects_queue_cors_rules_that_xml_cannot_express(world: &World) {
    let most = i64::from(u32::MAX);
    let lasting = |age: i64| CorsRule { max_age: Some(seconds(age)), ..rule() };
    let set = async |rule: CorsRule| {
        let cors = Some(Cors { rules: vec![rule] });
        world.set_queue_properties(ServiceProperties { cors, ..Default::default() }).await
    };
    set(lasting(most)).await.unwrap();
    let before = world.queue_properties().await.unwrap();

    for odd in ["a,b", "", " a", "a ", "a\u{1}"] {
        let list = vec![odd.to_owned()];
        let origins = CorsRule { allowed_origins: list.clone(), ..rule() };
        let allowed = CorsRule { allowed_headers: list.clone(), ..rule() };
        let exposed = CorsRule { exposed_headers: list, ..rule() };
        for (rule, name) in [
            (origins, "allowed_origins"),
            (allowed, "allowed_headers"),
            (exposed, "exposed_headers"),
        ] {
            let rejected = set(rule).await.unwrap_err();
            assert_eq!(rejected.kind(), (Code::InvalidArgument, "INVALID_INPUT"), "{name} {odd:?}");
            assert_eq!(rejected.fields, [format!("properties.cors.rules[0].{name}")]);
        }
    }
    let rejected = set(lasting(most + 1)).await.unwrap_err();
    assert_eq!(rejected.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    assert_eq!(rejected.fields, ["properties.cors.rules[0].max_age"]);
    assert!(rejected.message.contains("4294967296"), "{}", rejected.message);
    assert_eq!(world.queue_properties().await.unwrap(), before);
}
