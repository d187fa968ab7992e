//! Settings that are refused: each names its key, its value, and the rule.

use crate::process::{output, trestle};

/// What `config print` says to one variable; it must refuse it.
fn refusal(variable: &str, value: &str) -> String {
    let outcome = output(trestle(&["config", "print"]).env(variable, value));
    let said = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(outcome.status.code(), Some(2), "{variable}={value}: {said}");
    said
}

#[test]
fn a_limit_beyond_what_a_process_can_keep_is_refused() {
    let most = "18446744073709551615";
    for (key, value, rule) in [
        ("limits.connections_max", "5000000000000000000", "must be 1 to 1000000"),
        ("limits.calls_max", most, "must be 1 to 1000000"),
        ("limits.calls_per_connection_max", "4294967295", "must be 1 to 1000000"),
        ("limits.body_bytes_max", most, "must be 16777216 to"),
        ("limits.connection_grace_seconds", most, "must be 0 to 604800"),
        ("limits.request_within_seconds", most, "must be 1 to 3600"),
        ("limits.reader_within_seconds", most, "must be 1 to 3600"),
        ("limits.reader_within_seconds", "0", "must be 1 to 3600"),
        ("server.drain_seconds", most, "must be 0 to 86400"),
        ("server.worker_threads", "1000000", "must be 1 to 1024"),
    ] {
        let variable = format!("TRESTLE__{}", key.to_uppercase().replace('.', "__"));
        let said = refusal(&variable, value);
        let expected = format!("{key}: {rule}");
        assert!(said.contains(&expected), "{expected}: {said}");
        assert!(said.contains(&format!("value=`{value}`")), "{value}: {said}");
    }
}
