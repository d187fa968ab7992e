//! The stored form of service properties: a format byte, then a message of our own. It is independent of the contract,
//! so that a change of the contract never changes what is on disk.

use bytes::Bytes;
use prost::Message;
use prost_types::Duration;

use super::{Cors, CorsRule, Logging, Metrics, ServiceProperties};

/// The first byte of a record.
const FORMAT: u8 = 1;

/// A record that is corrupt, or of a later version.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("stored service properties are corrupt")]
pub(super) struct CorruptProperties;

#[derive(Clone, PartialEq, Message)]
struct StoredProperties {
    #[prost(message, optional, tag = "1")]
    logging: Option<StoredLogging>,
    #[prost(message, optional, tag = "2")]
    hour_metrics: Option<StoredMetrics>,
    #[prost(message, optional, tag = "3")]
    minute_metrics: Option<StoredMetrics>,
    #[prost(message, optional, tag = "4")]
    cors: Option<StoredCors>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredLogging {
    #[prost(string, tag = "1")]
    version: String,
    #[prost(bool, tag = "2")]
    read: bool,
    #[prost(bool, tag = "3")]
    write: bool,
    #[prost(bool, tag = "4")]
    delete: bool,
    #[prost(int64, optional, tag = "5")]
    retention_seconds: Option<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredMetrics {
    #[prost(string, tag = "1")]
    version: String,
    #[prost(bool, tag = "2")]
    enabled: bool,
    #[prost(bool, tag = "3")]
    include_apis: bool,
    #[prost(int64, optional, tag = "4")]
    retention_seconds: Option<i64>,
}

/// A message of its own, so that no rules differ from rules that were never set.
#[derive(Clone, PartialEq, Message)]
struct StoredCors {
    #[prost(message, repeated, tag = "1")]
    rules: Vec<StoredCorsRule>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredCorsRule {
    #[prost(string, repeated, tag = "1")]
    allowed_origins: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    allowed_methods: Vec<String>,
    #[prost(string, repeated, tag = "3")]
    allowed_headers: Vec<String>,
    #[prost(string, repeated, tag = "4")]
    exposed_headers: Vec<String>,
    #[prost(int64, tag = "5")]
    max_age_seconds: i64,
}

/// The record of valid properties; their durations are whole seconds.
pub(super) fn encode(properties: &ServiceProperties) -> Bytes {
    let ServiceProperties { logging, hour_metrics, minute_metrics, cors } = properties.clone();
    let record = StoredProperties {
        logging: logging.map(StoredLogging::from),
        hour_metrics: hour_metrics.map(StoredMetrics::from),
        minute_metrics: minute_metrics.map(StoredMetrics::from),
        cors: cors
            .map(|cors| StoredCors { rules: cors.rules.into_iter().map(Into::into).collect() }),
    };
    let mut value = vec![FORMAT];
    record.encode_raw(&mut value);
    value.into()
}

/// The properties of a record.
pub(super) fn decode(value: &[u8]) -> Result<ServiceProperties, CorruptProperties> {
    let message = value.strip_prefix(&[FORMAT]).ok_or(CorruptProperties)?;
    let record = StoredProperties::decode(message).map_err(|_| CorruptProperties)?;
    let StoredProperties { logging, hour_metrics, minute_metrics, cors } = record;
    Ok(ServiceProperties {
        logging: logging.map(Logging::from),
        hour_metrics: hour_metrics.map(Metrics::from),
        minute_metrics: minute_metrics.map(Metrics::from),
        cors: cors.map(|cors| Cors { rules: cors.rules.into_iter().map(Into::into).collect() }),
    })
}

fn seconds_of(duration: Duration) -> i64 {
    duration.seconds
}

fn duration(seconds: i64) -> Duration {
    Duration { seconds, nanos: 0 }
}

impl From<Logging> for StoredLogging {
    fn from(logging: Logging) -> Self {
        let Logging { version, read, write, delete, retention } = logging;
        Self { version, read, write, delete, retention_seconds: retention.map(seconds_of) }
    }
}

impl From<StoredLogging> for Logging {
    fn from(stored: StoredLogging) -> Self {
        let StoredLogging { version, read, write, delete, retention_seconds } = stored;
        Self { version, read, write, delete, retention: retention_seconds.map(duration) }
    }
}

impl From<Metrics> for StoredMetrics {
    fn from(metrics: Metrics) -> Self {
        let Metrics { version, enabled, include_apis, retention } = metrics;
        Self { version, enabled, include_apis, retention_seconds: retention.map(seconds_of) }
    }
}

impl From<StoredMetrics> for Metrics {
    fn from(stored: StoredMetrics) -> Self {
        let StoredMetrics { version, enabled, include_apis, retention_seconds } = stored;
        Self { version, enabled, include_apis, retention: retention_seconds.map(duration) }
    }
}

impl From<CorsRule> for StoredCorsRule {
    fn from(rule: CorsRule) -> Self {
        let CorsRule {
            allowed_origins,
            allowed_methods,
            allowed_headers,
            exposed_headers,
            max_age,
        } = rule;
        let max_age_seconds = max_age.map(seconds_of).unwrap_or_default();
        Self { allowed_origins, allowed_methods, allowed_headers, exposed_headers, max_age_seconds }
    }
}

impl From<StoredCorsRule> for CorsRule {
    fn from(stored: StoredCorsRule) -> Self {
        let StoredCorsRule { allowed_origins, allowed_methods, allowed_headers, .. } = stored;
        let max_age = Some(duration(stored.max_age_seconds));
        let exposed_headers = stored.exposed_headers;
        Self { allowed_origins, allowed_methods, allowed_headers, exposed_headers, max_age }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, option, prelude::*};

    use super::*;

    fn logging() -> impl Strategy<Value = Logging> {
        (".{0,8}", any::<[bool; 3]>(), option::of(any::<i64>())).prop_map(
            |(version, [read, write, delete], retention)| {
                let retention = retention.map(duration);
                Logging { version, read, write, delete, retention }
            },
        )
    }

    fn metrics() -> impl Strategy<Value = Metrics> {
        (".{0,8}", any::<[bool; 2]>(), option::of(any::<i64>())).prop_map(
            |(version, [enabled, include_apis], retention)| {
                let retention = retention.map(duration);
                Metrics { version, enabled, include_apis, retention }
            },
        )
    }

    fn cors() -> impl Strategy<Value = Cors> {
        let texts = || vec(".{0,8}", 0..3);
        let rule = (texts(), texts(), texts(), texts(), any::<i64>()).prop_map(|parts| CorsRule {
            allowed_origins: parts.0,
            allowed_methods: parts.1,
            allowed_headers: parts.2,
            exposed_headers: parts.3,
            max_age: Some(duration(parts.4)),
        });
        vec(rule, 0..3).prop_map(|rules| Cors { rules })
    }

    fn properties() -> impl Strategy<Value = ServiceProperties> {
        let parts = (option::of(logging()), option::of(metrics()), option::of(metrics()));
        (parts, option::of(cors())).prop_map(|((logging, hour_metrics, minute_metrics), cors)| {
            ServiceProperties { logging, hour_metrics, minute_metrics, cors }
        })
    }

    proptest! {
        #[test]
        fn properties_survive_a_round_trip(properties in properties()) {
            prop_assert_eq!(decode(&encode(&properties)), Ok(properties));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..64)) {
            let _ = decode(&bytes);
        }
    }

    #[test]
    fn a_record_of_an_unknown_format_is_corrupt() {
        let mut record = encode(&ServiceProperties::default()).to_vec();
        record[0] = FORMAT + 1;
        assert_eq!(decode(&record), Err(CorruptProperties));
        assert_eq!(decode(&[]), Err(CorruptProperties));
    }
}
