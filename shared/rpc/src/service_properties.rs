//! The settings of a service for an account: which requests are logged and measured, and its CORS rules. Their
//! rules, and how they are stored, are the same for every service that has them.

mod stored;

use bytes::Bytes;
use trestle_kv::{ChangeSpec, Domain, Engine, Writes, transact};
pub use trestle_proto::service::v1::{Cors, CorsRule, Logging, Metrics, ServiceProperties};

use self::stored::encode;
use trestle_model::fault::{Fault, Reason, Violations, quoted};
use trestle_model::limits::CORS_RULES_MAX;
use trestle_model::{duration, xml};

/// Version of logging and of metrics. Azure.
const PART_VERSION: &str = "1.0";
/// The methods a cross-origin rule may name. Azure, and PATCH, which SDKs use for merges.
const CORS_METHODS: &[&str] =
    &["DELETE", "GET", "HEAD", "MERGE", "POST", "OPTIONS", "PUT", "PATCH"];
/// Most text of all rules together, in characters. Azure.
const CORS_CHARS_MAX: usize = 2048;
/// Most origins of a rule. Azure.
const CORS_ORIGINS_MAX: usize = 64;
/// Longest origin or header name, in characters. Azure.
const CORS_TEXT_CHARS_MAX: usize = 256;
/// Most whole header names of a list. Azure.
const CORS_HEADERS_MAX: usize = 64;
/// Most header prefixes of a list. Azure.
const CORS_HEADER_PREFIXES_MAX: usize = 2;
/// Longest time that a browser may cache a rule, in seconds: what REST can represent.
const CORS_AGE_SECONDS_MAX: i64 = 4_294_967_295;
/// Longest retention of logs and metrics, in days. Azure.
pub const RETENTION_DAYS_MAX: i64 = 365;
/// Seconds of a day: retentions are durations of whole days.
pub const DAY_SECONDS: i64 = 86_400;

/// The settings under a key, every part set: unset parts have their defaults.
///
/// # Errors
/// A failed read, or a record that cannot be read.
pub async fn read(engine: &dyn Engine, key: &[u8]) -> Result<ServiceProperties, Fault> {
    let value = engine.get(key).await?;
    Ok(overlay(defaults(), decode(value.as_ref())?))
}

/// The settings in a request to change them.
///
/// # Errors
/// A request without settings.
pub fn required(properties: Option<ServiceProperties>) -> Result<ServiceProperties, Fault> {
    properties.ok_or_else(|| {
        let rule = "required: the parts to change";
        Fault::violation(Reason::PropertiesNeedValue, "properties", rule)
    })
}

/// Changes the parts of the settings under a key, in `domain`, that `change` has.
///
/// # Errors
/// A broken rule, or a failed commit.
pub async fn change(
    engine: &dyn Engine,
    domain: Domain,
    key: Bytes,
    change: ServiceProperties,
) -> Result<(), Fault> {
    check(&change)?;
    let mut spec = ChangeSpec::new(domain);
    let record = spec.read(key);
    transact(engine, spec, move |reads, _| {
        let stored = decode(reads.get(record))?;
        let mut writes = Writes::new();
        writes.put(reads.key(record).clone(), encode(&overlay(stored, change.clone())));
        Ok::<_, Fault>((writes, ()))
    })
    .await?
}

fn decode(value: Option<&Bytes>) -> Result<ServiceProperties, Fault> {
    let Some(value) = value else { return Ok(ServiceProperties::default()) };
    stored::decode(value).map_err(|error| Fault::new(Reason::CorruptRecord, error.to_string()))
}

fn defaults() -> ServiceProperties {
    let version = || PART_VERSION.to_owned();
    let metrics = || Metrics { version: version(), ..Default::default() };
    ServiceProperties {
        logging: Some(Logging { version: version(), ..Default::default() }),
        hour_metrics: Some(metrics()),
        minute_metrics: Some(metrics()),
        cors: Some(Cors::default()),
    }
}

/// `base` with the parts that `change` has.
fn overlay(base: ServiceProperties, change: ServiceProperties) -> ServiceProperties {
    ServiceProperties {
        logging: change.logging.or(base.logging),
        hour_metrics: change.hour_metrics.or(base.hour_metrics),
        minute_metrics: change.minute_metrics.or(base.minute_metrics),
        cors: change.cors.or(base.cors),
    }
}

fn check(change: &ServiceProperties) -> Result<(), Fault> {
    let mut violations = Violations::default();
    if let Some(logging) = &change.logging {
        let field = "properties.logging";
        check_version(&logging.version, field, &mut violations);
        check_retention(logging.retention.as_ref(), field, &mut violations);
    }
    let metrics =
        [("hour_metrics", &change.hour_metrics), ("minute_metrics", &change.minute_metrics)];
    for (name, metrics) in metrics {
        let (Some(metrics), field) = (metrics, format!("properties.{name}")) else {
            continue;
        };
        check_version(&metrics.version, &field, &mut violations);
        check_retention(metrics.retention.as_ref(), &field, &mut violations);
        if metrics.include_apis && !metrics.enabled {
            let rule = "must be false when metrics are not enabled";
            violations.push(Reason::InvalidServiceProperty, format!("{field}.include_apis"), rule);
        }
    }
    let rules = change.cors.as_ref().map_or(&[][..], |cors| &cors.rules);
    if rules.len() > CORS_RULES_MAX {
        let rule = format!("must have at most {CORS_RULES_MAX} rules: count=`{}`", rules.len());
        violations.push(Reason::InvalidCorsRule, "properties.cors.rules", rule);
    }
    let chars: usize = rules.iter().flat_map(texts).map(|text| text.chars().count()).sum();
    if chars > CORS_CHARS_MAX {
        let rule = format!("must have at most {CORS_CHARS_MAX} characters in all: count=`{chars}`");
        violations.push(Reason::InvalidCorsRule, "properties.cors.rules", rule);
    }
    for (index, rule) in rules.iter().enumerate().take(CORS_RULES_MAX) {
        let field = format!("properties.cors.rules[{index}]");
        check_cors_rule(rule, &field, &mut violations);
        check_shown(rule, &field, &mut violations);
    }
    violations.check(())
}

/// Every text of a rule.
fn texts(rule: &CorsRule) -> impl Iterator<Item = &String> {
    let headers = rule.allowed_headers.iter().chain(&rule.exposed_headers);
    rule.allowed_origins.iter().chain(&rule.allowed_methods).chain(headers)
}

fn check_version(version: &str, field: &str, violations: &mut Violations) {
    if version != PART_VERSION {
        let rule = format!("must be `{PART_VERSION}`: value=`{}`", quoted(version));
        violations.push(Reason::InvalidServiceProperty, format!("{field}.version"), rule);
    }
}

fn check_retention(
    retention: Option<&prost_types::Duration>,
    field: &str,
    violations: &mut Violations,
) {
    let Some(retention) = retention else { return };
    let whole_days = retention.seconds % DAY_SECONDS == 0 && retention.nanos == 0;
    let days = retention.seconds / DAY_SECONDS;
    if !whole_days || !(1..=RETENTION_DAYS_MAX).contains(&days) {
        let value = duration::exact(*retention);
        let most = RETENTION_DAYS_MAX * DAY_SECONDS;
        let days = format!("must be 1 to {RETENTION_DAYS_MAX} whole days");
        let rule = format!("{days}, {DAY_SECONDS}s to {most}s: value=`{value}`");
        violations.push(Reason::InvalidServiceProperty, format!("{field}.retention"), rule);
    }
}

fn check_cors_rule(rule: &CorsRule, field: &str, violations: &mut Violations) {
    let mut reject = |name: &str, text: String| {
        violations.push(Reason::InvalidCorsRule, format!("{field}.{name}"), text);
    };
    let origins = rule.allowed_origins.len();
    if origins == 0 || origins > CORS_ORIGINS_MAX {
        let text = format!("must have 1 to {CORS_ORIGINS_MAX} origins: count=`{origins}`");
        reject("allowed_origins", text);
    }
    if rule.allowed_methods.is_empty() {
        reject("allowed_methods", "required: at least one method".to_owned());
    }
    for method in &rule.allowed_methods {
        if !CORS_METHODS.contains(&method.as_str()) {
            let methods = CORS_METHODS.join("`, `");
            let text = format!("must be one of `{methods}`: value=`{}`", quoted(method));
            reject("allowed_methods", text);
        }
    }
    let headers =
        [("allowed_headers", &rule.allowed_headers), ("exposed_headers", &rule.exposed_headers)];
    for (name, list) in headers {
        let prefixes = list.iter().filter(|header| header.ends_with('*')).count();
        if prefixes > CORS_HEADER_PREFIXES_MAX || list.len() - prefixes > CORS_HEADERS_MAX {
            let text = format!(
                "must have at most {CORS_HEADERS_MAX} whole names and \
                 {CORS_HEADER_PREFIXES_MAX} prefixes: count=`{}`, prefixes=`{prefixes}`",
                list.len()
            );
            reject(name, text);
        }
    }
    let texts = [
        ("allowed_origins", &rule.allowed_origins),
        ("allowed_headers", &rule.allowed_headers),
        ("exposed_headers", &rule.exposed_headers),
    ];
    for (name, list) in texts {
        let too_long = |text: &&String| text.chars().count() > CORS_TEXT_CHARS_MAX;
        for text in list.iter().filter(too_long) {
            let rule = format!("must have at most {CORS_TEXT_CHARS_MAX} characters each");
            reject(name, format!("{rule}: value=`{}`", quoted(text)));
        }
    }
    let age_fits = |age: &prost_types::Duration| age.seconds >= 0 && age.nanos == 0;
    match rule.max_age {
        None => reject("max_age", "required: 0 or more whole seconds".to_owned()),
        Some(age) if !age_fits(&age) => {
            reject(
                "max_age",
                format!("must be 0 or more whole seconds: value=`{}`", duration::exact(age)),
            );
        }
        Some(_) => {}
    }
}

/// Rejects what REST cannot represent, or would parse differently. Methods have a list of their own.
fn check_shown(rule: &CorsRule, field: &str, violations: &mut Violations) {
    let mut reject = |name: &str, text: String| {
        violations.push(Reason::InvalidInput, format!("{field}.{name}"), text);
    };
    let lists = [
        ("allowed_origins", &rule.allowed_origins),
        ("allowed_headers", &rule.allowed_headers),
        ("exposed_headers", &rule.exposed_headers),
    ];
    for (name, list) in lists {
        for text in list.iter().filter(|text| !xml::is_list_item(text)) {
            let rule = "must not be empty, and have no comma, no white space around it and no \
                        character that XML 1.0 cannot carry";
            reject(name, format!("{rule}: value=`{}`", quoted(text)));
        }
    }
    let seconds = rule.max_age.as_ref().map_or(0, |age| age.seconds);
    if seconds > CORS_AGE_SECONDS_MAX {
        let rule = format!("must be at most {CORS_AGE_SECONDS_MAX} seconds: seconds=`{seconds}`");
        reject("max_age", rule);
    }
}

#[cfg(test)]
mod tests {
    use trestle_kv::{Keyspace, MemoryEngine, key_domain};

    use super::*;

    #[tokio::test]
    async fn an_unreadable_record_is_reported_and_not_overwritten() {
        let keyspace = Keyspace { name: "test", kinds: b'k'..=b'k', domain: key_domain };
        let engine = MemoryEngine::new([keyspace]);
        let key = Bytes::from_static(b"key");
        let domain = Domain::of_key(&key, key_domain);
        for damaged in [&b""[..], b"\x02", b"\x01\xff"] {
            let mut put = Writes::new();
            put.put(key.clone(), damaged);
            let spec = ChangeSpec::new(domain.clone());
            let put = transact(&engine, spec, move |_, _| Ok::<_, Fault>((put.clone(), ())));
            put.await.expect("committed").expect("decided");

            let read = read(&engine, &key).await.map_err(|fault| fault.reason);
            assert_eq!(read, Err(Reason::CorruptRecord));
            let properties = ServiceProperties::default();
            let changed = change(&engine, domain.clone(), key.clone(), properties).await;
            assert_eq!(changed.map_err(|fault| fault.reason), Err(Reason::CorruptRecord));
        }
    }

    #[test]
    fn a_rejected_retention_has_its_rule_in_the_unit_of_its_field() {
        for seconds in [0, DAY_SECONDS + 1, 366 * DAY_SECONDS] {
            let retention = Some(prost_types::Duration { seconds, nanos: 0 });
            let logging =
                Logging { version: PART_VERSION.to_owned(), retention, ..Default::default() };
            let change = ServiceProperties { logging: Some(logging), ..Default::default() };
            let rejected = check(&change).expect_err("out of range");
            let rule = "must be 1 to 365 whole days, 86400s to 31536000s";
            let expected = format!("properties.logging.retention: {rule}: value=`{seconds}s`");
            assert_eq!(rejected.message, expected);
        }
    }
}
