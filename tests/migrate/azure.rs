//! `import azure`: errors before the first request. Real accounts are in the client suites.

use std::{
    fs,
    time::{Duration, Instant},
};

use tempfile::tempdir;

use crate::command::{Ended, run, start, trestle};

const KEY: &str = "aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMmh1bnRlcjI=";

#[test]
fn a_malformed_connection_string_is_a_usage_error_without_the_secret() {
    let data = tempdir().unwrap();
    let server = start(&data);
    for (text, rule) in [
        (KEY.to_owned(), "part 1 is unknown"),
        (format!("AccountKey={KEY}"), "`AccountName` is required"),
        (format!("AccountName=acme;AccountKey={}", &KEY[..20]), "`AccountKey` must be base64"),
        (format!("AccountName=acme;Key={KEY}"), "part 2 is unknown"),
        (format!("AccountName=acme;SharedAccessSignature={KEY}"), "must be a query"),
        ("AccountName=acme".to_owned(), "needs `AccountKey` or `SharedAccessSignature`"),
    ] {
        let ended = run(&server, &["import", "azure", &text]);

        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.errors.contains(rule), "{rule}: {ended:?}");
        assert!(!ended.errors.contains(&KEY[..20]), "{ended:?}");
    }
    let ended = run(&server, &["import", "azure"]);
    let of_variable = Ended::of({
        let mut command = trestle(&server, &["import", "azure"]);
        command.env("AZURE_STORAGE_CONNECTION_STRING", "AccountName=acme");
        command
    });
    assert_eq!(of_variable.code, Some(2), "{of_variable:?}");
    assert!(of_variable.errors.contains("needs `AccountKey`"), "{of_variable:?}");
    assert!(ended.code == Some(2) && ended.errors.contains("--source-file"), "{ended:?}");
}

#[test]
fn an_unreachable_account_is_unavailable_and_named_at_once() {
    let (data, directory) = (tempdir().unwrap(), tempdir().unwrap());
    let server = start(&data);
    let file = directory.path().join("source");
    // No process listens there.
    let endpoint = "TableEndpoint=http://127.0.0.1:1/acme";
    fs::write(&file, format!("AccountName=acme;AccountKey={KEY};{endpoint}\n")).unwrap();

    let source = format!("--source-file={}", file.display());
    let began = Instant::now();
    let ended = run(&server, &["import", "azure", &source]);

    assert!(began.elapsed() < Duration::from_secs(10), "retried: {:?}", began.elapsed());
    let errors = ended.errors;
    assert_eq!(ended.code, Some(5), "{errors}");
    let text = "cannot be reached for the list of tables: Connection refused: address=`http://127.0.0.1:1/acme`";
    assert!(errors.contains(text), "{errors}");
    assert!(!errors.contains(&KEY[..20]), "{errors}");
}

#[test]
fn the_port_of_another_service_is_named_with_a_hint() {
    let data = tempdir().unwrap();
    let server = start(&data);
    let address = format!("http://{}/acme", server.endpoint().trim_start_matches("http://"));
    let source = format!("AccountName=acme;AccountKey={KEY};TableEndpoint={address}");

    let ended = run(&server, &["import", "azure", &source]);

    assert_eq!(ended.code, Some(6), "{ended:?}");
    let text = format!(
        "the list of tables: HTTP 415: address=`{address}`; check the address and the port"
    );
    assert!(ended.errors.contains(&text), "{ended:?}");
}
