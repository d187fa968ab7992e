//! Rejected settings: each error names the key, the value, and the rule.

use crate::process::{output, trestle};

/// The error of `config print` for one variable, which it must reject.
fn error_of(variable: &str, value: &str) -> String {
    let outcome = output(trestle(&["config", "print"]).env(variable, value));
    let errors = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(outcome.status.code(), Some(2), "{variable}={value}: {errors}");
    errors
}

#[test]
fn rejects_a_limit_beyond_the_resources_of_a_process() {
    let most = "18446744073709551615";
    for (key, value, rule) in [
        ("limits.connections_max", "5000000000000000000", "must be 1 to 1000000"),
        ("limits.calls_max", most, "must be 1 to 1000000"),
        ("limits.calls_per_connection_max", "4294967295", "must be 1 to 1000000"),
        ("limits.body_bytes_max", most, "must be 16MiB to 1TiB"),
        ("limits.export_bytes_max", "1048576", "must be 8MiB to 64MiB"),
        ("limits.export_bytes_max", "67108865", "must be 8MiB to 64MiB"),
        ("limits.connection_grace_seconds", most, "must be 0 to 604800"),
        ("limits.request_within_seconds", most, "must be 1 to 3600"),
        ("limits.reader_within_seconds", most, "must be 1 to 3600"),
        ("limits.reader_within_seconds", "0", "must be 1 to 3600"),
        ("server.drain_seconds", most, "must be 0 to 86400"),
        ("server.worker_threads", "1000000", "must be 1 to 1024"),
    ] {
        let variable = format!("TRESTLE__{}", key.to_uppercase().replace('.', "__"));
        let errors = error_of(&variable, value);
        let expected = format!("{key}: {rule}");
        assert!(errors.contains(&expected), "{expected}: {errors}");
        assert!(errors.contains(&format!("value=`{value}`")), "{value}: {errors}");
    }
}

#[test]
fn names_a_malformed_value_with_its_rule() {
    for (key, value, rule) in [
        ("storage.durability", "never", "must be one of `always`, `interval`, `os`"),
        ("telemetry.log_format", "yaml", "must be `text` or `json`"),
        ("telemetry.access_log_keys", "open", "must be `hashed` or `clear`"),
        ("tls.client_certificates", "maybe", "must be one of `off`, `optional`, `required`"),
        (
            "gateway.development_account",
            "on",
            "must be one of `auto`, `loopback`, `off`, `anywhere`",
        ),
        ("server.admin", "localhost", "must be an address, as in 127.0.0.1:50051"),
        ("server.listen", "50051", "must be an address, as in 127.0.0.1:50051"),
        ("server.azure_table", "none", "must be an address, as in 127.0.0.1:10002, or `off`"),
        ("server.roles", "tables", "must be `all`, or of"),
        ("storage.cache_bytes", "128Mob", "must be a whole number"),
        ("storage.min_free_bytes", "1000", "must be at least 64MiB"),
        ("storage.write_buffer_bytes", "1000", "must be 32MiB to 4GiB"),
        ("limits.calls_max", "1.5", "must be a whole number"),
        ("limits.calls_max", "99999999999999999999", "must be a whole number"),
        ("limits.calls_max", "-1", "must be a whole number"),
        ("server.worker_threads", "1.5", "must be a whole number"),
        ("quotas.account_entities_per_second", "2.5", "must be a whole number"),
        ("telemetry.access_log", "of", "must be `off`, `stderr`, or a path with a `/`"),
        ("telemetry.log_filter", "loud", "must be `level` or `target=level`"),
    ] {
        let variable = format!("TRESTLE__{}", key.to_uppercase().replace('.', "__"));
        let errors = error_of(&variable, value);
        assert!(errors.contains(&format!("{key}: {rule}")), "{key}: {rule}: {errors}");
        assert!(errors.contains(&format!("value=`{value}`")), "{value}: {errors}");
        assert!(!errors.contains("invalid type") && !errors.contains("constructor"), "{errors}");
    }
}

#[test]
fn a_url_of_an_object_store_is_rejected_without_being_shown() {
    let errors = error_of("TRESTLE__STORAGE__BLOB_URL", "https://host/blobs?sig=secret");

    assert!(errors.contains("storage.blob_url: must be s3://BUCKET, gs://BUCKET"), "{errors}");
    assert!(!errors.contains("secret"), "{errors}");
}

/// The lines of `config check` about a file with this text, which it must reject.
fn mistakes_in(text: &str) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap();
    let outcome = output(&mut trestle(&["config", "check", "--config", path]));
    let errors = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(outcome.status.code(), Some(2), "{text}: {errors}");
    errors.replace(path, "file")
}

#[test]
fn a_list_is_no_section_and_its_keys_are_not_shown() {
    let one = "Zm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm9vYmFyZm8=";
    let other = "b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcm90aGVyb3Q=";
    let with_keys = "must be a section with key1, key1_file, key2, …";
    for (text, mistake) in [
        (
            format!("[accounts]\nacme = [\"{one}\", \"{other}\"]\n"),
            format!("file:2: accounts.acme: {with_keys}"),
        ),
        (
            format!("[accounts]\nacme = [\"{one}\"]\n"),
            format!("file:2: accounts.acme: {with_keys}"),
        ),
        (
            format!("[[accounts.acme]]\nkey1 = \"{one}\"\n"),
            format!("file:1: accounts.acme: {with_keys}"),
        ),
        (format!("[accounts]\nacme = \"{one}\"\n"), format!("file:2: accounts.acme: {with_keys}")),
        (format!("accounts = [\"{one}\"]\n"), "file:1: accounts: must be a section".to_owned()),
        ("[[accounts]]\n".to_owned(), "file:1: accounts: must be a section".to_owned()),
        (
            "[quotas.accounts]\nacme = [1, 2]\n".to_owned(),
            "file:2: quotas.accounts.acme: must be a section with".to_owned(),
        ),
    ] {
        let errors = mistakes_in(&text);

        assert!(errors.contains(&mistake), "{errors}");
        assert!(!errors.contains(one) && !errors.contains(other), "{errors}");
        assert!(errors.contains("mistakes=`1`"), "{errors}");
    }
}

#[test]
fn a_list_of_tables_is_no_section_anywhere() {
    for section in
        ["server", "tls", "storage", "gateway", "gateway.tls", "limits", "quotas", "telemetry"]
    {
        let errors = mistakes_in(&format!("[[{section}]]\n"));
        assert!(errors.contains(&format!("file:1: {section}: must be a section")), "{errors}");
        assert!(errors.contains("mistakes=`1`"), "{errors}");
    }
}

#[test]
fn a_list_of_roles_is_rejected_with_the_roles_that_exist() {
    let rule = "must be a text such as \"table,queue\": `all`, or of `gateway`, `table`, `queue`, `blob` and `log`, \
                separated by commas";
    for value in ["[\"table\"]", "[\"tabel\"]", "{ table = true }"] {
        let errors = mistakes_in(&format!("[server]\nroles = {value}\n"));
        assert!(errors.contains(&format!("file:2: server.roles: {rule}\n")), "{errors}");
        assert!(errors.contains("mistakes=`1`"), "{errors}");
    }
}

#[test]
fn a_table_in_place_of_a_key_is_one_mistake_without_its_values() {
    for value in
        ["{ x = \"hunter2\" }", "{ x = \"hunter2\", y = 5 }", "{ x = { z = \"hunter2\" } }"]
    {
        let errors = mistakes_in(&format!("[accounts.acme]\nkey1 = {value}\n"));
        assert!(errors.contains("file:2: accounts.acme.key1: must be a text"), "{errors}");
        assert!(errors.contains("mistakes=`1`") && !errors.contains("hunter2"), "{errors}");
        let errors =
            mistakes_in(&format!("[accounts.acme]\nkey1 = {value}\nkey2 = [\"hunter2\"]\n"));
        assert!(errors.contains("file:3: accounts.acme.key2: must be a text"), "{errors}");
        assert!(errors.contains("mistakes=`2`") && !errors.contains("hunter2"), "{errors}");
    }
}

#[test]
fn does_not_round_a_number_of_the_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for (text, key) in [
        ("[limits]\ncalls_max = 1.5\n", "limits.calls_max"),
        ("[limits]\ncalls_max = true\n", "limits.calls_max"),
        ("[quotas]\naccount_entities_per_second = 2.5\n", "quotas.account_entities_per_second"),
    ] {
        std::fs::write(file.path(), text).unwrap();
        let path = file.path().to_str().unwrap();
        let outcome = output(&mut trestle(&["config", "print", "--config", path]));
        let errors = String::from_utf8(outcome.stderr).unwrap();
        assert_eq!(outcome.status.code(), Some(2), "{text}: {errors}");
        assert!(errors.contains(&format!("{key}: must be a whole number")), "{errors}");
    }
}

#[test]
fn an_address_in_use_is_reported_with_its_key_and_a_hint_on_one_line() {
    let occupied = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = occupied.local_addr().unwrap().to_string();
    let free = ["serve", "--ephemeral", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

    let table = ["--azure-table", &address, "--azure-queue", "off", "--azure-blob", "off"];
    let outcome = output(&mut trestle(&[&free[..], &table].concat()));

    let errors = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(outcome.status.code(), Some(5), "{errors}");
    assert!(errors.contains("server.azure_table") && errors.contains("`off`"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains("in use") && !errors.contains("os error"), "{errors}");
}

#[test]
fn what_cannot_be_opened_is_reported_in_words_alone() {
    let free = ["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let off = ["--azure-table", "off", "--azure-queue", "off", "--azure-blob", "off"];
    for (argument, value, words) in [
        ("--config", "/nowhere/trestle.toml", "No such file or directory"),
        ("--config", "/", "Is a directory"),
        ("--data-dir", "/proc/none", "No such file or directory"),
        ("--data-dir", "/dev/null/data", "Not a directory"),
    ] {
        let outcome = output(&mut trestle(&[&free[..], &off, &[argument, value]].concat()));
        let errors = String::from_utf8(outcome.stderr).unwrap();
        assert!(outcome.status.code() > Some(1), "{value}: {errors}");
        assert!(errors.contains(words) && errors.contains(value), "{value}: {errors}");
        assert!(!errors.contains("os error"), "{value}: {errors}");
    }
}

#[test]
fn a_pipe_that_its_reader_closed_is_no_error() {
    use std::{io, process::Stdio};
    for args in [&["completions", "bash"][..], &["version"], &["config", "print"], &["--help"]] {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);

        let ended = trestle(args).stdout(writer).stderr(Stdio::piped()).output().unwrap();

        let errors = String::from_utf8(ended.stderr).unwrap();
        assert_eq!((ended.status.code(), errors.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_full_or_closed_output_is_reported_once_without_a_panic() {
    use std::{fs::File, process::Stdio};
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output =
        trestle(&["config", "print"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let help = trestle(&["--help"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut wrong = trestle(&["config", "print"]);
    let deaf = wrong.env("TRESTLE__LIMITS__CALLS_MAX", "0").stderr(full).output().unwrap();

    for output in [output, help] {
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert_eq!(errors, "error: output cannot be written: No space left on device\n");
    }
    assert_eq!(deaf.status.code(), Some(2), "{deaf:?}");
}
