//! Each mistake has the key, the rule of that key, and the value where it cannot be a secret; none hides another.

use std::fs;

use tempfile::tempdir;

use crate::client::{Ended, bare};

/// The mistakes that a check finds in a file, each without the name of the file.
fn mistakes(text: &[u8]) -> Vec<String> {
    let directory = tempdir().unwrap();
    let file = directory.path().join("wrong.toml");
    fs::write(&file, text).unwrap();
    let checked = Ended::of(bare(&["config", "check", "--config", file.to_str().unwrap()]));
    assert_eq!(checked.code, Some(2), "{checked:?}");
    let start = format!("error: {}:", file.display());
    checked.errors.lines().filter_map(|line| Some(line.strip_prefix(&start)?.to_owned())).collect()
}

#[test]
fn a_mistake_of_type_has_the_range_of_its_key() {
    let long = "9".repeat(26);
    let text = format!(
        "[limits]\nkeepalive_seconds = \"20s\"\ncalls_max = [1]\n[server]\nworker_threads = -1\n\
         drain_seconds = {long}\n[quotas]\naccount_entities_per_second = 1e9\n\
         [quotas.accounts.busy]\naccount_burst_entities = 5.0\n[storage]\n\
         min_free_bytes = \"1 apple\"\n[telemetry]\nmetrics_every_seconds = \"10s\"\n"
    );

    let found = mistakes(text.as_bytes());

    let whole = "must be a whole number";
    assert_eq!(
        found,
        [
            format!("2: limits.keepalive_seconds: {whole}, 1 to 3600: value=`20s`"),
            format!("3: limits.calls_max: {whole}, 1 to 1000000"),
            format!("5: server.worker_threads: {whole}, 1 to 1024: value=`-1`"),
            format!("6: server.drain_seconds: {whole}, 0 to 86400: value=`{}…`", &long[..24]),
            format!(
                "8: quotas.account_entities_per_second: {whole} in digits, 0 to 1000000000: value=`1e9`"
            ),
            format!(
                "10: quotas.accounts.busy.account_burst_entities: {whole} in digits, 1 to 1000000000: \
                 value=`5.0`"
            ),
            format!(
                "12: storage.min_free_bytes: {whole} of bytes, or a size such as 128MiB, at least 64MiB: \
                 value=`1 apple`"
            ),
            format!("14: telemetry.metrics_every_seconds: {whole}, at least 1: value=`10s`"),
        ]
    );
}

#[test]
fn other_types_are_named_in_words_with_what_may_be_shown() {
    let text = b"[server]\nallow_plaintext = \"banana\"\nadmin = [1]\nazure_queue = [2]\n\
        [storage]\nblob_url = \"ftp://user:hunter2@x\"\n[telemetry]\ntrace_sample_ratio = \"x\"\n\
        [quotas]\naccounts = 3\n";

    assert_eq!(
        mistakes(text),
        [
            "2: server.allow_plaintext: must be true or false (or yes or no, on or off, 1 or 0): \
             value=`banana`",
            "3: server.admin: must be a text",
            "4: server.azure_queue: must be an address, as in 127.0.0.1:10002, or `off`",
            "6: storage.blob_url: must be s3://BUCKET, gs://BUCKET or az://CONTAINER, and may have a path: \
             scheme=`ftp`",
            "8: telemetry.trace_sample_ratio: must be a number: value=`x`",
            "10: quotas.accounts: must be a section",
        ]
    );
}

#[test]
fn listeners_with_the_same_address_and_an_empty_directory_are_mistakes() {
    let found = mistakes(
        b"[server]\nlisten = \"127.0.0.1:7000\"\nadmin = \"127.0.0.1:7000\"\n\
          azure_table = \"[::]:7000\"\nallow_plaintext = true\n\
          [gateway]\ndevelopment_account = \"anywhere\"\n[storage]\ndata_dir = \"\"\n",
    );

    let other = "must be another address than that of";
    assert_eq!(
        found,
        [
            format!(
                "3: server.admin: {other} server.listen, which is `127.0.0.1:7000`: value=`127.0.0.1:7000`"
            ),
            format!(
                "4: server.azure_table: {other} server.listen, which is `127.0.0.1:7000`: value=`[::]:7000`"
            ),
            "9: storage.data_dir: must be a path, such as ./data: value=``".to_owned(),
        ]
    );
    let free = "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nazure_table = \"[::1]:10001\"\n";
    let directory = tempdir().unwrap();
    let file = directory.path().join("right.toml");
    fs::write(&file, free).unwrap();
    let checked = Ended::of(bare(&["config", "check", "--config", file.to_str().unwrap()]));
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

#[test]
fn a_mistake_in_a_named_section_hides_no_other() {
    let found = mistakes(
        b"[accounts.acme]\nkey1 = \"zz\"\nfoo = 1\n\
          [accounts.other]\nkey1 = [1]\n\
          [quotas.accounts.x]\nfoo = 1\n\
          [quotas.accounts.busy]\naccount_entities_per_second = 1000000001\nbar = 2\n\
          [nothing]\na = 1\nb = 2\n",
    );

    let starts = [
        "2: accounts.acme.key1: ",
        "3: accounts.acme.foo: unknown key",
        "5: accounts.other.key1: must be a text",
        "6: quotas.accounts.x: must be 3 to 24 lower-case letters and digits",
        "7: quotas.accounts.x.foo: unknown key",
        "9: quotas.accounts.busy.account_entities_per_second: must be 0 to 1000000000: value=`1000000001`",
        "10: quotas.accounts.busy.bar: unknown key",
        "11: nothing: unknown key",
    ];
    assert_eq!(found.len(), starts.len(), "{found:#?}");
    for (mistake, start) in found.iter().zip(starts) {
        assert!(mistake.starts_with(start), "{start}: {mistake}");
    }
}

#[test]
fn a_file_that_is_no_text_is_named_with_the_line_of_the_first_wrong_byte() {
    let directory = tempdir().unwrap();
    let file = directory.path().join("binary.toml");
    fs::write(&file, b"[server]\n\xff\xfe").unwrap();

    let checked = Ended::of(bare(&["config", "check", "--config", file.to_str().unwrap()]));

    let path = file.display();
    let text = format!(
        "error: configuration file cannot be read: path=`{path}`: must be text in UTF-8: line=`2`, byte=`9`\n\
         error: configuration is wrong: mistakes=`1`, file=`{path}`\n"
    );
    assert_eq!((checked.code, checked.errors), (Some(2), text));
}

#[test]
fn a_mistake_that_a_flag_makes_is_at_that_flag() {
    let checked = Ended::of(bare(&["config", "check", "--listen", "0.0.0.0:0"]));

    assert_eq!(checked.code, Some(2), "{checked:?}");
    for start in [
        "error: --listen: server.listen: this address is not loopback",
        "error: --listen: accounts: none, so no client could call",
    ] {
        assert!(checked.errors.lines().any(|line| line.starts_with(start)), "{start}: {checked:?}");
    }
}

#[test]
fn a_schedule_of_backups_names_what_is_wrong_with_it() {
    let found = mistakes(
        b"[backup]\ntarget = \"./store/backups\"\nevery = \"5s\"\nkeep_last = 0\nkeep_for = \"a while\"\n\
          max_rate = \"fast\"\n[storage]\ndata_dir = \"./store\"\n",
    );

    let time = "a whole number and ms, s, m, h or d; a number alone is in seconds";
    let outside = "must be outside of the data directory and of the objects of the store";
    assert_eq!(
        found,
        [
            format!("2: backup.target: {outside}: target=`./store/backups`, data_dir=`./store`"),
            format!("3: backup.every: must be 1m to 30d: {time}: value=`5s`"),
            "4: backup.keep_last: must be 1 to 1000000: value=`0`".to_owned(),
            format!("5: backup.keep_for: must be 1m to 7300d: {time}: value=`a while`"),
            "6: backup.max_rate: must be a whole number of bytes, or a size such as 128MiB, 0 to 1TiB: \
             value=`fast`"
                .to_owned(),
        ]
    );
}
