//! Certificates that expire are reported before clients reject them.

use std::{
    fs,
    path::Path,
    time::{Duration, SystemTime},
};

use tempfile::tempdir;
use trestle_tests::{CertificateAuthority, Issued, Server};

use crate::{
    client::{Ended, bare},
    observed::logged,
};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A certificate that expires `days` from now, or before now where they are negative.
fn valid_until(authority: &CertificateAuthority, days: i32) -> Issued {
    let issued = authority.issue("localhost");
    renew(authority, &issued, days);
    issued
}

#[expect(clippy::disallowed_methods, reason = "certificates are valid by the clock of the machine")]
fn renew(authority: &CertificateAuthority, issued: &Issued, days: i32) {
    let span = DAY * days.unsigned_abs() + DAY / 2;
    let now = SystemTime::now();
    let until = if days < 0 { now - span } else { now + span };
    authority.replace_until(issued, "localhost", until);
}

fn config_check(issued: &Issued) -> Ended {
    let mut check = bare(&["config", "check", "--ephemeral"]);
    check.envs(issued.settings());
    Ended::of(check)
}

#[test]
fn config_check_rejects_an_expired_certificate_and_warns_two_weeks_before() {
    let authority = CertificateAuthority::new("authority");
    for (days, code, text) in [
        (-1, 2, "error: TRESTLE__TLS__CERT_FILE: tls.cert_file: the certificate expired "),
        (13, 0, "warning: tls.cert_file: the certificate expires "),
        (15, 0, ""),
    ] {
        let ended = config_check(&valid_until(&authority, days));

        assert_eq!(ended.code, Some(code), "{days}: {ended:?}");
        assert!(ended.errors.starts_with(text), "{days}: {ended:?}");
        assert_eq!(ended.errors.is_empty(), text.is_empty(), "{days}: {ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_warns_of_an_expiring_certificate_at_its_start_and_at_a_reload() {
    let (folder, authority) = (tempdir().unwrap(), CertificateAuthority::new("authority"));
    let log = folder.path().join("log");
    let issued = valid_until(&authority, 15);
    let start = |log: &Path| Server::start_logging(log, &["--ephemeral"], &issued.settings());
    let server = start(&log);
    assert!(!fs::read_to_string(&log).unwrap().contains("the certificate expires"));

    renew(&authority, &issued, 13);
    server.hang_up();
    logged(&log, &["WARN", "the certificate expires soon", "days_left=13"]);
    renew(&authority, &issued, -2);
    server.hang_up();
    logged(&log, &["WARN", "the certificate has expired", "days_ago=2"]);
    drop(server);

    let _server = start(&log);
    logged(&log, &["WARN", "the certificate has expired", "days_ago=2"]);
}
