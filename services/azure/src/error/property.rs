//! The names that REST has for the fields of calls: an error names the part of the request that its sender wrote.

use trestle_rpc::service_properties::{DAY_SECONDS, RETENTION_DAYS_MAX};

/// Names of values in error texts, and those of REST.
const VALUES: [(&str, &str); 4] = [
    ("partition_key", "PartitionKey"),
    ("row_key", "RowKey"),
    ("message_id", "messageid"),
    ("table", "TableName"),
];

/// The name of a field in REST; none where it is the same, or is renamed by the protocol, which has the request.
pub(super) fn name(field: &str) -> Option<&'static str> {
    let first = field.split(['.', '[']).next()?;
    let last = field.rsplit('.').next()?;
    Some(match (first, last) {
        (_, "if_match") => "If-Match",
        ("table", "name") => "TableName",
        ("queue", "name") => "queue",
        ("queue", "metadata") => "metadata",
        ("messages", "body") => "MessageText",
        ("messages", "visibility_delay") | (_, "visibility_timeout") => "visibilitytimeout",
        ("messages", "time_to_live") => "messagettl",
        ("max_messages", _) => "numofmessages",
        (_, "pop_receipt") => "popreceipt",
        ("receipt" | "receipts", "message_id") => "messageid",
        ("filter", _) => "$filter",
        ("select", _) => "$select",
        ("policies", of) => of_policy(of)?,
        ("properties", of) => of_settings(of)?,
        _ => return None,
    })
}

/// The elements of a stored access policy.
fn of_policy(field: &str) -> Option<&'static str> {
    Some(match field {
        "policies" => "SignedIdentifiers",
        "id" => "Id",
        "start_time" => "Start",
        "expiry_time" => "Expiry",
        "permissions" => "Permission",
        _ => return None,
    })
}

/// The elements of the settings of a service.
fn of_settings(field: &str) -> Option<&'static str> {
    Some(match field {
        "rules" => "Cors",
        "allowed_origins" => "AllowedOrigins",
        "allowed_methods" => "AllowedMethods",
        "allowed_headers" => "AllowedHeaders",
        "exposed_headers" => "ExposedHeaders",
        "max_age" => "MaxAgeInSeconds",
        "version" => "Version",
        "retention" => "Days",
        "include_apis" => "IncludeAPIs",
        _ => return None,
    })
}

/// A rule with the names of REST for the fields that it compares, and in its units.
pub(super) fn rule(field: &str, rule: &str) -> String {
    if field.ends_with(".retention") {
        return in_days(rule).unwrap_or_else(|| rule.to_owned());
    }
    if !field.ends_with(".visibility_delay") {
        return rule.to_owned();
    }
    rule.replace("visibility_delay", "visibilitytimeout").replace("time_to_live", "messagettl")
}

/// The rule for a retention, which REST has in days.
fn in_days(rule: &str) -> Option<String> {
    let (_, value) = rule.rsplit_once("value=`")?;
    let seconds: i64 = value.strip_suffix("s`")?.parse().ok()?;
    let days = seconds / DAY_SECONDS;
    Some(format!("must be 1 to {RETENTION_DAYS_MAX}: value=`{days}`"))
}

/// A text with the names of REST for its values: ``partition_key=`p` `` is ``PartitionKey=`p` ``.
pub(super) fn values(text: &str) -> String {
    // Each second part is a value, which is between backticks and stays as it is.
    let parts = text.split('`').enumerate();
    let renamed = parts.map(|(at, part)| match at % 2 {
        0 => with_last_name(part),
        _ => part.to_owned(),
    });
    renamed.collect::<Vec<_>>().join("`")
}

/// The text before a value, with the name of REST at its end.
fn with_last_name(text: &str) -> String {
    let start = text.rfind(' ').map_or(0, |space| space + 1);
    let (before, last) = text.split_at(start);
    let own = last.strip_suffix('=');
    let named = VALUES.iter().find(|(name, _)| own == Some(*name));
    named.map_or_else(|| text.to_owned(), |(_, name)| format!("{before}{name}="))
}

/// The name of an invalid part and the rule that it violates, which may contain the name, too.
pub(super) fn with_rule(name: &str, rule: &str) -> String {
    if rule.starts_with(&format!("{name}=`")) {
        return rule.to_owned();
    }
    let rule = rule.strip_suffix(&format!("name=`{name}`")).unwrap_or(rule);
    match rule.strip_suffix(": ").unwrap_or(rule) {
        "" => name.to_owned(),
        rule => format!("{name}: {rule}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_and_the_name_of_its_part_have_the_name_once() {
        for (name, rule, expected) in [
            ("a-b", "must be a letter: name=`a-b`", "a-b: must be a letter"),
            ("a-b", "must be a letter: name=`a`", "a-b: must be a letter: name=`a`"),
            ("x", "name=`x`", "x"),
            ("x", "", "x"),
            ("RowKey", "RowKey=`r`", "RowKey=`r`"),
            ("RowKey", "PartitionKey=`r`", "RowKey: PartitionKey=`r`"),
            ("body", "count=`300`, max=`252`", "body: count=`300`, max=`252`"),
            ("queue", "queue-name is too long", "queue: queue-name is too long"),
        ] {
            assert_eq!(with_rule(name, rule), expected);
        }
    }

    #[test]
    fn the_values_of_a_text_have_the_names_of_rest() {
        for (text, expected) in [
            ("table=`orders`", "TableName=`orders`"),
            ("exists: partition_key=`p`, row_key=`r`", "exists: PartitionKey=`p`, RowKey=`r`"),
            ("received since: message_id=`1`", "received since: messageid=`1`"),
            ("all on one partition: partition_key=`q`", "all on one partition: PartitionKey=`q`"),
        ] {
            assert_eq!(values(text), expected);
        }
    }

    #[test]
    fn other_values_and_what_a_client_wrote_keep_their_text() {
        for text in [
            "",
            "`",
            "queue=`orders`",
            "must be at most 252: count=`300`, max=`252`",
            "subtable=`x`",
            "a table, and a row_key",
            "table =`x`",
            "name=`a row_key=`",
            "value=`table=`, bytes=`7`",
        ] {
            assert_eq!(values(text), text);
        }
    }

    #[test]
    fn a_field_of_a_call_has_the_name_of_the_request() {
        for (field, expected) in [
            ("table.name", "TableName"),
            ("queue.name", "queue"),
            ("queue.metadata", "metadata"),
            ("messages[0].body", "MessageText"),
            ("messages[0].visibility_delay", "visibilitytimeout"),
            ("visibility_timeout", "visibilitytimeout"),
            ("messages[0].time_to_live", "messagettl"),
            ("max_messages", "numofmessages"),
            ("receipts[0].pop_receipt", "popreceipt"),
            ("receipt.pop_receipt", "popreceipt"),
            ("receipt.message_id", "messageid"),
            ("operations[1].update.if_match", "If-Match"),
            ("filter", "$filter"),
            ("policies", "SignedIdentifiers"),
            ("policies[4].id", "Id"),
            ("policies[4].start_time", "Start"),
            ("policies[4].expiry_time", "Expiry"),
            ("policies[4].permissions", "Permission"),
            ("properties.cors.rules", "Cors"),
            ("properties.cors.rules[1].allowed_origins", "AllowedOrigins"),
            ("properties.cors.rules[1].max_age", "MaxAgeInSeconds"),
            ("properties.hour_metrics.retention", "Days"),
        ] {
            assert_eq!(name(field), Some(expected), "{field}");
        }
    }

    #[test]
    fn other_fields_keep_their_names() {
        for field in
            ["", "table", "x-ms-version", "Days", "a-b", "entity.properties[\"a\"]", "body"]
        {
            assert_eq!(name(field), None, "{field}");
        }
    }

    #[test]
    fn a_rule_about_two_fields_has_both_names() {
        let text = "must be less than time_to_live: visibility_delay=`9s`, time_to_live=`5s`";
        let expected = "must be less than messagettl: visibilitytimeout=`9s`, messagettl=`5s`";
        assert_eq!(rule("messages[0].visibility_delay", text), expected);
        assert_eq!(rule("table.name", text), text);
    }

    #[test]
    fn a_duration_of_a_call_has_the_unit_of_rest() {
        for (field, text, expected) in [
            (
                "properties.logging.retention",
                "must be 1 to 365 whole days, as in 86400s: value=`31622400s`",
                "must be 1 to 365: value=`366`",
            ),
            (
                "properties.logging.retention",
                "must be 1 to 365 whole days, as in 86400s: value=`0s`",
                "must be 1 to 365: value=`0`",
            ),
        ] {
            assert_eq!(rule(field, text), expected);
        }
    }
}
