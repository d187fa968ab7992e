//! The settings of streams.

use std::{collections::BTreeMap, time::Duration};

use trestle_model::fault::{Fault, Reason, Violations, quoted};
use trestle_proto::log::v1 as proto;

use super::{between, finish};
use crate::{
    names::StreamName,
    segment::PromotedType,
    stream::{PromotedAttribute, RollPolicy, StreamSettings},
    streams::StreamSettingsChange,
};

/// Most labels of a stream.
const LABELS_MAX: usize = 32;
/// Longest key of a label, in bytes.
const LABEL_KEY_BYTES_MAX: usize = 128;
/// Longest value of a label, in bytes.
const LABEL_VALUE_BYTES_MAX: usize = 1024;
/// Most promoted attributes of a stream.
const PROMOTED_MAX: usize = 16;
/// Longest key of an attribute, in bytes.
const ATTRIBUTE_KEY_BYTES_MAX: usize = 256;
/// Shortest and longest retention.
const RETENTION: (Duration, Duration) =
    (Duration::from_secs(60), Duration::from_secs(36_500 * 24 * 3600));
/// Shortest and longest age of unsealed records.
const ROLL_AGE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(24 * 3600));
/// Least and most bytes of unsealed records.
const ROLL_BYTES: std::ops::RangeInclusive<u64> = 64 * 1024..=256 * 1024 * 1024;

/// The name and the settings of a new stream.
///
/// # Errors
/// Every violated rule.
pub(in crate::api) fn settings(
    stream: Option<proto::LogStream>,
) -> Result<(StreamName, StreamSettings), Fault> {
    let mut violations = Violations::default();
    let stream = required(stream, &mut violations);
    let name = StreamName::parse(stream.name, "stream.name", &mut violations);
    let settings = StreamSettings {
        labels: labels(stream.labels, &mut violations),
        retention: retention(stream.retention, &mut violations),
        roll: roll(stream.roll_policy, &mut violations),
        promoted: promoted(stream.promoted_attributes, &mut violations),
    };
    finish(violations, name.map(|name| (name, settings)))
}

/// The name of a stream and what changes of its settings.
///
/// # Errors
/// Every violated rule.
pub(in crate::api) fn settings_change(
    request: proto::UpdateStreamRequest,
) -> Result<(StreamName, StreamSettingsChange), Fault> {
    let mut violations = Violations::default();
    let stream = required(request.stream, &mut violations);
    let name = StreamName::parse(stream.name, "stream.name", &mut violations);
    let mask = request.update_mask.unwrap_or_default().paths;
    if mask.is_empty() {
        let rule = "required: which settings change";
        violations.push(Reason::PropertiesNeedValue, "update_mask", rule);
    }
    let mut change = StreamSettingsChange::default();
    for (index, path) in mask.iter().enumerate() {
        match path.as_str() {
            "labels" => change.labels = Some(labels(stream.labels.clone(), &mut violations)),
            "retention" => {
                change.retention = Some(retention(stream.retention, &mut violations));
            }
            "roll_policy" => change.roll = Some(roll(stream.roll_policy, &mut violations)),
            "promoted_attributes" => {
                let attributes = stream.promoted_attributes.clone();
                change.promoted = Some(promoted(attributes, &mut violations));
            }
            other => {
                let field = format!("update_mask.paths[{index}]");
                let settings = "`labels`, `retention`, `roll_policy` or `promoted_attributes`";
                let rule = format!("must be {settings}: value=`{}`", quoted(other));
                violations.push(Reason::InvalidInput, field, rule);
            }
        }
    }
    finish(violations, name.map(|name| (name, change)))
}

fn required(stream: Option<proto::LogStream>, violations: &mut Violations) -> proto::LogStream {
    if stream.is_none() {
        violations.push(Reason::PropertiesNeedValue, "stream", "required: the stream");
    }
    stream.unwrap_or_default()
}

fn labels(
    labels: BTreeMap<String, String>,
    violations: &mut Violations,
) -> BTreeMap<String, String> {
    if labels.len() > LABELS_MAX {
        let rule = format!("must have at most 32 labels: count=`{}`", labels.len());
        violations.push(Reason::InvalidMetadata, "stream.labels", rule);
    }
    for (key, value) in &labels {
        let field = || format!("stream.labels[\"{}\"]", quoted(key));
        if key.is_empty() || key.len() > LABEL_KEY_BYTES_MAX {
            let rule = format!("must have a key of 1 to 128 bytes: bytes=`{}`", key.len());
            violations.push(Reason::InvalidMetadata, field(), rule);
        }
        if value.len() > LABEL_VALUE_BYTES_MAX {
            let rule = format!("must have at most 1,024 bytes: bytes=`{}`", value.len());
            violations.push(Reason::InvalidMetadata, field(), rule);
        }
    }
    labels
}

fn retention(
    retention: Option<prost_types::Duration>,
    violations: &mut Violations,
) -> Option<Duration> {
    let rule = ("stream.retention", "must be 1 minute to 36,500 days");
    let retention = between(retention, RETENTION, rule, violations)?;
    // Whole seconds are stored; what is kept longer by a fraction is not a loss.
    Some(Duration::from_secs(retention.as_secs() + u64::from(retention.subsec_nanos() > 0)))
}

fn roll(policy: Option<proto::RollPolicy>, violations: &mut Violations) -> RollPolicy {
    let (default, policy) = (RollPolicy::default(), policy.unwrap_or_default());
    let rule = ("stream.roll_policy.max_age", "must be 1 second to 1 day");
    let max_age = between(policy.max_age, ROLL_AGE, rule, violations);
    let max_bytes = if policy.max_bytes == 0 { default.max_bytes } else { policy.max_bytes };
    if !ROLL_BYTES.contains(&max_bytes) {
        let rule = format!("must be 65,536 to 268,435,456 bytes: value=`{max_bytes}`");
        violations.push(Reason::OutOfRangeInput, "stream.roll_policy.max_bytes", rule);
    }
    // Whole milliseconds are stored.
    let max_age = max_age.unwrap_or(default.max_age).as_millis();
    RollPolicy { max_age: Duration::from_millis(u64::try_from(max_age).unwrap_or(0)), max_bytes }
}

fn promoted(
    attributes: Vec<proto::PromotedAttribute>,
    violations: &mut Violations,
) -> Vec<PromotedAttribute> {
    if attributes.len() > PROMOTED_MAX {
        let rule = format!("must be at most 16: count=`{}`", attributes.len());
        violations.push(Reason::InvalidInput, "stream.promoted_attributes", rule);
    }
    let mut parsed: Vec<PromotedAttribute> = Vec::new();
    for (index, attribute) in attributes.into_iter().enumerate().take(PROMOTED_MAX) {
        let field = |name| format!("stream.promoted_attributes[{index}].{name}");
        let kind = kind(attribute.r#type());
        if kind.is_none() {
            let rule = format!("must be a type of attributes: value=`{}`", attribute.r#type);
            violations.push(Reason::InvalidInput, field("type"), rule);
        }
        let key = attribute.key;
        if key.is_empty() || key.len() > ATTRIBUTE_KEY_BYTES_MAX {
            let rule = format!("must have 1 to 256 bytes: bytes=`{}`", key.len());
            violations.push(Reason::InvalidInput, field("key"), rule);
        } else if parsed.iter().any(|other| other.key == key) {
            let rule = format!("must be unique: value=`{}`", quoted(&key));
            violations.push(Reason::InvalidInput, field("key"), rule);
        } else if let Some(kind) = kind {
            parsed.push(PromotedAttribute { key, kind, is_indexed: attribute.is_indexed });
        }
    }
    parsed
}

fn kind(kind: proto::AttributeType) -> Option<PromotedType> {
    match kind {
        proto::AttributeType::Unspecified => None,
        proto::AttributeType::String => Some(PromotedType::String),
        proto::AttributeType::Int64 => Some(PromotedType::Int64),
        proto::AttributeType::Double => Some(PromotedType::Double),
        proto::AttributeType::Bool => Some(PromotedType::Bool),
    }
}
