//! Access policies of a table, service properties and statistics.

use prost_types::{Duration, Timestamp};
use tonic::Code;
use trestle_model::limits;
use trestle_proto::service::v1::{
    AccessPolicy, Cors, CorsRule, Durability, Logging, Metrics, ServiceProperties,
};
use trestle_tests::{World, entity, scenario};

scenario!(
    table_access_policies_round_trip,
    access_policies_are_validated,
    service_properties_have_defaults_and_keep_unset_parts,
    service_properties_are_validated,
    cors_rules_are_validated,
    stats_report_durability_and_engine,
);

const MALFORMED: (Code, &str) = (Code::InvalidArgument, "INVALID_ACCESS_POLICY");
const MALFORMED_RULE: (Code, &str) = (Code::InvalidArgument, "INVALID_CORS_RULE");
const DAY: i64 = 86_400;

fn policy(id: &str) -> AccessPolicy {
    AccessPolicy { id: id.to_owned(), ..Default::default() }
}

async fn table_access_policies_round_trip(world: &World) {
    let table = world.table("shared").await;
    let other = world.table("other").await;
    assert_eq!(table.policies().await.unwrap(), []);
    let full = AccessPolicy {
        start_time: Some(Timestamp { seconds: 1_767_268_800, nanos: 123_456_700 }),
        expiry_time: Some(Timestamp { seconds: 1_798_804_800, nanos: 0 }),
        permissions: Some("raud".to_owned()),
        ..policy("writer")
    };
    let empty_permissions = AccessPolicy { permissions: Some(String::new()), ..policy("nothing") };
    let all = vec![full, policy("bare"), empty_permissions];

    table.set_policies(all.clone()).await.unwrap();

    assert_eq!(table.policies().await.unwrap(), all);
    assert_eq!(other.policies().await.unwrap(), [], "of one table only");
    table.set_policies(vec![policy("only")]).await.unwrap();
    assert_eq!(table.policies().await.unwrap(), [policy("only")]);
    table.set_policies(Vec::new()).await.unwrap();
    assert_eq!(table.policies().await.unwrap(), []);
}

async fn access_policies_are_validated(world: &World) {
    let table = world.table("policies").await;
    let numbered = |count: usize| (0..count).map(|n| policy(&n.to_string())).collect();
    let longest = "é".repeat(limits::ACCESS_POLICY_ID_CHARS_MAX);
    let mut most: Vec<_> = numbered(limits::ACCESS_POLICIES_MAX);
    most[0].id.clone_from(&longest);
    table.set_policies(most.clone()).await.unwrap();

    let permitted = |permissions: &str| AccessPolicy {
        permissions: Some(permissions.to_owned()),
        ..policy("a")
    };
    let from = |seconds, nanos| AccessPolicy {
        start_time: Some(Timestamp { seconds, nanos }),
        ..policy("a")
    };
    for (policies, field) in [
        (numbered(limits::ACCESS_POLICIES_MAX + 1), "policies"),
        (vec![policy("")], "policies[0].id"),
        (vec![policy(&format!("{longest}x"))], "policies[0].id"),
        (vec![policy("a"), policy("b"), policy("a")], "policies[2].id"),
        (vec![permitted("rx")], "policies[0].permissions"),
        (vec![permitted("ar")], "policies[0].permissions"),
        (vec![permitted("rr")], "policies[0].permissions"),
        (vec![from(i64::MAX, 0)], "policies[0].start_time"),
        (vec![from(0, 1)], "policies[0].start_time"),
    ] {
        let rejected = table.set_policies(policies).await.unwrap_err();
        assert_eq!(rejected.kind(), MALFORMED);
        assert_eq!(rejected.fields, [field]);
    }
    let rejected = table.set_policies(vec![policy("a\u{1}")]).await.unwrap_err();
    assert_eq!(rejected.kind(), (Code::InvalidArgument, "INVALID_INPUT"));
    assert_eq!(rejected.fields, ["policies[0].id"]);
    for permissions in ["r", "a", "ad", "ru", "aud"] {
        table.set_policies(vec![permitted(permissions)]).await.unwrap();
    }
}

fn logging(write: bool) -> Logging {
    Logging { version: "1.0".to_owned(), write, ..Default::default() }
}

fn metrics(enabled: bool) -> Metrics {
    Metrics { version: "1.0".to_owned(), enabled, ..Default::default() }
}

fn rule() -> CorsRule {
    CorsRule {
        allowed_origins: vec!["https://example.com".to_owned()],
        allowed_methods: vec!["GET".to_owned(), "PATCH".to_owned()],
        max_age: Some(Duration::default()),
        ..Default::default()
    }
}

fn cors(rules: Vec<CorsRule>) -> ServiceProperties {
    ServiceProperties { cors: Some(Cors { rules }), ..Default::default() }
}

async fn service_properties_have_defaults_and_keep_unset_parts(world: &World) {
    let defaults = ServiceProperties {
        logging: Some(logging(false)),
        hour_metrics: Some(metrics(false)),
        minute_metrics: Some(metrics(false)),
        cors: Some(Cors::default()),
    };
    assert_eq!(world.properties().await.unwrap(), defaults);

    let hour = Metrics {
        include_apis: true,
        retention: Some(Duration { seconds: 7 * DAY, nanos: 0 }),
        ..metrics(true)
    };
    let change = ServiceProperties { hour_metrics: Some(hour.clone()), ..cors(vec![rule()]) };
    world.set_properties(change).await.unwrap();
    let logged = ServiceProperties { logging: Some(logging(true)), ..Default::default() };
    world.set_properties(logged).await.unwrap();

    let read = world.properties().await.unwrap();
    let expected = ServiceProperties {
        logging: Some(logging(true)),
        hour_metrics: Some(hour),
        minute_metrics: defaults.minute_metrics,
        cors: Some(Cors { rules: vec![rule()] }),
    };
    assert_eq!(read, expected);
    world.set_properties(cors(Vec::new())).await.unwrap();
    let read = world.properties().await.unwrap();
    assert_eq!(read.cors, Some(Cors::default()), "no rules clear them");
    assert_eq!(read.logging, expected.logging);
}

async fn service_properties_are_validated(world: &World) {
    let lasting = |seconds, nanos| {
        let retention = Some(Duration { seconds, nanos });
        let metrics = Metrics { retention, ..metrics(true) };
        ServiceProperties { minute_metrics: Some(metrics), ..Default::default() }
    };
    for days in [1, 365] {
        world.set_properties(lasting(days * DAY, 0)).await.unwrap();
    }
    let before = world.properties().await.unwrap();

    let versioned = |version: &str| ServiceProperties {
        logging: Some(Logging { version: version.to_owned(), ..logging(true) }),
        ..Default::default()
    };
    let detailed = Metrics { include_apis: true, ..metrics(false) };
    let detailed = ServiceProperties { hour_metrics: Some(detailed), ..Default::default() };
    let retention = "properties.minute_metrics.retention";
    for (change, field) in [
        (lasting(0, 0), retention),
        (lasting(366 * DAY, 0), retention),
        (lasting(DAY + 1, 0), retention),
        (lasting(DAY, 1), retention),
        (lasting(-DAY, 0), retention),
        (lasting(i64::MIN, 0), retention),
        (versioned(""), "properties.logging.version"),
        (versioned("2.0"), "properties.logging.version"),
        (detailed, "properties.hour_metrics.include_apis"),
    ] {
        let rejected = world.set_properties(change).await.unwrap_err();
        assert_eq!(rejected.kind(), (Code::InvalidArgument, "INVALID_SERVICE_PROPERTY"));
        assert_eq!(rejected.fields, [field]);
    }
    assert_eq!(world.properties().await.unwrap(), before);
}

async fn cors_rules_are_validated(world: &World) {
    let texts = |text: &str, count: usize| vec![text.to_owned(); count];
    // Every limit of a rule at once, within the limit of all text.
    let widest = CorsRule {
        allowed_origins: [texts(&"o".repeat(256), 1), texts("o", 63)].concat(),
        allowed_headers: [texts("h", 64), texts("x-ms-meta*", 2)].concat(),
        exposed_headers: [texts("h", 64), texts("x-ms-meta*", 2)].concat(),
        ..rule()
    };
    let mut most = vec![rule(); limits::CORS_RULES_MAX];
    most[0] = widest.clone();
    world.set_properties(cors(most)).await.unwrap();

    // Seven origins of 256 characters, a shorter one to reach the limit, and `GET`.
    let long = |last: usize| CorsRule {
        allowed_origins: [texts(&"o".repeat(256), 7), texts(&"o".repeat(last), 1)].concat(),
        allowed_methods: texts("GET", 1),
        allowed_headers: Vec::new(),
        exposed_headers: Vec::new(),
        ..rule()
    };
    world.set_properties(cors(vec![long(253)])).await.unwrap();
    let rejected = world.set_properties(cors(vec![long(254)])).await.unwrap_err();
    assert_eq!(rejected.kind(), MALFORMED_RULE);
    assert_eq!(rejected.fields, ["properties.cors.rules"], "2,049 characters in all");

    let too_many = vec![rule(); limits::CORS_RULES_MAX + 1];
    let rejected = world.set_properties(cors(too_many)).await.unwrap_err();
    assert_eq!(rejected.kind(), MALFORMED_RULE);
    assert_eq!(rejected.fields, ["properties.cors.rules"]);
    type Change = (&'static str, fn(&mut CorsRule));
    let changes: [Change; 10] = [
        ("allowed_origins", |rule| rule.allowed_origins.clear()),
        ("allowed_origins", |rule| {
            rule.allowed_origins.push("x".to_owned());
        }),
        ("allowed_origins", |rule| rule.allowed_origins[0].push('x')),
        ("allowed_methods", |rule| rule.allowed_methods.clear()),
        ("allowed_methods", |rule| {
            rule.allowed_methods[0] = "get".to_owned();
        }),
        ("allowed_headers", |rule| {
            rule.allowed_headers.push("x".to_owned());
        }),
        ("exposed_headers", |rule| {
            rule.exposed_headers.push("x*".to_owned());
        }),
        ("exposed_headers", |rule| {
            rule.exposed_headers[0] = "x".repeat(257);
        }),
        ("max_age", |rule| rule.max_age = None),
        ("max_age", |rule| {
            rule.max_age = Some(Duration { seconds: -1, nanos: 0 });
        }),
    ];
    for (field, change) in changes {
        let mut changed = widest.clone();
        change(&mut changed);
        let rules = vec![rule(), changed];
        let rejected = world.set_properties(cors(rules)).await.unwrap_err();
        assert_eq!(rejected.kind(), MALFORMED_RULE, "{field}");
        assert_eq!(rejected.fields, [format!("properties.cors.rules[1].{field}")]);
    }
}

async fn stats_report_durability_and_engine(world: &World) {
    let table = world.table("stated").await;
    table.insert(entity("p", "r", [])).await.unwrap();

    let stats = world.stats().await.unwrap();
    assert_eq!(stats.durability(), Durability::Always, "the default");
    assert_eq!(stats.engine, "fjall");
    assert_eq!(stats.server_version, env!("CARGO_PKG_VERSION"));
    assert!(stats.start_time.unwrap().seconds > 1_700_000_000);
    assert!(stats.free_bytes.unwrap() > 0);
    assert_eq!(stats.tables_being_reclaimed, 0);

    world.drop_table("stated").await.unwrap();
    let stats = world.stats().await.unwrap();
    assert_eq!(stats.tables_being_reclaimed, 1);
}
