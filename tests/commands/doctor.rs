//! The command `doctor`: findings with a hint each, and exit codes.

use std::{fs, process::Command};

use serde_json::Value;
use tempfile::tempdir;
use trestle_tests::{CertificateAuthority, Server};

use crate::client::{Ended, bare};

/// Findings in the order in which they are reported.
fn findings(ended: &Ended) -> Vec<Value> {
    ended.output.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

/// The findings of one check.
fn of<'a>(findings: &'a [Value], check: &str) -> Vec<&'a Value> {
    findings.iter().filter(|finding| finding["check"] == check).collect()
}

fn doctor(settings: &[(&str, &str)]) -> Command {
    let mut command = bare(&["doctor", "--json"]);
    command.envs(settings.iter().copied());
    command
}

#[test]
fn a_machine_that_is_fit_passes_also_beside_a_server() {
    let data = tempdir().unwrap();
    let path = data.path().to_str().unwrap();
    let _server = Server::start(&["--data-dir", path], &[]);

    let text = Ended::of(bare(&["doctor", "--data-dir", path]));
    let json = Ended::of(bare(&["doctor", "--data-dir", path, "--json"]));

    assert_eq!([text.code, json.code], [Some(0); 2], "{text:?}");
    assert!(text.output.starts_with("ok: configuration: valid\n"), "{text:?}");
    let found = findings(&json);
    let checks: Vec<_> = found.iter().map(|finding| finding["check"].as_str().unwrap()).collect();
    assert_eq!(checks, ["configuration", "accounts", "limits", "clock", "disk.sync", "disk.space"]);
    for finding in found {
        assert_eq!(finding["severity"] == "ok", finding.get("remedy").is_none(), "{finding}");
    }
    let files: Vec<_> = fs::read_dir(path).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert!(files.iter().all(|name| !name.to_str().unwrap().contains("doctor")), "{files:?}");
}

#[test]
fn the_development_account_beyond_loopback_or_beside_an_account_is_a_warning() {
    let account = ("TRESTLE__ACCOUNTS__ACME__KEY1", "dGhlIGtleSBvZiBhbiBhY2NvdW50IG9mIGEgdGVzdCE=");
    let development = |value| ("TRESTLE__GATEWAY__DEVELOPMENT_ACCOUNT", value);
    let all = [
        ("TRESTLE__SERVER__LISTEN", "0.0.0.0:50051"),
        ("TRESTLE__SERVER__ALLOW_PLAINTEXT", "true"),
    ];
    let memory = [("TRESTLE__STORAGE__EPHEMERAL", "true")];
    let warned = |more: &[(&str, &str)]| {
        let ended = Ended::of(doctor(&[&memory, more].concat()));
        let found = findings(&ended);
        let accounts = of(&found, "accounts").into_iter();
        let warnings = accounts.filter(|finding| finding["severity"] == "warning");
        let texts = warnings.map(|finding| finding["found"].as_str().unwrap().to_owned());
        texts.collect::<Vec<_>>()
    };

    assert_eq!(warned(&[]), Vec::<String>::new());
    assert_eq!(warned(&[account]), Vec::<String>::new(), "it is off");
    let beside = warned(&[account, development("loopback")]);
    let exposed = warned(&[&all[..], &[development("anywhere")]].concat());

    assert!(beside.len() == 1 && beside[0].ends_with("configured accounts: `acme`"), "{beside:?}");
    let listener = "reachable from other machines: server.listen=`0.0.0.0:50051`";
    assert!(exposed.len() == 1 && exposed[0].ends_with(listener), "{exposed:?}");
}

#[test]
fn findings_are_one_document_or_one_object_a_line() {
    let with = |args: &[&str]| {
        let mut command = bare(&[&["doctor"], args].concat());
        command.env("TRESTLE__LIMITS__CALLS_MAX", "0").env("TRESTLE__LIMITS__CALLS_MIN", "1");
        Ended::of(command)
    };

    let document = with(&["-o", "json"]);
    let lines = with(&["-o", "jsonl", "-q"]);
    let text = with(&["-o", "plain"]);

    let parsed: Vec<Value> = serde_json::from_str(&document.output).expect("one document");
    assert_eq!(parsed, findings(&lines), "{document:?}");
    assert_eq!(parsed.len(), 2, "{document:?}");
    assert_eq!(lines.output, with(&["--json"]).output);
    assert_eq!(text.output, with(&[]).output);
    assert!(text.output.starts_with("failure: configuration: "), "{text:?}");
    let csv = with(&["-o", "csv"]);
    assert_eq!((csv.code, csv.output.as_str()), (Some(2), ""), "{csv:?}");
    assert!(csv.errors.contains("`trestle doctor` has no form csv"), "{csv:?}");
}

#[test]
fn settings_that_no_server_starts_with_end_with_their_own_code() {
    let ended = Ended::of(doctor(&[("TRESTLE__LIMITS__CALLS_MAX", "0")]));

    assert_eq!(ended.code, Some(2), "{ended:?}");
    let found = findings(&ended);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["severity"], "failure");
    assert!(found[0]["found"].as_str().unwrap().contains("limits.calls_max"), "{found:?}");
    assert!(found[0]["remedy"].as_str().is_some_and(|it| it.contains("docs/configuration.md")));
}

#[test]
fn roles_are_called_and_one_that_does_not_answer_or_is_not_served_there_is_a_failure() {
    let role = Server::start(&["--ephemeral", "--roles", "table"], &[]);
    let (here, closed) = (role.endpoint(), "http://127.0.0.1:1");
    let settings = [
        ("TRESTLE__SERVER__ROLES", "gateway"),
        ("TRESTLE__GATEWAY__TABLE_ENDPOINT", here.as_str()),
        ("TRESTLE__GATEWAY__QUEUE_ENDPOINT", closed),
        ("TRESTLE__GATEWAY__BLOB_ENDPOINT", here.as_str()),
    ];

    let ended = Ended::of(doctor(&settings));

    assert_eq!(ended.code, Some(1), "{ended:?}");
    let found = findings(&ended);
    let roles = of(&found, "roles");
    let failed: Vec<_> = roles.iter().filter(|it| it["severity"] == "failure").collect();
    assert_eq!((roles.len(), failed.len()), (3, 2), "{roles:?}");
    let found_of = |key: &str| failed.iter().find_map(|it| it["found"].as_str()?.strip_prefix(key));
    assert!(found_of("gateway.queue_endpoint: cannot connect to").is_some(), "{failed:?}");
    let absent = format!("gateway.blob_endpoint: the server at {here} does not serve");
    assert!(found_of(&absent).is_some(), "{failed:?}");
    assert!(failed.iter().all(|it| it["remedy"].is_string()), "{failed:?}");
    assert!(of(&found, "disk.sync").is_empty(), "a gateway has no data");
}

#[test]
fn certificates_are_read_with_their_keys() {
    let authority = CertificateAuthority::new("authority");
    let (own, other) = (authority.issue("localhost"), authority.issue("other"));
    let valid = own.settings();
    let mixed = [valid[0], other.settings()[1]];

    let accepted =
        Ended::of(doctor(&[valid[0], valid[1], ("TRESTLE__STORAGE__EPHEMERAL", "true")]));
    let rejected =
        Ended::of(doctor(&[mixed[0], mixed[1], ("TRESTLE__STORAGE__EPHEMERAL", "true")]));

    assert_eq!([accepted.code, rejected.code], [Some(0), Some(1)], "{accepted:?} {rejected:?}");
    let found = findings(&accepted);
    let [certificate] = of(&found, "certificates")[..] else { panic!("{found:?}") };
    assert!(certificate["found"].as_str().unwrap().contains("days_left=`"), "{certificate}");
    assert!(rejected.output.contains(", is not the key of the certificate\""), "{rejected:?}");
}

#[test]
fn the_certificate_of_a_ca_as_that_of_the_server_is_a_warning() {
    let authority = CertificateAuthority::new("authority");
    let own = authority.issue("localhost");
    let file = authority.file();
    let certificate = ("TRESTLE__TLS__CERT_FILE", file.to_str().unwrap());

    let of_ca = Ended::of(doctor(&[certificate, own.settings()[1]]));
    let of_server = Ended::of(doctor(&own.settings()));

    let warned = |ended: &Ended| {
        let found = findings(ended);
        let of_ca = |it: &&Value| it["found"].as_str().unwrap().contains("is that of a CA");
        let warnings = of(&found, "certificates").into_iter().filter(of_ca).cloned();
        warnings.collect::<Vec<_>>()
    };
    assert_eq!(warned(&of_server), [] as [Value; 0], "{of_server:?}");
    let [warning] = &warned(&of_ca)[..] else { panic!("{of_ca:?}") };
    assert_eq!(warning["severity"], "warning");
    assert!(warning["remedy"].as_str().unwrap().contains("CA:FALSE"), "{warning}");
}

#[test]
fn a_data_directory_that_cannot_be_written_is_a_failure() {
    let data = tempdir().unwrap();
    let file = data.path().join("file");
    fs::write(&file, "").unwrap();

    let ended = Ended::of(doctor(&[("TRESTLE__STORAGE__DATA_DIR", file.to_str().unwrap())]));

    assert_eq!(ended.code, Some(1), "{ended:?}");
    let found = findings(&ended);
    assert_eq!(of(&found, "disk.sync")[0]["severity"], "failure", "{found:?}");
}
