//! The fields of a call that its server rejects, as the flags that people gave. Programs read the fields themselves.

use serde_json::Value;

/// The end of the path of a field, and the flag with its value, which is the same in every command that has it.
pub const FIELD_FLAGS: [(&str, &str); 26] = [
    ("deduplication_id", "--id"),
    ("ordering_group", "--group"),
    ("time_to_live", "--ttl"),
    ("visibility_delay", "--visibility-timeout"),
    ("visibility_timeout", "--visibility-timeout"),
    ("max_messages", "--limit"),
    ("wait", "--wait"),
    ("queue.metadata", "--metadata"),
    ("dead_letter.queue", "--dead-letter"),
    ("max_dequeue_count", "--max-dequeue-count"),
    ("deduplication_window", "--deduplication-window"),
    ("filter", "--filter"),
    ("select", "--select"),
    ("select.paths", "--select"),
    ("limit", "--limit"),
    ("prefix", "--prefix"),
    ("policies.permissions", "--permissions"),
    ("policies.start_time", "--start"),
    ("policies.expiry_time", "--expiry"),
    ("lease_id", "--lease-id"),
    ("version_id", "--version-id"),
    ("stream.retention", "--retention"),
    ("roll_policy.max_age", "--roll-age"),
    ("roll_policy.max_bytes", "--roll-bytes"),
    ("promoted_attributes", "--promote"),
    ("stream.labels", "--label"),
];

/// Replaces the fields in the violations of an error, and at the beginning of its message.
pub(super) fn name_flags(error: &mut Value) {
    let mut message = error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
    let violations = error.get_mut("violations").and_then(Value::as_array_mut);
    for field in violations.into_iter().flatten().filter_map(|it| it.get_mut("field")) {
        let Some(path) = field.as_str().map(str::to_owned) else { continue };
        let Some(flag) = flag_of(&path) else { continue };
        if let Some(rule) = message.strip_prefix(&path).filter(|rest| rest.starts_with(": ")) {
            message = format!("{flag}{rule}");
        }
        *field = flag.into();
    }
    if let Some(shown) = error.get_mut("message") {
        *shown = message.into();
    }
}

/// The flag of a field such as `messages[0].visibility_delay`.
fn flag_of(path: &str) -> Option<&'static str> {
    let path = without_indices(path);
    let is_end = |end: &str| {
        path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    FIELD_FLAGS.iter().find(|(end, _)| is_end(end)).map(|(_, flag)| *flag)
}

fn without_indices(path: &str) -> String {
    let mut parts = path.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(']').map_or(part, |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_the_flag_that_sets_it() {
        for (path, flag) in [
            ("messages[0].visibility_delay", Some("--visibility-timeout")),
            ("visibility_timeout", Some("--visibility-timeout")),
            ("queue.dead_letter.queue", Some("--dead-letter")),
            ("policies[12].expiry_time", Some("--expiry")),
            ("stream.promoted_attributes[0]", Some("--promote")),
            ("queue", None),
            ("messages[0].body", None),
            ("entity.properties[\"filter\"]", None),
            ("await", None),
            ("", None),
        ] {
            assert_eq!(flag_of(path), flag, "{path}");
        }
    }

    #[test]
    fn the_message_begins_with_the_flag_of_its_violation() {
        let mut error = json!({
            "message": "messages[1].time_to_live: must be 1 second or more",
            "violations": [{ "field": "messages[1].time_to_live", "rule": "must be 1 second or more" },
                { "field": "messages[1].body", "rule": "required" }],
        });

        name_flags(&mut error);

        assert_eq!(error["message"], "--ttl: must be 1 second or more");
        assert_eq!(error["violations"][0]["field"], "--ttl");
        assert_eq!(error["violations"][1]["field"], "messages[1].body");
    }
}
