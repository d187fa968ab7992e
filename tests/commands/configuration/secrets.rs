//! Errors of the configuration do not repeat misplaced secrets.

use std::process::Command;

use crate::client::{Ended, bare};

/// Found in no output. The last part is behind a comma, which ends an entry of a list.
const SECRETS: [&str; 2] = ["c2VjcmV0", "hunter2"];
/// As long as a key of Azure Storage.
const KEY: &str =
    "c2VjcmV0/c2VjcmV0+Zm9vYmFyMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Ng==";

fn with(args: &[&str], (name, value): (&str, &str)) -> Command {
    let mut command = bare(args);
    command.env(name, value);
    command
}

/// What every command that reads settings reports.
fn is_rejected(variable: (&str, &str), key: &str, rule: &str) {
    // Arguments for the addresses would win over a variable for them.
    let serve = match ["server.listen", "server.admin"].contains(&key) {
        true => &["serve"][..],
        false => &["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"],
    };
    for args in [&["config", "check"][..], &["config", "print"], &["doctor"], serve] {
        let rejected = Ended::of(with(args, variable));

        let text = format!("{}{}", rejected.output, rejected.errors);
        assert_eq!(rejected.code, Some(2), "{args:?} {variable:?}: {text}");
        assert!(text.contains(&format!("{key}: {rule}")), "{args:?} {variable:?}: {text}");
        for secret in SECRETS {
            assert!(!text.contains(secret), "{args:?} {variable:?}: {text}");
        }
    }
}

#[test]
fn addresses_with_a_password_are_rejected_without_it() {
    let rule = "must have no user or password";
    for value in ["http://user:c2VjcmV0@host:4317", "user:c2VjcmV0@host", "http://c2VjcmV0@host"] {
        let key = "telemetry.otlp_endpoint";
        is_rejected(("TRESTLE__TELEMETRY__OTLP_ENDPOINT", value), key, rule);
        is_rejected(("OTEL_EXPORTER_OTLP_ENDPOINT", value), key, rule);
        is_rejected(("TRESTLE__GATEWAY__QUEUE_ENDPOINT", value), "gateway.queue_endpoint", rule);
    }
}

#[test]
fn hosts_with_a_password_are_shown_without_it() {
    for (variable, key, rule) in [
        ("TRESTLE__STORAGE__BLOB_HOSTS", "storage.blob_hosts", "must be HOST or HOST:PORT"),
        (
            "TRESTLE__STORAGE__COPY_SOURCE_HOSTS",
            "storage.copy_source_hosts",
            "must be https://HOST",
        ),
    ] {
        for value in
            ["http://u:c2VjcmV0@host", "u:c2VjcmV0,hunter2@host", "http://u:1,hunter2@host"]
        {
            is_rejected((variable, value), key, rule);
            let checked = Ended::of(with(&["config", "check"], (variable, value)));
            assert!(checked.errors.contains(", without a user: value=`host`"), "{checked:?}");
        }
        is_rejected((variable, "https://host/?sig=c2VjcmV0"), key, rule);
        is_rejected((variable, "https://host/?sig=c2VjcmV0@hunter2"), key, rule);
    }
}

#[test]
fn a_key_in_place_of_its_file_is_not_shown() {
    let rule = "must be the path of a file, and seems to be a key, which is not shown";
    let connection = "AccountName=acme;AccountKey=c2VjcmV0";
    for name in ["key1_file", "key2_file"] {
        let variable = format!("TRESTLE__ACCOUNTS__ACME__{}", name.to_uppercase());
        for value in [KEY, KEY.trim_end_matches('='), connection] {
            is_rejected((&variable, value), &format!("accounts.acme.{name}"), rule);
        }
        let path = "/run/secrets/trestle-account-acme/key1-of-production";
        let missing = Ended::of(with(&["config", "check"], (&variable, path)));
        assert!(missing.errors.contains(&format!("file=`{path}`")), "{missing:?}");
    }
    let args = ["config", "print", "--roles", "table"];
    let printed = Ended::of(with(&args, ("TRESTLE__ACCOUNTS__ACME__KEY1_FILE", KEY)));
    assert_eq!(printed.code, Some(2), "{printed:?}");
    assert!(!printed.errors.contains(SECRETS[0]), "{printed:?}");
}

#[test]
fn long_values_are_not_shown() {
    for (key, rule) in [
        ("server.listen", "must be an address"),
        ("server.admin", "must be an address"),
        ("server.azure_blob", "must be an address"),
        ("server.roles", "must be `all`"),
        ("storage.durability", "must be one of"),
        ("gateway.development_account", "must be one of"),
        ("gateway.queue_endpoint", "endpoint must be"),
        ("telemetry.access_log", "must be `off`"),
        ("telemetry.access_log_keys", "must be"),
        ("telemetry.log_format", "must be"),
        ("telemetry.log_filter", "must be `level`"),
        ("telemetry.otlp_endpoint", "must begin with http://"),
        ("tls.client_certificates", "must be one of"),
    ] {
        let variable = format!("TRESTLE__{}", key.to_uppercase().replace('.', "__"));
        // A `/` makes it the path of an access log.
        is_rejected((&variable, &KEY.replace('/', "")), key, rule);
    }
}

#[test]
fn a_url_of_blobs_with_a_query_a_fragment_or_a_user_is_not_shown() {
    for (url, rule) in [
        ("s3://bucket/path?signature=c2VjcmV0", "must have no query and no fragment"),
        ("az://container?c2VjcmV0", "must have no query and no fragment"),
        ("gs://bucket/path#c2VjcmV0", "must have no query and no fragment"),
        ("s3://user:c2VjcmV0@bucket/path", "must be s3://BUCKET"),
        ("s3://bucket/c2VjcmV0//path", "the path must have no empty parts"),
    ] {
        is_rejected(("TRESTLE__STORAGE__BLOB_URL", url), "storage.blob_url", rule);
    }
}
