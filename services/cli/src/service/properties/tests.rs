//! Settings of a service: what a file may have, and that nothing is lost.

use proptest::{collection::vec, option, prelude::*};

use super::*;

fn any_logging() -> impl Strategy<Value = Logging> {
    let days = option::of(1..=365_i64);
    (any::<bool>(), any::<bool>(), any::<bool>(), days).prop_map(
        |(read, write, delete, retention_days)| Logging { read, write, delete, retention_days },
    )
}

fn any_metrics() -> impl Strategy<Value = Metrics> {
    (any::<bool>(), any::<bool>(), option::of(1..=365_i64)).prop_map(
        |(enabled, include_apis, retention_days)| Metrics { enabled, include_apis, retention_days },
    )
}

fn any_rule() -> impl Strategy<Value = CorsRule> {
    let texts = || vec("[a-z*.-]{0,8}", 0..3);
    (texts(), texts(), texts(), texts(), 0..=i64::from(i32::MAX)).prop_map(
        |(allowed_origins, allowed_methods, allowed_headers, exposed_headers, max_age_seconds)| {
            CorsRule {
                allowed_origins,
                allowed_methods,
                allowed_headers,
                exposed_headers,
                max_age_seconds,
            }
        },
    )
}

fn any_properties() -> impl Strategy<Value = Properties> {
    let metrics = || option::of(any_metrics());
    (option::of(any_logging()), metrics(), metrics(), option::of(vec(any_rule(), 0..3))).prop_map(
        |(logging, hour_metrics, minute_metrics, cors)| Properties {
            logging,
            hour_metrics,
            minute_metrics,
            cors,
        },
    )
}

proptest! {
    #[test]
    fn properties_survive_a_file_and_a_call(given in any_properties()) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("properties.json");
        std::fs::write(&file, serde_json::to_string(&given).unwrap()).unwrap();

        let stored = read(&file).unwrap();

        prop_assert_eq!(&stored, &given);
        let message = service::ServiceProperties::from(stored);
        prop_assert_eq!(Properties::from(message), given);
    }
}

fn parse(text: &str) -> Result<Properties, serde_json::Error> {
    serde_json::from_str(text)
}

#[test]
fn what_a_file_leaves_out_is_not_changed() {
    let none = parse("{}").unwrap();
    assert_eq!(none, Properties::default());

    let message = service::ServiceProperties::from(parse(r#"{"cors":[]}"#).unwrap());
    assert!(message.cors.is_some_and(|cors| cors.rules.is_empty()), "every rule is removed");
    assert!(message.logging.is_none());
}

#[test]
fn rejects_unknown_and_incomplete_settings() {
    for text in [
        "[]",
        r#"{"loging":{}}"#,
        r#"{"logging":{"reads":true}}"#,
        r#"{"hour_metrics":{"retention_days":"7"}}"#,
        r#"{"cors":[{"allowed_origins":["*"]}]}"#,
        r#"{"cors":[{"allowed_origins":["*"],"allowed_methods":[],"max_age_seconds":1,"x":1}]}"#,
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_rejected_file_names_the_field_and_the_rule() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("properties.json");
    for (text, problem) in [
        ("[]", ""),
        ("5", ""),
        (r#"{"logging":{"read":"yes"}}"#, ": read: must be true or false: value=`yes`"),
        (r#"{"cors":[{"allowed_methods":[]}]}"#, ": allowed_origins: required"),
        (r#"{"logging":"#, ": it ends before it is complete"),
        (
            r#"{"logging":{"retention_days":0},"hour_metrics":{"retention_days":366}}"#,
            ": logging.retention_days: must be 1 to 365: value=`0`; hour_metrics.retention_days: must be 1 to 365: \
             value=`366`",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = read(&file).unwrap_err().to_string();
        let rule = "properties must be an object as `get` prints it";
        assert_eq!(error, format!("{rule}: `{}`{problem}", file.display()));
    }
}

#[test]
fn days_are_whole_and_never_overflow() {
    assert_eq!(retention(Some(7)).map(|it| it.seconds), Some(604_800));
    assert_eq!(retention(Some(i64::MAX)).map(|it| it.seconds), Some(i64::MAX));
    assert_eq!((retention(None), days(None)), (None, None));
    assert_eq!(days(Some(Duration { seconds: 604_799, nanos: 0 })), Some(6));
}
